package jobstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/shared/job"
)

// twice makes the same call two times, as a client does whose first reply was
// lost, and wants the same answer and no further change from the second.
func twice[T any](t *testing.T, w *world, call func() (T, error)) T {
	t.Helper()
	first, err := call()
	require.NoError(t, err)
	w.unchanged(t, func() {
		second, err := call()
		require.NoError(t, err, "the repeat")
		assert.Equal(t, first, second, "the repeat")
	})
	return first
}

func none(err error) (struct{}, error) { return struct{}{}, err }

// Every script answers its own repeat like the first time.
func TestStore_repeatsAnswerAlike(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		c := w.creation(3)
		twice(t, w, func() (struct{}, error) { return none(w.Acquire(ctx, c)) })

		a := attempt(c, "t")
		first, err := w.Begin(ctx, a)
		require.NoError(t, err)
		second, err := w.Begin(ctx, a)
		require.NoError(t, err)
		assert.InDelta(t, first.Remaining, second.Remaining, float64(5*time.Second))
		second.Remaining = first.Remaining
		assert.Equal(t, first, second, "the attempt does not grow")
		assert.Equal(t, "1", w.field(c.ID, "attempt"))

		x := job.Extra{Seq: 1, Usage: job.Usage{Calls: 5, TotalTokens: 7}}
		p, err := w.Record(ctx, a, results(c, 0, 2), x)
		require.NoError(t, err)
		again, err := w.Record(ctx, a, results(c, 0, 2), x)
		require.NoError(t, err)
		assert.Equal(t, job.Progress{Done: 2, Usage: job.Usage{Calls: 7, TotalTokens: 27}}, p)
		assert.Equal(t, p, again, "usage is not added again")

		require.NoError(t, w.Renew(ctx, a))
		require.NoError(t, w.Renew(ctx, a))
		resumed, err := w.Begin(ctx, a)
		require.NoError(t, err)
		assert.Len(t, resumed.Recorded, 2, "a repeated begin sees what was recorded since")
		assert.Equal(t, "1", w.field(c.ID, "seq"), "and forgets no sequence number")

		_, err = w.Record(ctx, a, results(c, 2, 3), job.Extra{})
		require.NoError(t, err)
		y := job.Extra{Seq: 2, Usage: job.Usage{Calls: 1}}
		twice(t, w, func() (struct{}, error) { return none(w.Finish(ctx, a, first.Kept, y)) })
		assert.Equal(t, int64(9), w.read(c.ID).Usage.Calls)

		twice(t, w, func() (*job.Job, error) { return w.Read(ctx, c.ID) })
		twice(t, w, func() ([]job.Rewritten, error) { _, rs, err := w.Results(ctx, c.ID); return rs, err })
		twice(t, w, func() (struct{}, error) { return none(w.Acquire(ctx, c)) }) // though it has ended
		twice(t, w, func() (struct{}, error) { return none(w.Applied(ctx, c.ID, shownAt)) })
		twice(t, w, func() (struct{}, error) { return none(w.Finish(ctx, a, first.Kept, y)) })
		twice(t, w, func() (struct{}, error) { return none(w.Erase(ctx, w.target, c.ID)) })
		twice(t, w, func() (job.Verdict, error) { return w.Inspect(ctx, c.Ref, lease) })
	})
}

func TestStore_Acquire_repeatWhoeverHoldsTheClaim(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		ended := w.running(1)
		w.cancel(ended)
		holder := w.running(1)
		w.unchanged(t, func() { require.NoError(t, w.Acquire(ctx, ended)) })
		assert.Equal(t, string(holder.ID), w.rdb.Get(ctx, runKey(w.target)).Val())
	})
}

func TestStore_Finish_repeatKeepsWhatIsKept(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		old := w.succeeded(1)
		c, a, b := w.worked(1)
		require.Equal(t, old.ID, b.Kept)
		twice(t, w, func() (struct{}, error) { return none(w.Finish(ctx, a, b.Kept, job.Extra{})) })
		_, _, err := w.Results(ctx, c.ID)
		require.NoError(t, err)
		w.succeeded(1)
		w.unchanged(t, func() {
			require.NoError(t, w.Finish(ctx, a, b.Kept, job.Extra{}), "also after a newer job has finished")
		})
	})
}

// fail's repeat, under each guard and with each code, and as an answer to
// whoever asks for the same end.
func TestStore_Fail_repeats(t *testing.T) {
	for _, code := range job.Codes() {
		for _, guard := range []job.Guard{job.GuardWorker, job.GuardStart, job.GuardCancel} {
			t.Run(string(code)+" "+string(guard), func(t *testing.T) {
				onMini(t, func(t *testing.T, w *world) { failTwice(t, w, guard, code) })
			})
		}
	}
	onReal(t, Options{}, func(t *testing.T, w *world) {
		for _, guard := range []job.Guard{job.GuardWorker, job.GuardStart, job.GuardCancel} {
			failTwice(t, w, guard, job.CodeLLMFailed)
		}
	})
}

func failTwice(t *testing.T, w *world, guard job.Guard, code job.Code) {
	t.Helper()
	c, token, x := w.running(2), "", job.Extra{}
	if guard == job.GuardWorker {
		token, x = "t", job.Extra{Seq: 1, Usage: job.Usage{Calls: 3}}
		_, err := w.Begin(ctx, attempt(c, token))
		require.NoError(t, err)
		_, err = w.Record(ctx, attempt(c, token), results(c, 0, 1), job.Extra{})
		require.NoError(t, err)
	}
	f := job.Failure{Code: code, Detail: "status=400", CommentID: "c1"}
	twice(t, w, func() (struct{}, error) { return none(w.Fail(ctx, c.Ref, guard, token, f, x)) })
	j := w.read(c.ID)
	assert.Equal(t, job.Failed, j.Status)
	assert.Equal(t, &f, j.Failure)
	if guard == job.GuardWorker {
		assert.Equal(t, 1, j.Done, "what was recorded is still told")
		assert.Equal(t, int64(4), j.Usage.Calls)
	}
	assert.Zero(t, w.rdb.Exists(ctx, runKey(w.target), inKey(c.ID), outKey(c.ID)).Val(), "free at once, texts gone")
}

func TestStore_Fail_overdueRepeats(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		c := w.running(1)
		w.advance(deadline)
		for range 2 {
			err := w.Fail(ctx, c.Ref, job.GuardCancel, "", job.Failure{Code: job.CodeCanceled}, job.Extra{})
			require.ErrorIs(t, err, job.ErrOverdue)
			assert.Equal(t, job.CodeDeadlineExceeded, w.read(c.ID).Failure.Code)
		}
		err := w.Fail(ctx, c.Ref, job.GuardCancel, "", job.Failure{Code: job.CodeDeadlineExceeded}, job.Extra{})
		require.NoError(t, err, "the same end was asked for")
	})
}

func TestStore_Inspect_repeatDispatchesOnce(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		c := w.running(1)
		w.advance(lease)
		v, err := w.Inspect(ctx, c.Ref, lease)
		require.NoError(t, err)
		assert.Equal(t, job.Redispatch, v.Kind)
		w.unchanged(t, func() {
			v, err = w.Inspect(ctx, c.Ref, lease)
			require.NoError(t, err)
			assert.Equal(t, job.Left, v.Kind, "two dispatches lie a lease apart")
		})
	})
}
