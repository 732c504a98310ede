package jobstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/shared/job"
)

// Complaint (d): a SUCCESS that comes late loses, however the job failed, and
// whoever has the target by then keeps every key of theirs.
func TestStore_Finish_lateAfterFailure(t *testing.T) {
	ways := []struct {
		name string
		end  func(t *testing.T, w *world, c job.Creation)
		code job.Code
	}{
		{"by status read", func(_ *testing.T, w *world, c job.Creation) {
			w.advance(deadline)
			w.read(c.ID)
		}, job.CodeDeadlineExceeded},
		{"by cancel", func(_ *testing.T, w *world, c job.Creation) { w.cancel(c) }, job.CodeCanceled},
		{"by the sweeper", func(t *testing.T, w *world, c job.Creation) {
			w.advance(deadline)
			v, err := w.Inspect(ctx, c.Ref, lease)
			require.NoError(t, err)
			assert.Equal(t, job.Verdict{Kind: job.Ended, Code: job.CodeDeadlineExceeded}, v)
		}, job.CodeDeadlineExceeded},
		{"by erase", func(t *testing.T, w *world, c job.Creation) {
			require.NoError(t, w.Erase(ctx, w.target, c.ID))
		}, job.CodeCanceled},
		{"by a new owner", func(t *testing.T, w *world, c job.Creation) {
			w.advance(deadline)
			next := begunWith(w, 1)
			require.Equal(t, string(next.ID), w.rdb.Get(ctx, runKey(w.target)).Val())
			w.read(c.ID)
		}, job.CodeDeadlineExceeded},
	}
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			onEach(t, Options{}, func(t *testing.T, w *world) {
				c, a, _ := w.worked(2)
				way.end(t, w, c)
				w.unchanged(t, func() {
					assertState(t, w.Finish(ctx, a, "", job.Extra{Seq: 1, Usage: job.Usage{Calls: 1}}), job.Failed, way.code)
					_, err := w.Record(ctx, a, results(c, 0, 2), job.Extra{})
					assertState(t, err, job.Failed, way.code)
					assertState(t, w.Renew(ctx, a), job.Failed, way.code)
					_, err = w.Begin(ctx, a)
					assertState(t, err, job.Failed, way.code)
				})
				assert.Equal(t, way.code, w.read(c.ID).Failure.Code)
			})
		})
	}
}

// The deadline decides by itself: nobody polled, nobody wrote FAILED, and the
// SUCCESS loses all the same, with the target already another's or free.
func TestStore_Finish_lateAfterDeadline(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		c, a, _ := w.worked(2)
		w.advance(deadline)
		w.unchanged(t, func() {
			require.ErrorIs(t, w.Finish(ctx, a, "", job.Extra{}), job.ErrOverdue)
		})
		next := w.running(1)
		w.unchanged(t, func() {
			require.ErrorIs(t, w.Finish(ctx, a, "", job.Extra{}), job.ErrOverdue)
		})
		require.ErrorIs(t, w.Fail(ctx, c.Ref, job.GuardWorker, "t", job.Failure{Code: job.CodeInternal}, job.Extra{}), job.ErrOverdue)
		assert.Equal(t, string(next.ID), w.rdb.Get(ctx, runKey(w.target)).Val(), "the new owner's claim stays")
	})
}

// One millisecond decides. Only miniredis has a clock that stands still.
func TestStore_Finish_atTheMillisecond(t *testing.T) {
	onMini(t, func(t *testing.T, w *world) {
		c, a, _ := w.worked(1)
		w.advance(deadline - time.Millisecond)
		require.NoError(t, w.Finish(ctx, a, "", job.Extra{}))
		assert.Equal(t, job.Success, w.read(c.ID).Status)

		c, a, b := w.worked(1)
		w.advance(deadline)
		require.ErrorIs(t, w.Finish(ctx, a, b.Kept, job.Extra{}), job.ErrOverdue)
		j := w.read(c.ID)
		assert.Equal(t, job.CodeDeadlineExceeded, j.Failure.Code)
		assert.Equal(t, j.DeadlineAt, j.FinishedAt, "it ended at its deadline, whoever noticed when")
		assert.Equal(t, 1, j.Done)
	})
}

// A job without a TTL (somebody took it away) counts as overdue.
func TestStore_jobWithoutTTLIsOverdue(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		c, a, _ := w.worked(1)
		require.NoError(t, w.rdb.Persist(ctx, jobKey(c.ID)).Err())
		require.ErrorIs(t, w.Finish(ctx, a, "", job.Extra{}), job.ErrOverdue)
		assert.Equal(t, job.CodeDeadlineExceeded, w.read(c.ID).Failure.Code)
		assert.Empty(t, hasNoTTL(w.snapshot()), "its end gives it one")
	})
}

// The old worker's every write is refused with a code of its own once the lease
// went to another attempt, and the new owner's keys are as they were.
func TestStore_oldAttemptIsStale(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		c := begunWith(w, 1)
		old := attempt(c, "t")
		w.advance(lease)
		b, err := w.Begin(ctx, attempt(c, "new"))
		require.NoError(t, err)
		assert.Equal(t, 2, b.Attempt)
		assert.Len(t, b.Recorded, 1, "what was paid for is not paid again")
		_, err = w.Record(ctx, attempt(c, "new"), results(c, 1, 2), job.Extra{})
		require.NoError(t, err)
		x := job.Extra{Seq: 7, Usage: job.Usage{Calls: 1}}
		for _, token := range []string{"t", "", "ne", "new "} {
			old.Token = token
			w.unchanged(t, func() {
				_, err := w.Record(ctx, old, results(c, 0, 2), x)
				require.ErrorIs(t, err, job.ErrStale)
				require.ErrorIs(t, w.Renew(ctx, old), job.ErrStale)
				require.ErrorIs(t, w.Finish(ctx, old, "", x), job.ErrStale)
				err = w.Fail(ctx, c.Ref, job.GuardWorker, token, job.Failure{Code: job.CodeInternal}, x)
				require.ErrorIs(t, err, job.ErrStale)
			})
		}
		require.NoError(t, w.Finish(ctx, attempt(c, "new"), "", job.Extra{}))
	})
}

// A lapsed lease revokes nothing by itself.
func TestStore_lapsedLeaseStillWrites(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		c := begunWith(w, 1)
		w.advance(2 * lease)
		_, err := w.Record(ctx, attempt(c, "t"), results(c, 1, 2), job.Extra{})
		require.NoError(t, err)
		_, err = w.Begin(ctx, attempt(c, "new"))
		require.ErrorIs(t, err, job.ErrBusy, "record renewed the lease")
		w.advance(2 * lease)
		require.NoError(t, w.Finish(ctx, attempt(c, "t"), "", job.Extra{}))
	})
}

// Complaint (e): missing, state, deadline, claim, token: the first that does not
// hold gives the answer, though all that come after it fail too.
func TestStore_checkOrder(t *testing.T) {
	type call struct {
		name string
		do   func(w *world, a job.Attempt) error
	}
	calls := []call{
		{"record", func(w *world, a job.Attempt) error {
			_, err := w.Record(ctx, a, []job.Result{{Index: 99}}, job.Extra{})
			return err
		}},
		{"renew", func(w *world, a job.Attempt) error { return w.Renew(ctx, a) }},
		{"finish", func(w *world, a job.Attempt) error { return w.Finish(ctx, a, "", job.Extra{}) }},
		{"begin", func(w *world, a job.Attempt) error { _, err := w.Begin(ctx, a); return err }},
	}
	onEach(t, Options{MaxAttempts: 1}, func(t *testing.T, w *world) {
		for _, call := range calls {
			t.Run(call.name, func(t *testing.T) {
				begin := call.name == "begin"
				c := begunWith(w, 1)
				wrong := attempt(c, "wrong")
				refused := func(want error) {
					t.Helper()
					w.unchanged(t, func() { require.ErrorIs(t, call.do(w, wrong), want) })
				}
				// Everything right but the token.
				if begin {
					refused(job.ErrBusy)
					w.advance(lease)
					refused(job.ErrExhausted)
				} else {
					refused(job.ErrStale)
				}
				require.NoError(t, w.rdb.Set(ctx, runKey(w.target), "another", deadline).Err())
				refused(job.ErrClaimLost)
				w.advance(deadline)
				refused(job.ErrOverdue)
				w.read(c.ID)
				w.unchanged(t, func() { assertState(t, call.do(w, wrong), job.Failed, job.CodeDeadlineExceeded) })
				w.clear()
				refused(job.ErrNotFound)
			})
		}
	})
}
