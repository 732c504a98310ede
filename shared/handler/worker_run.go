package handler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"sunhwa/shared/job"
)

// workerRun is one attempt. Only the goroutine of Handle writes to the store;
// the callers hand it what came through the inbox.
type workerRun struct {
	w      *Worker
	att    job.Attempt
	log    *slog.Logger
	begun  *job.Begun // nil until begin has answered
	report WorkerReport

	deadline time.Time       // the worker's own: the job's, or the function's less the margin
	calls    context.Context // of every model call: ends at the deadline, with the parent, or at a stop
	work     context.Context // of every retry: as calls, but no stop ends it
	last     context.Context // of every write: outlives the deadline so that FAILED can be written
	cancel   context.CancelFunc
	// haltCalls ends calls and nothing else.
	haltCalls context.CancelFunc

	tasks    []workerTask
	next     atomic.Int64
	answered atomic.Int64
	callers  sync.WaitGroup
	inbox    *workerInbox
	gate     *workerGate

	mu   sync.Mutex
	stop *workerStop

	rec workerRecord // owned by the goroutine of Handle
}

// workerTask is one model call and the comments its answer is for: all those of
// the job with the same memo key. The first is the one that pays, the others
// count as memo hits. A fresh job uses no memo, so each of its comments has a
// task of its own.
type workerTask struct {
	key     string
	indexes []int
}

// workerStopKind orders the reasons to stop: a higher one replaces a lower one.
type workerStopKind int

const (
	workerStopError workerStopKind = iota - 1 // nothing can be said: Handle returns an error
	workerStopFail                            // the job becomes FAILED
	workerStopQuiet                           // the job is no longer this attempt's: no further write
)

type workerStop struct {
	kind    workerStopKind
	failure job.Failure // of workerStopFail
	err     error       // of the others
}

func newWorkerRun(w *Worker, att job.Attempt) *workerRun {
	return &workerRun{
		w: w, att: att,
		log:    w.o.Logger.With("jobId", string(att.ID), "tenant", att.Target.Tenant),
		report: WorkerReport{Ref: att.Ref, Outcome: WorkerIdle},
		inbox:  newWorkerInbox(),
		gate:   newWorkerGate(w.o.Now, att.Lease),
		cancel: func() {}, haltCalls: func() {},
	}
}

// run goes through the attempt from begin to its end.
func (r *workerRun) run(ctx context.Context) error {
	if ok, err := r.begin(ctx); !ok {
		return err
	}
	if limit := r.w.o.MaxJobTokens; limit > 0 && r.begun.Usage.TotalTokens > limit {
		r.halt(workerStop{failure: job.Failure{Code: job.CodeBudgetExceeded}})
		return r.end(ctx)
	}
	if err := r.plan(ctx); err != nil {
		r.refused(ctx, err)
		return r.end(ctx)
	}
	for range min(r.w.o.Concurrency, len(r.tasks)) {
		r.inbox.enter()
		r.callers.Go(r.caller)
	}
	r.record(ctx)
	r.callers.Wait()
	return r.end(ctx)
}

// begin takes the job. It answers false when the invocation is over: refused
// (err nil: a duplicate, exhausted, ended or gone job), or unsaid.
func (r *workerRun) begin(ctx context.Context) (bool, error) {
	margin, functionEnd, bounded := r.w.margin(ctx)
	until, cancelWait := context.WithTimeout(ctx, workerBeginWait)
	if bounded {
		cancelWait()
		until, cancelWait = context.WithDeadline(ctx, functionEnd.Add(-margin))
	}
	defer cancelWait()
	var begun *job.Begun
	err := r.w.repeat(ctx, until, func() {}, r.gate.leased(func(ctx context.Context) (err error) {
		begun, err = r.w.store.Begin(ctx, r.att)
		return err
	}))
	var state *job.StateError
	switch {
	case err == nil:
	case errors.Is(err, job.ErrOverdue):
		// fail looks at the deadline before the token, so the job becomes
		// FAILED(DEADLINE_EXCEEDED) though this token never held it.
		return false, r.fail(ctx, until, job.Failure{Code: job.CodeDeadlineExceeded}, job.Extra{})
	case errors.Is(err, job.ErrBusy), errors.Is(err, job.ErrExhausted), errors.Is(err, job.ErrClaimLost),
		errors.Is(err, job.ErrNotFound), errors.As(err, &state):
		r.log.InfoContext(ctx, "worker: nothing to do", "reason", err.Error())
		return false, nil
	default:
		return false, fmt.Errorf("begin: %w", err)
	}

	r.begun, r.report.Attempt = begun, begun.Attempt
	r.log = r.log.With("attempt", begun.Attempt)
	r.deadline = time.Now().Add(begun.Remaining)
	if own := functionEnd.Add(-margin); bounded && own.Before(r.deadline) {
		// Only a function whose time-out is below JOB_DEADLINE comes here. The
		// job fails as DEADLINE_EXCEEDED at the worker's deadline: a definite
		// state and a free target now, rather than a kill in the middle of calls.
		r.log.WarnContext(ctx, "worker: the function's time-out is shorter than the job's deadline; raise it")
		r.deadline = own
	}
	// Most of the margin is for the last writes, the rest for the return.
	var stopWork, stopLast context.CancelFunc
	r.last, stopLast = context.WithDeadline(context.WithoutCancel(ctx), r.deadline.Add(margin*3/4))
	r.work, stopWork = context.WithDeadline(ctx, r.deadline)
	r.calls, r.haltCalls = context.WithCancel(r.work)
	r.cancel = func() { r.haltCalls(); stopWork(); stopLast() }
	r.log.InfoContext(ctx, "worker: begun", "comments", len(begun.Comments), "recorded", len(begun.Recorded),
		"remainingMs", begun.Remaining.Milliseconds())
	return true, nil
}

// plan looks up what is paid already and makes a task of the rest. What it found
// goes to the inbox like any answer.
func (r *workerRun) plan(ctx context.Context) error {
	b := r.begun
	keys := make([]string, len(b.Comments))
	known := make(map[string]string) // of this job: recorded by an earlier attempt
	for i, c := range b.Comments {
		keys[i] = b.Spec.MemoKey(c.Text)
		if text, ok := b.Recorded[i]; ok {
			known[keys[i]] = text
			r.rec.all = append(r.rec.all, job.Result{Index: i, Text: text, MemoKey: keys[i]})
		}
	}
	task := make(map[string]int) // memo key -> its place in groups
	var groups []workerTask
	for i, key := range keys {
		if _, ok := b.Recorded[i]; ok {
			continue
		}
		at, ok := task[key]
		if !ok || b.Fresh {
			at = len(groups)
			task[key] = at
			groups = append(groups, workerTask{key: key})
		}
		groups[at].indexes = append(groups[at].indexes, i)
	}
	if b.Fresh || len(groups) == 0 {
		r.tasks = groups
		return nil
	}
	var ask []string
	for _, g := range groups {
		if _, ok := known[g.key]; !ok {
			ask = append(ask, g.key)
		}
	}
	if len(ask) > 0 {
		var found map[string]string
		err := r.write(func(ctx context.Context) (err error) {
			found, err = r.w.store.Recall(ctx, r.att.Target, ask)
			return err
		})
		if err != nil {
			return fmt.Errorf("recall: %w", err)
		}
		for key, text := range found {
			known[key] = text
		}
	}
	for _, g := range groups {
		text, ok := known[g.key]
		if !ok {
			r.tasks = append(r.tasks, g)
			continue
		}
		r.inbox.results(workerAnswers(g, text, job.Usage{MemoHits: 1}))
	}
	r.log.DebugContext(ctx, "worker: planned", "calls", len(r.tasks))
	return nil
}

// halt stops all calls for the first reason given, or a weightier one.
func (r *workerRun) halt(s workerStop) {
	r.mu.Lock()
	if r.stop == nil || s.kind > r.stop.kind {
		r.stop = &s
	}
	r.mu.Unlock()
	r.haltCalls()
}

// stopped returns why the run stops, nil while nothing has stopped it.
func (r *workerRun) stopped() *workerStop {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stop
}
