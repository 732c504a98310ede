package handler

import (
	"context"
	"errors"
	"fmt"

	"sunhwa/shared/job"
)

// end writes what the run came to. No caller is left by now.
func (r *workerRun) end(ctx context.Context) error {
	stop := r.stopped()
	if stop == nil && int(r.answered.Load()) < len(r.tasks) {
		// Calls were cut off and nothing stopped them: their time is over.
		s := r.timeUp(ctx, nil)
		stop = &s
	}
	if stop == nil {
		if stop = r.finish(ctx); stop == nil {
			r.report.Outcome = WorkerSucceeded
			r.log.InfoContext(ctx, "worker: succeeded", "calls", r.report.Usage.Calls, "memoHits", r.report.Usage.MemoHits,
				"totalTokens", r.report.Usage.TotalTokens)
			return nil
		}
	}
	switch stop.kind {
	case workerStopQuiet:
		r.report.Outcome = WorkerStopped
		r.log.InfoContext(ctx, "worker: stopped, the job is no longer this attempt's", "reason", stop.err.Error())
		return nil
	case workerStopError:
		return fmt.Errorf("job left to another attempt: %w", stop.err)
	}
	extra := r.lastExtra()
	r.report.Usage = r.report.Usage.Plus(extra.Usage)
	return r.fail(ctx, r.last, stop.failure, extra)
}

// finish makes the job SUCCESS, or says what stops it. When the store misses
// results (a failover took them back) everything held is recorded once more. No
// usage is waiting by now: the recorder ends only when all of it is written.
func (r *workerRun) finish(ctx context.Context) *workerStop {
	finish := func() error {
		return r.write(func(ctx context.Context) error {
			return r.w.store.Finish(ctx, r.att, r.begun.Kept, job.Extra{})
		})
	}
	err := finish()
	if errors.Is(err, job.ErrIncomplete) {
		r.log.WarnContext(ctx, "worker: results missing, recording them again")
		if err = r.recordAgain(); err == nil {
			err = finish()
		}
	}
	if err == nil {
		return nil
	}
	r.refused(ctx, fmt.Errorf("finish: %w", err))
	return r.stopped()
}

// recordAgain records every result of the job this attempt knows. What is stored
// already stays as it is and costs nothing.
func (r *workerRun) recordAgain() error {
	for rest := r.rec.all; len(rest) > 0; {
		n := min(len(rest), workerBatch)
		if _, err := r.send(&workerSent{results: rest[:n]}); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// fail makes the job FAILED, repeated while the store is unavailable and base
// lasts. It returns nil when the job is terminal or another attempt's, whoever
// saw to it.
func (r *workerRun) fail(ctx, base context.Context, f job.Failure, extra job.Extra) error {
	err := r.w.repeat(base, base, func() {}, func(ctx context.Context) error {
		return r.w.store.Fail(ctx, r.att.Ref, job.GuardWorker, r.att.Token, f, extra)
	})
	var state *job.StateError
	switch {
	case err == nil:
	case errors.Is(err, job.ErrOverdue):
		f.Code = job.CodeDeadlineExceeded
	case errors.Is(err, job.ErrStale), errors.Is(err, job.ErrNotFound), errors.As(err, &state):
		r.report.Outcome = WorkerStopped
		r.log.InfoContext(ctx, "worker: stopped, the job is no longer this attempt's", "reason", err.Error())
		return nil
	default:
		return fmt.Errorf("fail as %s: %w", f.Code, err)
	}
	r.report.Outcome, r.report.Code = WorkerFailed, f.Code
	r.log.WarnContext(ctx, "worker: failed", "code", string(f.Code), "detail", f.Detail)
	return nil
}

// rescue ends a run that panicked in Handle's own goroutine: callers are stopped
// and waited for, and a job that was begun becomes FAILED(INTERNAL).
func (r *workerRun) rescue(ctx context.Context, p any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("worker: panic while failing the job: %T", p)
		}
	}()
	r.logPanic(p)
	r.haltCalls()
	r.callers.Wait()
	if r.begun == nil || r.last == nil {
		return fmt.Errorf("worker: panic before the job was begun: %T", p)
	}
	return r.fail(ctx, r.last, job.Failure{Code: job.CodeInternal}, job.Extra{})
}
