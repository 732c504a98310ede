package jobstore

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/shared/job"
)

// hasTexts reports whether the comments and results of c are both there; one
// without the other is a fault.
func hasTexts(t *testing.T, w *world, c job.Creation) bool {
	t.Helper()
	n := w.rdb.Exists(ctx, inKey(c.ID), outKey(c.ID)).Val()
	require.NotEqual(t, int64(1), n, "half the texts of %s", c.ID)
	return n == 2
}

// At most one finished job's texts are kept; a failed job in between frees none.
func TestStore_Finish_freesTheKeptJobsTexts(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		first := w.succeeded(1)
		failed, _, _ := w.worked(1)
		w.cancel(failed)
		assert.True(t, hasTexts(t, w, first))
		assert.False(t, hasTexts(t, w, failed))
		second := w.succeeded(2)
		assert.False(t, hasTexts(t, w, first))
		assert.True(t, hasTexts(t, w, second))
		j, rs, err := w.Results(ctx, first.ID)
		require.ErrorIs(t, err, job.ErrGone)
		assert.Nil(t, rs)
		assert.Equal(t, job.Success, j.Status, "the job comes along, its texts do not")
		assert.Equal(t, 1, j.Done)
		assert.Equal(t, string(second.ID), w.rdb.Get(ctx, keptKey(w.target)).Val())
	})
}

// A kept job that is no longer the kept one loses nothing by a wrong name.
func TestStore_Finish_freesOnlyWhatIsKept(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		first := w.succeeded(1)
		c, a, _ := w.worked(1)
		require.NoError(t, w.Finish(ctx, a, w.mint(), job.Extra{}))
		assert.True(t, hasTexts(t, w, first))
		assert.True(t, hasTexts(t, w, c))
	})
}

func TestStore_Finish_namingItselfKept(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		c, a, _ := w.worked(1)
		require.NoError(t, w.Finish(ctx, a, c.ID, job.Extra{}))
		require.NoError(t, w.Finish(ctx, a, c.ID, job.Extra{}))
		assert.True(t, hasTexts(t, w, c))
	})
}

// applied is set once, to the time given, and the texts live an hour more at most.
func TestStore_Applied_shortensTheTexts(t *testing.T) {
	at := time.Date(2030, 1, 2, 0, 0, 0, 0, time.UTC)
	onEach(t, Options{Now: func() time.Time { return at.Add(-time.Hour) }}, func(t *testing.T, w *world) {
		c := w.succeeded(1)
		require.NoError(t, w.Applied(ctx, c.ID, at))
		assert.Equal(t, at, w.read(c.ID).AppliedAt, "the head's time, not this store's")
		for _, key := range []string{inKey(c.ID), outKey(c.ID)} {
			assert.InDelta(t, time.Hour, w.ttl(key), float64(5*time.Second))
		}
		assert.Greater(t, w.ttl(jobKey(c.ID)), 23*time.Hour, "the job itself stays")
		w.advance(30 * time.Minute)
		later := w.other(Options{Now: func() time.Time { return at.Add(time.Minute) }})
		require.NoError(t, later.Applied(ctx, c.ID, at.Add(time.Second)))
		assert.Equal(t, at, w.read(c.ID).AppliedAt)
		assert.LessOrEqual(t, w.ttl(inKey(c.ID)), 30*time.Minute)
		w.advance(30 * time.Minute)
		_, _, err := w.Results(ctx, c.ID)
		require.ErrorIs(t, err, job.ErrGone)
	})
}

func TestStore_Applied_neverLengthens(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		c := w.succeeded(1)
		w.advance(retention - time.Minute)
		require.NoError(t, w.Applied(ctx, c.ID, shownAt))
		assert.LessOrEqual(t, w.ttl(inKey(c.ID)), time.Minute)
		assert.LessOrEqual(t, w.ttl(outKey(c.ID)), time.Minute)
	})
}

// Half the texts are as good as none.
func TestStore_Results_halfGone(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		for _, key := range []func(job.ID) string{inKey, outKey} {
			c := w.succeeded(1)
			require.NoError(t, w.rdb.Del(ctx, key(c.ID)).Err())
			_, _, err := w.Results(ctx, c.ID)
			require.ErrorIs(t, err, job.ErrGone)
		}
	})
}

func erase(t *testing.T, w *world, newest job.ID) {
	t.Helper()
	require.NoError(t, w.Erase(ctx, w.target, newest))
	assert.Zero(t, w.rdb.Exists(ctx, memoKey(w.target), keptKey(w.target)).Val())
}

// Erase in every situation a target may be in. The pointer to the newest job
// stays, so that ids go on ordering.
func TestStore_Erase(t *testing.T) {
	t.Run("none", func(t *testing.T) {
		onEach(t, Options{}, func(t *testing.T, w *world) {
			erase(t, w, "")
			assert.Empty(t, w.keys())
		})
	})
	t.Run("running", func(t *testing.T) {
		onEach(t, Options{}, func(t *testing.T, w *world) {
			old := w.succeeded(1)
			c, a, _ := w.worked(2)
			erase(t, w, c.ID)
			assert.Equal(t, &job.Failure{Code: job.CodeCanceled}, w.read(c.ID).Failure)
			assert.False(t, hasTexts(t, w, c))
			assert.False(t, hasTexts(t, w, old), "kept is an older job here")
			assertState(t, w.Finish(ctx, a, old.ID, job.Extra{}), job.Failed, job.CodeCanceled)
			assert.ElementsMatch(t, []string{jobKey(old.ID), jobKey(c.ID), lastKey(w.target)}, w.keys())
		})
	})
	t.Run("overdue", func(t *testing.T) {
		onEach(t, Options{}, func(t *testing.T, w *world) {
			c := begunWith(w, 1)
			w.advance(deadline)
			erase(t, w, c.ID)
			assert.Equal(t, job.CodeDeadlineExceeded, w.read(c.ID).Failure.Code)
		})
	})
	t.Run("finished", func(t *testing.T) {
		onEach(t, Options{}, func(t *testing.T, w *world) {
			c := w.succeeded(2)
			erase(t, w, c.ID)
			_, _, err := w.Results(ctx, c.ID)
			require.ErrorIs(t, err, job.ErrGone)
			assert.Equal(t, job.Success, w.read(c.ID).Status, "terminal is final")
			id, err := w.Newest(ctx, w.target)
			require.NoError(t, err)
			assert.Equal(t, c.ID, id)
		})
	})
	t.Run("failed", func(t *testing.T) {
		onEach(t, Options{}, func(t *testing.T, w *world) {
			c := w.running(1)
			w.cancel(c)
			want := w.read(c.ID)
			want.InputDigest = "" // what the caller wrote is gone, the rest stays
			erase(t, w, c.ID)
			assert.Equal(t, want, w.read(c.ID))
		})
	})
	t.Run("failed over a comment", func(t *testing.T) {
		onEach(t, Options{}, func(t *testing.T, w *world) {
			c := begunWith(w, 1)
			failure := job.Failure{Code: job.CodeLLMFailed, Detail: "status=400", CommentID: "kim.minsu"}
			require.NoError(t, w.Fail(ctx, c.Ref, job.GuardCancel, "", failure, job.Extra{}))
			erase(t, w, c.ID)
			failure.CommentID = ""
			assert.Equal(t, &failure, w.read(c.ID).Failure)
		})
	})
	t.Run("changed", func(t *testing.T) {
		onEach(t, Options{}, func(t *testing.T, w *world) {
			read := w.succeeded(1)
			newer := begunWith(w, 1)
			for _, id := range []job.ID{read.ID, ""} {
				w.unchanged(t, func() {
					var changed *job.ChangedError
					require.ErrorAs(t, w.Erase(ctx, w.target, id), &changed)
					assert.Equal(t, newer.ID, changed.Newest)
				})
			}
		})
	})
	t.Run("the newest has expired", func(t *testing.T) {
		onEach(t, Options{}, func(t *testing.T, w *world) {
			c := w.running(1)
			w.advance(deadline + retention)
			var changed *job.ChangedError
			require.ErrorAs(t, w.Erase(ctx, w.target, c.ID), &changed)
			assert.Empty(t, changed.Newest)
			erase(t, w, "")
		})
	})
}

func TestStore_Newest_none(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		_, err := w.Newest(ctx, w.target)
		require.ErrorIs(t, err, job.ErrNotFound)
	})
}

// Complaint (j): no key without a TTL but the watch sets, at no time; and when
// everything has ended, a sweep went by and the retention passed, no key at all.
func TestStore_noKeyStays(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		var cs []job.Creation
		for _, f := range froms() {
			v := w.on(w.target)
			if f.name == "unclaimed" {
				continue // the claim it plants belongs to nobody
			}
			cs = append(cs, f.make(v))
			require.Empty(t, hasNoTTL(w.snapshot()), f.name)
			if last := cs[len(cs)-1]; w.rdb.Exists(ctx, runKey(w.target)).Val() == 1 {
				if len(cs)%2 == 0 {
					w.cancel(last)
				} else {
					w.advance(deadline) // nobody polls this one
				}
			}
			require.Empty(t, hasNoTTL(w.snapshot()), f.name)
		}
		w.succeeded(1)
		w.running(1) // lost for good: nobody ever touches it
		w.advance(deadline + retention)
		require.Equal(t, []string{watchKey(w.target.Shard())}, w.keys())
		_, err := w.Watched(ctx, 0, func(_ context.Context, r job.Ref) error {
			_, err := w.Inspect(ctx, r, lease)
			return err
		})
		require.NoError(t, err)
		assert.Empty(t, w.keys())
	})
}
