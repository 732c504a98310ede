package jobstore

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/shared/job"
)

func TestStore_Begin_givesAllThatWorkNeeds(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		old := w.succeeded(1)
		c := w.creation(3)
		c.Fresh = true
		require.NoError(t, w.Acquire(ctx, c))
		b, err := w.Begin(ctx, attempt(c, "t"))
		require.NoError(t, err)
		assert.InDelta(t, deadline, b.Remaining, float64(5*time.Second))
		assert.LessOrEqual(t, b.Remaining, deadline)
		b.Remaining = 0
		assert.Equal(t, &job.Begun{
			Comments: c.Comments, Recorded: map[int]string{}, Attempt: 1, Fresh: true, Spec: c.Spec, Kept: old.ID,
		}, b)
		x := job.Extra{Seq: 1, Usage: job.Usage{PromptTokens: 1, CompletionTokens: 2, TotalTokens: 3, Calls: 4, MemoHits: 5}}
		_, err = w.Record(ctx, attempt(c, "t"), results(c, 2, 3), x)
		require.NoError(t, err)
		w.advance(lease)
		b, err = w.Begin(ctx, attempt(c, "u"))
		require.NoError(t, err)
		assert.Equal(t, map[int]string{2: "정중한 말 2"}, b.Recorded)
		assert.Equal(t, job.Usage{PromptTokens: 1, CompletionTokens: 2, TotalTokens: 13, Calls: 5, MemoHits: 5}, b.Usage)
		assert.Equal(t, 2, b.Attempt)
	})
}

func TestStore_Begin_oneOfManyDeliveries(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		c := w.running(1)
		var mu sync.Mutex
		var won, busy int
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				_, err := w.Begin(ctx, attempt(c, fmt.Sprint("t", i)))
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					won++
				case errors.Is(err, job.ErrBusy):
					busy++
				}
			})
		}
		wg.Wait()
		assert.Equal(t, 1, won)
		assert.Equal(t, 49, busy)
		assert.Equal(t, "1", w.field(c.ID, "attempt"))
	})
}

// Every refusal of begin writes nothing.
func TestStore_Begin_refusals(t *testing.T) {
	onEach(t, Options{MaxAttempts: 2}, func(t *testing.T, w *world) {
		c := w.running(1)
		refused := func(token string, want error) {
			t.Helper()
			w.unchanged(t, func() {
				_, err := w.Begin(ctx, attempt(c, token))
				require.ErrorIs(t, err, want)
			})
		}
		refused("", job.ErrStale) // a token is never empty
		require.NoError(t, w.rdb.HSet(ctx, jobKey(c.ID), "schema", "2").Err())
		refused("t", job.ErrSchema)
		require.NoError(t, w.rdb.HDel(ctx, jobKey(c.ID), "schema").Err())
		refused("t", job.ErrSchema)
		require.NoError(t, w.rdb.HSet(ctx, jobKey(c.ID), "schema", schema).Err())
		_, err := w.Begin(ctx, attempt(c, "t"))
		require.NoError(t, err)
		refused("u", job.ErrBusy)
		refused("", job.ErrStale)
		w.advance(lease)
		_, err = w.Begin(ctx, attempt(c, "u"))
		require.NoError(t, err)
		w.advance(lease)
		refused("v", job.ErrExhausted)
		_, err = w.Begin(ctx, attempt(c, "u"))
		require.NoError(t, err, "the last attempt's own repeat goes on")
	})
}

// An event that names a job with another target of the same shard begins nothing.
func TestStore_Begin_anotherTargetsJob(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		c := w.running(1)
		forged := attempt(c, "t")
		for i := 0; forged.Target == c.Target || forged.Target.Shard() != c.Target.Shard(); i++ {
			forged.Target.ID = fmt.Sprint("other-", i)
		}
		w.unchanged(t, func() {
			_, err := w.Begin(ctx, forged)
			require.ErrorIs(t, err, job.ErrClaimLost)
		})
	})
}
