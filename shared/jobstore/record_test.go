package jobstore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/shared/job"
)

// Usage of a result counts when the result is stored, that of other answers once
// per sequence number and attempt.
func TestStore_Record_usageExactlyOnce(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		c := w.running(3)
		_, err := w.Begin(ctx, attempt(c, "t"))
		require.NoError(t, err)
		record := func(token string, from, to int, seq int64) int64 {
			t.Helper()
			p, err := w.Record(ctx, attempt(c, token), results(c, from, to),
				job.Extra{Seq: seq, Usage: job.Usage{Calls: 100}})
			require.NoError(t, err)
			return p.Usage.Calls
		}
		assert.Equal(t, int64(1), record("t", 0, 1, 0), "sequence number 0 adds nothing")
		assert.Equal(t, int64(102), record("t", 1, 2, 1))
		assert.Equal(t, int64(102), record("t", 0, 2, 1), "results and number known")
		assert.Equal(t, int64(202), record("t", 0, 0, 5), "numbers may leave gaps")
		assert.Equal(t, int64(202), record("t", 0, 0, 4), "but do not come back")
		w.advance(lease)
		_, err = w.Begin(ctx, attempt(c, "u"))
		require.NoError(t, err)
		assert.Equal(t, int64(302), record("u", 0, 0, 1), "an attempt counts from 1")
		assert.Equal(t, int64(303), record("u", 2, 3, 1))
		require.NoError(t, w.Finish(ctx, attempt(c, "u"), "", job.Extra{Seq: 2, Usage: job.Usage{Calls: 100}}))
		assert.Equal(t, job.Usage{Calls: 403, TotalTokens: 30}, w.read(c.ID).Usage)
	})
}

// Whoever's attempt is not the current one adds no usage, not even by failing an
// overdue job.
func TestStore_Fail_usageOfTheCurrentAttemptOnly(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		for token, want := range map[string]int64{"t": 1, "new": 101} {
			c := begunWith(w, 1)
			w.advance(lease)
			_, err := w.Begin(ctx, attempt(c, "new"))
			require.NoError(t, err)
			w.advance(deadline)
			err = w.Fail(ctx, c.Ref, job.GuardWorker, token, job.Failure{Code: job.CodeDeadlineExceeded},
				job.Extra{Seq: 1, Usage: job.Usage{Calls: 100}})
			require.ErrorIs(t, err, job.ErrOverdue)
			assert.Equal(t, want, w.read(c.ID).Usage.Calls, token)
		}
	})
}

func TestStore_Record_indexRange(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		c := begunWith(w, 0)
		for _, index := range []int{-1, 2, 10, 1 << 53} {
			w.unchanged(t, func() {
				rs := append(results(c, 0, 2), job.Result{Index: index, Text: "x", MemoKey: "k"})
				_, err := w.Record(ctx, attempt(c, "t"), rs, job.Extra{Seq: 1, Usage: job.Usage{Calls: 1}})
				require.ErrorIs(t, err, job.ErrOutOfRange, "%d", index)
			})
		}
	})
}

// A result stored is never replaced.
func TestStore_Record_firstAnswerStays(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		c := begunWith(w, 2)
		rs := results(c, 0, 2)
		rs[0].Text, rs[1].Text = "another", "answer"
		p, err := w.Record(ctx, attempt(c, "t"), rs, job.Extra{})
		require.NoError(t, err)
		assert.Equal(t, job.Progress{Done: 2, Usage: job.Usage{Calls: 2, TotalTokens: 20}}, p)
		require.NoError(t, w.Finish(ctx, attempt(c, "t"), "", job.Extra{}))
		_, all, err := w.Results(ctx, c.ID)
		require.NoError(t, err)
		assert.Equal(t, []job.Rewritten{
			{ID: "c0", Before: "말 0", After: "정중한 말 0"}, {ID: "c1", Before: "말 1", After: "정중한 말 1"},
		}, all)
	})
}

// More results than one request may carry go in several, and any text comes
// back as it was.
func TestStore_Record_aMaximumJob(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		const n = 1000
		c := w.creation(n)
		for i := range c.Comments {
			c.Comments[i].Text = fmt.Sprint(i, " ", strings.Repeat("가\"\\<😀\n", 100))
		}
		require.NoError(t, w.Acquire(ctx, c))
		a := attempt(c, "t")
		b, err := w.Begin(ctx, a)
		require.NoError(t, err)
		require.Equal(t, c.Comments, b.Comments)
		p, err := w.Record(ctx, a, results(c, 0, n), job.Extra{Seq: 1, Usage: job.Usage{Calls: 1}})
		require.NoError(t, err)
		assert.Equal(t, job.Progress{Done: n, Usage: job.Usage{Calls: n + 1, TotalTokens: 10 * n}}, p)
		require.NoError(t, w.Finish(ctx, a, "", job.Extra{}))
		_, all, err := w.Results(ctx, c.ID)
		require.NoError(t, err)
		require.Len(t, all, n)
		keys := make([]string, n)
		for i, r := range all {
			require.Equal(t, job.Rewritten{
				ID: c.Comments[i].ID, Before: c.Comments[i].Text, After: "정중한 " + c.Comments[i].Text,
			}, r)
			keys[i] = c.Spec.MemoKey(c.Comments[i].Text)
		}
		found, err := w.Recall(ctx, w.target, append(keys, "unknown"))
		require.NoError(t, err)
		assert.Len(t, found, n)
		assert.Equal(t, all[999].After, found[keys[999]])
	})
}

// The memo's life starts at its creation and is never renewed, by no later job.
func TestStore_memoIsNeverRenewed(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		w.succeeded(1)
		assert.InDelta(t, retention, w.ttl(memoKey(w.target)), float64(5*time.Second))
		w.advance(time.Hour)
		c := w.succeeded(2)
		assert.LessOrEqual(t, w.ttl(memoKey(w.target)), retention-time.Hour)
		found, err := w.Recall(ctx, w.target, []string{c.Spec.MemoKey("말 1")})
		require.NoError(t, err)
		assert.Len(t, found, 1, "it still learns")
		w.advance(retention - time.Hour)
		assert.Zero(t, w.rdb.Exists(ctx, memoKey(w.target)).Val())
	})
}

// A full memo takes no new digest; fresh jobs overwrite what is there, others
// do not.
func TestStore_memoLimitAndFresh(t *testing.T) {
	onEach(t, Options{MemoLimit: 2}, func(t *testing.T, w *world) {
		c := w.succeeded(3)
		keys := []string{c.Spec.MemoKey("말 0"), c.Spec.MemoKey("말 1"), c.Spec.MemoKey("말 2")}
		recall := func() map[string]string {
			found, err := w.Recall(ctx, w.target, keys)
			require.NoError(t, err)
			return found
		}
		remembered := map[string]string{keys[0]: "정중한 말 0", keys[1]: "정중한 말 1"}
		assert.Equal(t, remembered, recall())

		answer := func(fresh bool, text string) {
			c := w.creation(3)
			c.Fresh = fresh
			require.NoError(t, w.Acquire(ctx, c))
			a := attempt(c, "t")
			b, err := w.Begin(ctx, a)
			require.NoError(t, err)
			rs := results(c, 0, 3)
			for i := range rs {
				rs[i].Text = text
			}
			_, err = w.Record(ctx, a, rs, job.Extra{})
			require.NoError(t, err)
			require.NoError(t, w.Finish(ctx, a, b.Kept, job.Extra{}))
		}
		answer(false, "later")
		assert.Equal(t, remembered, recall())
		answer(true, "fresh")
		assert.Equal(t, map[string]string{keys[0]: "fresh", keys[1]: "fresh"}, recall())
		assert.Equal(t, int64(2), w.rdb.HLen(ctx, memoKey(w.target)).Val())
	})
}

func TestStore_Recall_nothingRemembered(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		for _, keys := range [][]string{nil, {"a"}, {"a", "b"}} {
			found, err := w.Recall(ctx, w.target, keys)
			require.NoError(t, err)
			assert.Empty(t, found)
		}
	})
}
