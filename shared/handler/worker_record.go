package handler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sunhwa/shared/job"
)

// workerBatch is how many results one record carries at most: 100 results are
// some 800 arguments (ElastiCache Serverless takes 3,999 a request).
const workerBatch = 100

// workerRecord is the recorder's book. Every answer is in exactly one place:
// held, sent, or all.
type workerRecord struct {
	held   []job.Result // came, not yet sent
	usage  job.Usage    // of calls that gave no result, not yet sent
	sent   *workerSent  // under way, or refused; nil once acknowledged
	all    []job.Result // recorded, as far as this attempt knows
	seq    int64        // last Extra.Seq used
	closed bool         // no more records
}

// workerSent is one record as it was first sent: a repeat after a lost reply
// must be identical, or its usage would be counted twice.
type workerSent struct {
	results []job.Result
	extra   job.Extra
	unsure  bool // some try's reply was lost: it may have been recorded
}

// record is the recorder: it writes what comes, batched by what is waiting, and
// renews the lease while nothing comes. It returns when no caller is left and
// nothing more can or need be written.
func (r *workerRun) record(ctx context.Context) {
	renew := r.w.o.After(r.att.Lease / 3)
	for {
		results, spent, idle := r.inbox.take()
		r.rec.held = append(r.rec.held, results...)
		r.rec.usage = r.rec.usage.Plus(spent)
		switch {
		case r.waiting():
			r.flush(ctx)
			renew = r.w.o.After(r.att.Lease / 3)
			continue
		case idle:
			return
		}
		select {
		case <-r.inbox.notify:
		case <-r.gate.ask:
			if r.gate.lapsed() { // no record has extended it meanwhile
				r.log.WarnContext(ctx, "worker: the lease may have passed, starting no call until it is renewed")
			}
			r.renew(ctx)
			renew = r.w.o.After(r.att.Lease / 3)
		case <-renew:
			r.renew(ctx)
			renew = r.w.o.After(r.att.Lease / 3)
		}
	}
}

// renew extends the lease, and stops the run when the answer says so. Once closed
// the run has stopped already.
func (r *workerRun) renew(ctx context.Context) {
	if r.rec.closed {
		return
	}
	r.refused(ctx, r.write(r.gate.leased(func(ctx context.Context) error { return r.w.store.Renew(ctx, r.att) })))
}

// waiting says whether there is something to record. Bare usage of a job that is
// about to fail is not: it goes with fail.
func (r *workerRun) waiting() bool {
	if r.rec.closed {
		return false
	}
	stop := r.stopped()
	failing := stop != nil && stop.kind == workerStopFail
	return len(r.rec.held) > 0 || r.rec.usage != (job.Usage{}) && !failing
}

// flush records one batch of what is held, and stops the run when the answer
// says so.
func (r *workerRun) flush(ctx context.Context) {
	n := min(len(r.rec.held), workerBatch)
	sent := &workerSent{results: r.rec.held[:n:n], extra: r.extra()}
	r.rec.held, r.rec.sent = r.rec.held[n:], sent
	progress, err := r.send(sent)
	if err != nil {
		r.refused(ctx, fmt.Errorf("record: %w", err))
		return
	}
	r.rec.sent = nil
	r.rec.all = append(r.rec.all, sent.results...)
	for _, res := range sent.results {
		r.report.Usage = r.report.Usage.Plus(res.Usage)
		r.report.Retries += max(res.Usage.Calls-1, 0)
	}
	r.report.Usage = r.report.Usage.Plus(sent.extra.Usage)
	if limit := r.w.o.MaxJobTokens; limit > 0 && progress.Usage.TotalTokens > limit {
		r.halt(workerStop{failure: job.Failure{Code: job.CodeBudgetExceeded}})
	}
}

// send makes one record, repeated as it is until it is answered or the time for
// it is over.
func (r *workerRun) send(s *workerSent) (progress job.Progress, err error) {
	err = r.write(r.gate.leased(func(ctx context.Context) (err error) {
		progress, err = r.w.store.Record(ctx, r.att, s.results, s.extra)
		s.unsure = s.unsure || workerUnavailable(err)
		return err
	}))
	return progress, err
}

// extra numbers the usage that is waiting, and takes it. The zero Extra when
// there is none.
func (r *workerRun) extra() job.Extra {
	if r.rec.usage == (job.Usage{}) {
		return job.Extra{}
	}
	r.rec.seq++
	e := job.Extra{Seq: r.rec.seq, Usage: r.rec.usage}
	r.rec.usage = job.Usage{}
	return e
}

// lastExtra is the usage that goes with fail: all that was paid and not
// recorded. A record whose reply was lost may have counted its own already:
// then only that same Extra is safe to send, and what came later is left out
// rather than counted twice.
func (r *workerRun) lastExtra() job.Extra {
	paid := func(rs []job.Result) {
		for _, res := range rs {
			u := res.Usage
			u.MemoHits = 0 // nothing was paid, and no result came of it
			r.rec.usage = r.rec.usage.Plus(u)
		}
	}
	if s := r.rec.sent; s != nil {
		r.rec.sent = nil
		switch {
		case s.unsure && s.extra.Seq > 0:
			return s.extra
		case !s.unsure:
			paid(s.results)
			r.rec.usage = r.rec.usage.Plus(s.extra.Usage)
		}
	}
	paid(r.rec.held)
	r.rec.held = nil
	return r.extra()
}

// write makes one write of a RUNNING job, repeated while the store is
// unavailable, until the deadline. Meanwhile no new call starts; those under way
// go on and their answers wait in the inbox. A refusal does not let calls start
// again: the run is about to stop.
func (r *workerRun) write(do func(context.Context) error) error {
	err := r.w.repeat(r.last, r.work, func() {
		if r.gate.set(true) {
			r.log.Warn("worker: store unavailable, holding answers and starting no call")
		}
	}, do)
	if err == nil && r.gate.set(false) {
		r.log.Info("worker: store available again")
	}
	return err
}

// refused turns the answer of a write into a stop of the run. nil is none.
func (r *workerRun) refused(ctx context.Context, err error) {
	if err == nil {
		return
	}
	r.rec.closed = true
	var state *job.StateError
	switch {
	case errors.Is(err, job.ErrOverdue):
		r.halt(workerStop{failure: job.Failure{Code: job.CodeDeadlineExceeded}})
	case errors.Is(err, job.ErrClaimLost), errors.Is(err, job.ErrStale), errors.Is(err, job.ErrNotFound), errors.As(err, &state):
		r.halt(workerStop{kind: workerStopQuiet, err: err})
	case errors.Is(err, job.ErrOutOfRange), errors.Is(err, job.ErrIncomplete):
		r.log.ErrorContext(ctx, "worker: the store refused a write of ours", "error", err)
		r.halt(workerStop{failure: job.Failure{Code: job.CodeInternal}})
	case workerUnavailable(err):
		r.halt(r.timeUp(ctx, err))
	default:
		r.halt(workerStop{kind: workerStopError, err: err})
	}
}

// timeUp says why the run's time is over: its deadline (the job fails), or the
// invocation was canceled (the job is left to another attempt).
func (r *workerRun) timeUp(ctx context.Context, cause error) workerStop {
	if err := ctx.Err(); err != nil && time.Now().Before(r.deadline) {
		return workerStop{kind: workerStopError, err: errors.Join(err, cause)}
	}
	return workerStop{failure: job.Failure{Code: job.CodeDeadlineExceeded}}
}
