package handler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"sunhwa/shared/job"
)

// sweepStore walks the watched jobs and decides on each.
type sweepStore interface {
	Watched(ctx context.Context, start int, visit func(context.Context, job.Ref) error) (int, error)
	Inspect(ctx context.Context, ref job.Ref, lease time.Duration) (job.Verdict, error)
	EvictionPolicy(ctx context.Context) (string, error)
}

// sweepDispatcher invokes a worker asynchronously.
type sweepDispatcher interface {
	Dispatch(ctx context.Context, ref job.Ref) error
}

// SweeperOptions tune a Sweeper. The zero value of each means its default.
type SweeperOptions struct {
	Lease time.Duration // between two dispatches of one job; default 45 s
	// Budget bounds one pass; default 50 s, inside the schedule's minute. A pass
	// also ends Margin (default 5 s, at most a quarter of what is left) before
	// its context does.
	Budget time.Duration
	Margin time.Duration
	Start  func() int // shard index a pass begins at; nil = random
	Logger *slog.Logger
}

// SweepCounts is what one pass did.
type SweepCounts struct {
	Shards       int              `json:"shards"`       // walked
	Inspected    int              `json:"inspected"`    // jobs decided on
	Redispatched int              `json:"redispatched"` // workers invoked
	Refused      int              `json:"refused"`      // invocations definitely refused; the next pass tries again
	Ended        map[job.Code]int `json:"ended"`        // jobs made FAILED, by code
	Forgotten    int              `json:"forgotten"`    // missing or terminal jobs taken off the watch list
	Left         int              `json:"left"`         // jobs in good hands
	Errors       int              `json:"errors"`       // jobs or shards that could not be looked at, ambiguous invocations
	Unfinished   bool             `json:"unfinished"`   // the time budget ended the pass
	// OldestRunning is the age of the oldest RUNNING job seen, in nanoseconds.
	OldestRunning time.Duration `json:"oldestRunningNs"`
}

// sweepDispatchLimit keeps one silent invocation from using up the pass.
const sweepDispatchLimit = 5 * time.Second

// Sweeper finds jobs whose worker was never delivered or is lost, and ends those
// that cannot be saved. Passes may run at once: every decision is made, and
// noted, inside the store, so one of them acts on it.
type Sweeper struct {
	store  sweepStore
	invoke sweepDispatcher
	o      SweeperOptions

	policyAsked atomic.Bool
}

// NewSweeper returns a Sweeper on store and d.
func NewSweeper(store sweepStore, d sweepDispatcher, o SweeperOptions) *Sweeper {
	if o.Lease <= 0 {
		o.Lease = 45 * time.Second
	}
	if o.Budget <= 0 {
		o.Budget = 50 * time.Second
	}
	if o.Margin <= 0 {
		o.Margin = 5 * time.Second
	}
	if o.Start == nil {
		o.Start = func() int { return rand.N(job.Shards) } //nolint:gosec // spreads passes, guards nothing
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return &Sweeper{store: store, invoke: d, o: o}
}

// Handle makes one pass over all watched jobs, from a random shard on, and
// returns what it did. It goes on after an error on one job or shard and counts
// it; it returns an error only when no shard at all could be walked.
func (s *Sweeper) Handle(ctx context.Context) (SweepCounts, error) {
	counts := SweepCounts{Ended: map[job.Code]int{}}
	budget := s.o.Budget
	if end, ok := ctx.Deadline(); ok {
		left := time.Until(end)
		budget = min(budget, left-min(s.o.Margin, left/4))
	}
	pass, cancel := context.WithTimeout(ctx, budget)
	defer cancel()

	s.checkPolicy(pass)
	var err error
	counts.Shards, err = s.store.Watched(pass, s.o.Start(), func(ctx context.Context, ref job.Ref) error {
		s.visit(ctx, ref, &counts)
		return nil // one job's trouble does not end the pass
	})
	counts.Unfinished = pass.Err() != nil
	for _, e := range sweepErrors(err) {
		if pass.Err() != nil && errors.Is(e, pass.Err()) {
			continue // the budget's end is no error
		}
		counts.Errors++
		s.o.Logger.ErrorContext(ctx, "sweeper: shard left out", "error", e)
	}
	s.report(ctx, counts)
	if counts.Shards == 0 && err != nil {
		return counts, fmt.Errorf("sweep: %w", err)
	}
	return counts, nil
}

// sweepErrors takes joined errors apart.
func sweepErrors(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok { // the join itself is asked for
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// visit decides on one job and does what was decided.
func (s *Sweeper) visit(ctx context.Context, ref job.Ref, counts *SweepCounts) {
	log := s.o.Logger.With("jobId", string(ref.ID), "tenant", ref.Target.Tenant)
	defer func() {
		if p := recover(); p != nil {
			counts.Errors++
			log.ErrorContext(ctx, "sweeper: panic", "type", fmt.Sprintf("%T", p))
		}
	}()
	verdict, err := s.store.Inspect(ctx, ref, s.o.Lease)
	if err != nil {
		if ctx.Err() == nil {
			counts.Errors++
			log.ErrorContext(ctx, "sweeper: inspect", "error", err)
		}
		return
	}
	counts.Inspected++
	counts.OldestRunning = max(counts.OldestRunning, verdict.Age)
	switch verdict.Kind {
	case job.Left:
		counts.Left++
	case job.Forgotten:
		counts.Forgotten++
	case job.Ended:
		counts.Ended[verdict.Code]++
		log.WarnContext(ctx, "sweeper: job failed", "code", string(verdict.Code))
	case job.Redispatch:
		s.redispatch(ctx, ref, log, counts)
	default:
		counts.Errors++
		log.ErrorContext(ctx, "sweeper: unknown verdict", "verdict", string(verdict.Kind))
	}
}

// redispatch invokes a worker. When that fails the job is left as it is: inspect
// gives it out again a lease later, and its deadline bounds the whole.
func (s *Sweeper) redispatch(ctx context.Context, ref job.Ref, log *slog.Logger, counts *SweepCounts) {
	try, cancel := context.WithTimeout(ctx, sweepDispatchLimit)
	defer cancel()
	switch err := s.invoke.Dispatch(try, ref); {
	case err == nil:
		counts.Redispatched++
		log.InfoContext(ctx, "sweeper: dispatched again")
	case errors.Is(err, job.ErrRefused):
		counts.Refused++
		log.ErrorContext(ctx, "sweeper: dispatch refused", "error", err)
	default:
		counts.Errors++
		log.ErrorContext(ctx, "sweeper: dispatch", "error", err)
	}
}

// report logs a pass in which anything happened.
func (s *Sweeper) report(ctx context.Context, c SweepCounts) {
	if c.Inspected+c.Errors+c.Refused == 0 && !c.Unfinished {
		return
	}
	ended := 0
	for _, n := range c.Ended {
		ended += n
	}
	s.o.Logger.InfoContext(ctx, "sweeper: pass", "shards", c.Shards, "inspected", c.Inspected,
		"redispatched", c.Redispatched, "refused", c.Refused, "ended", ended, "forgotten", c.Forgotten,
		"left", c.Left, "errors", c.Errors, "unfinished", c.Unfinished,
		"oldestRunningMs", c.OldestRunning.Milliseconds())
}

// checkPolicy warns, once a process, when the server would evict live jobs. A
// server that does not let itself be asked (a managed one) is not asked again;
// one that is unavailable is asked by the next pass.
func (s *Sweeper) checkPolicy(ctx context.Context) {
	if s.policyAsked.Load() {
		return
	}
	policy, err := s.store.EvictionPolicy(ctx)
	if errors.Is(err, job.ErrUnavailable) || ctx.Err() != nil || s.policyAsked.Swap(true) {
		return
	}
	if err == nil && policy != "" && policy != "noeviction" {
		s.o.Logger.ErrorContext(ctx, "sweeper: REDIS MAY EVICT LIVE JOBS: set maxmemory-policy to noeviction", "policy", policy)
	}
}
