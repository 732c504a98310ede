package handler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"sunhwa/shared/job"
)

// workerAttempts is an attempt's hold on a job: every write a worker makes while
// the job is RUNNING, and the move to SUCCESS.
type workerAttempts interface {
	Begin(ctx context.Context, a job.Attempt) (*job.Begun, error)
	Record(ctx context.Context, a job.Attempt, results []job.Result, extra job.Extra) (job.Progress, error)
	Renew(ctx context.Context, a job.Attempt) error
	Finish(ctx context.Context, a job.Attempt, kept job.ID, extra job.Extra) error
}

// workerFailer moves a job to FAILED.
type workerFailer interface {
	Fail(ctx context.Context, ref job.Ref, guard job.Guard, token string, f job.Failure, extra job.Extra) error
}

// workerRecaller looks answers up that earlier jobs of the target have paid for.
type workerRecaller interface {
	Recall(ctx context.Context, t job.Target, memoKeys []string) (map[string]string, error)
}

type workerStore interface {
	workerAttempts
	workerFailer
	workerRecaller
}

// workerRewriter asks the model for one comment. It ends with ctx; its usage is
// right also when it returns an error.
type workerRewriter interface {
	Rewrite(ctx context.Context, spec job.Spec, text string) (string, job.Usage, error)
}

// WorkerOptions tune a Worker. The zero value of each means its default.
type WorkerOptions struct {
	Concurrency  int           // model calls side by side, per job; default 16
	Lease        time.Duration // hold on the job from each write on; default 45 s
	MaxJobTokens int64         // total tokens a job may use; 0 = no limit
	// Margin is what is kept of the function's time for the last writes; default
	// 10 s, and never more than a quarter of the time the function was given.
	Margin time.Duration
	// After and Now are the clock of the waits (backoff, lease) and of the
	// reported duration; nil = package time. Now is called side by side, and its
	// times should have a monotonic reading. The deadline is the context's.
	After  func(time.Duration) <-chan time.Time
	Now    func() time.Time
	Logger *slog.Logger
	// Observe is told once what each invocation came to; nil = nobody. It must
	// not block.
	Observe func(context.Context, WorkerReport)
}

// WorkerOutcome says what one invocation came to.
type WorkerOutcome string

const (
	// WorkerSucceeded: this invocation made the job SUCCESS.
	WorkerSucceeded WorkerOutcome = "succeeded"
	// WorkerFailed: this invocation made the job FAILED, or found it overdue.
	WorkerFailed WorkerOutcome = "failed"
	// WorkerIdle: begin refused; there was nothing to do here.
	WorkerIdle WorkerOutcome = "idle"
	// WorkerStopped: the attempt was replaced or the job ended elsewhere.
	WorkerStopped WorkerOutcome = "stopped"
	// WorkerUnsaid: the job's state could not be written; Handle returned an error.
	WorkerUnsaid WorkerOutcome = "unsaid"
)

// WorkerReport is what Observe gets: numbers and names, no text.
type WorkerReport struct {
	Ref      job.Ref
	Attempt  int // 0 when begin refused
	Outcome  WorkerOutcome
	Code     job.Code  // set when Outcome is WorkerFailed
	Usage    job.Usage // what this invocation's calls cost and its memo saved
	Retries  int64     // calls beyond the first of each comment that was answered
	Duration time.Duration
}

const (
	// workerTryLimit bounds one try of a store call, so that a retry of the
	// store's own (a migrating slot) gives control back while calls are going on.
	workerTryLimit = 4 * time.Second
	// workerBeginWait bounds the wait for a first answer when the function's time
	// has no end (the local stack). An error after it is retried by the invoker.
	workerBeginWait = 5 * time.Minute

	workerBackoffMin = 100 * time.Millisecond
	workerBackoffMax = 2 * time.Second
)

// Worker runs a job: begin, recall, model calls side by side, each answer
// recorded as it comes, then finish or fail. It is safe for concurrent use.
type Worker struct {
	store workerStore
	llm   workerRewriter
	o     WorkerOptions
}

// NewWorker returns a Worker on store and llm.
func NewWorker(store workerStore, llm workerRewriter, o WorkerOptions) *Worker {
	if o.Concurrency <= 0 {
		o.Concurrency = 16
	}
	if o.Lease <= 0 {
		o.Lease = 45 * time.Second
	}
	if o.Margin <= 0 {
		o.Margin = 10 * time.Second
	}
	if o.After == nil {
		o.After = time.After
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return &Worker{store: store, llm: llm, o: o}
}

// Handle runs the job that ev names, as one attempt under a token of its own,
// and returns when no goroutine of it is left.
//
// It returns nil for everything it has recorded or that is recorded already:
// done, failed, duplicate, replaced, overdue. It returns an error only when it
// could not say so: a malformed event, an unknown schema (a newer worker can run
// that job), a store that stayed unavailable, or ctx canceled. The job is then
// still RUNNING and its lease, the sweeper and the deadline look after it.
func (w *Worker) Handle(ctx context.Context, ev job.Event) (err error) {
	ref, err := ev.Ref()
	if err != nil {
		w.o.Logger.ErrorContext(ctx, "worker: malformed event", "error", err)
		return fmt.Errorf("worker event: %w", err)
	}
	token, err := job.NewToken()
	if err != nil {
		return err
	}
	r := newWorkerRun(w, job.Attempt{Ref: ref, Token: token, Lease: w.o.Lease})
	started := w.o.Now()
	defer func() { r.cancel() }()
	defer func() {
		if p := recover(); p != nil {
			err = r.rescue(ctx, p)
		}
		r.report.Duration = w.o.Now().Sub(started)
		if err != nil {
			r.report.Outcome, r.report.Code = WorkerUnsaid, ""
			r.log.ErrorContext(ctx, "worker: outcome not recorded", "error", err)
		}
		if w.o.Observe != nil {
			w.o.Observe(ctx, r.report)
		}
	}()
	return r.run(ctx)
}

// margin returns what is kept of the function's time, and the function's end if
// it has one.
func (w *Worker) margin(ctx context.Context) (time.Duration, time.Time, bool) {
	end, ok := ctx.Deadline()
	if !ok {
		return w.o.Margin, time.Time{}, false
	}
	return max(0, min(w.o.Margin, time.Until(end)/4)), end, true
}

// repeat runs do until it answers anything but "unavailable" and returns that
// answer. The first try is always made; between tries it waits, longer each time,
// and it gives up with the last answer when until ends. A try runs under base,
// for workerTryLimit at most. down is called at each unavailable answer.
func (w *Worker) repeat(base, until context.Context, down func(), do func(context.Context) error) error {
	for wait := workerBackoffMin; ; wait = min(2*wait, workerBackoffMax) {
		ctx, cancel := context.WithTimeout(base, workerTryLimit)
		err := do(ctx)
		cancel()
		if !workerUnavailable(err) || base.Err() != nil {
			return err
		}
		down()
		jitter := rand.N(wait / 2) //nolint:gosec // spreads retries, guards nothing
		select {
		case <-w.o.After(wait/2 + jitter):
		case <-until.Done():
		}
		if until.Err() != nil {
			return err
		}
	}
}

// workerUnavailable reports whether the store's outcome is unknown, so that the
// same call must be repeated. A try that ran out of its own time counts.
func workerUnavailable(err error) bool {
	return errors.Is(err, job.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
}
