package handler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sunhwa/shared/job"
	"sunhwa/shared/jobstore"
)

// sweepInvoked notes whom it was asked to invoke.
type sweepInvoked struct {
	mu     sync.Mutex
	refs   []job.Ref
	answer error
}

func (d *sweepInvoked) Dispatch(_ context.Context, ref job.Ref) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refs = append(d.refs, ref)
	return d.answer
}

// sweepFaulty is a store whose parts a test replaces.
type sweepFaulty struct {
	sweepStore
	watched func(ctx context.Context, start int, visit func(context.Context, job.Ref) error) (int, error)
	inspect func(ref job.Ref) error
	policy  func() (string, error)
}

func (f *sweepFaulty) Watched(ctx context.Context, start int, visit func(context.Context, job.Ref) error) (int, error) {
	if f.watched != nil {
		return f.watched(ctx, start, visit)
	}
	return f.sweepStore.Watched(ctx, start, visit)
}

func (f *sweepFaulty) Inspect(ctx context.Context, ref job.Ref, lease time.Duration) (job.Verdict, error) {
	if f.inspect != nil {
		if err := f.inspect(ref); err != nil {
			return job.Verdict{}, err
		}
	}
	if f.sweepStore == nil {
		return job.Verdict{Kind: job.Left}, nil
	}
	return f.sweepStore.Inspect(ctx, ref, lease)
}

func (f *sweepFaulty) EvictionPolicy(ctx context.Context) (string, error) {
	if f.policy != nil {
		return f.policy()
	}
	return "noeviction", nil
}

func (g *workerRig) sweeper(s sweepStore, d sweepDispatcher) *Sweeper {
	return NewSweeper(s, d, SweeperOptions{Lease: rigLease, Logger: slog.New(slog.NewTextHandler(g.log, nil))})
}

// targets starts one job on each of n targets.
func (g *workerRig) targets(n int) (refs []job.Ref) {
	for i := range n {
		g.target.ID = fmt.Sprintf("course-%d", i)
		refs = append(refs, g.start(false, "a"))
	}
	return refs
}

func TestSweeper_Handle_neverDelivered(t *testing.T) {
	g := newWorkerRig(t, jobstore.Options{})
	ref := g.start(false, "a")
	d := &sweepInvoked{}
	s := g.sweeper(g.store, d)

	c, err := s.Handle(t.Context())
	require.NoError(t, err)
	require.Equal(t, SweepCounts{Shards: job.Shards, Inspected: 1, Left: 1, Ended: map[job.Code]int{}}, c)
	require.Empty(t, d.refs, "start has dispatched it less than a lease ago")

	g.redis.FastForward(rigLease)
	c, err = s.Handle(t.Context())
	require.NoError(t, err)
	require.Equal(t, SweepCounts{
		Shards: job.Shards, Inspected: 1, Redispatched: 1, Ended: map[job.Code]int{}, OldestRunning: rigLease,
	}, c)
	require.Equal(t, []job.Ref{ref}, d.refs)

	c, err = s.Handle(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, c.Left, "once a lease")

	require.NoError(t, NewWorker(g.store, &workerScript{}, g.options()).Handle(t.Context(), d.refs[0].Event()))
	require.Equal(t, job.Success, g.read(ref).Status)
	c, err = s.Handle(t.Context())
	require.NoError(t, err)
	require.Zero(t, c.Inspected, "an ended job is not watched")
}

func TestSweeper_Handle_endsWhatCannotBeSaved(t *testing.T) {
	g := newWorkerRig(t, jobstore.Options{MaxAttempts: 1})
	refs := g.targets(3)
	_, err := g.store.Begin(t.Context(), job.Attempt{Ref: refs[0], Token: "crashed", Lease: rigLease})
	require.NoError(t, err)
	g.redis.Del("{" + refs[1].ID.Shard() + "}:run:" + refs[1].Target.TenantKey() + ":" + refs[1].Target.ID)
	g.redis.FastForward(rigLease)
	d := &sweepInvoked{}
	s := g.sweeper(g.store, d)
	c, err := s.Handle(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[job.Code]int{job.CodeWorkerLost: 1, job.CodeClaimLost: 1}, c.Ended)
	require.Equal(t, []job.Ref{refs[2]}, d.refs)
	require.Equal(t, job.CodeWorkerLost, g.read(refs[0]).Failure.Code)

	g.redis.FastForward(rigDeadline)
	c, err = s.Handle(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[job.Code]int{job.CodeDeadlineExceeded: 1}, c.Ended)
}

func TestSweeper_Handle_goesOnAfterAnError(t *testing.T) {
	g := newWorkerRig(t, jobstore.Options{})
	refs := g.targets(5)
	g.redis.FastForward(rigLease)
	store := &sweepFaulty{sweepStore: g.store, inspect: func(ref job.Ref) error {
		switch ref {
		case refs[1]:
			return fmt.Errorf("inspect: %w", job.ErrUnavailable)
		case refs[3]:
			panic("inspect")
		}
		return nil
	}}
	d := &sweepInvoked{}
	c, err := g.sweeper(store, d).Handle(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, c.Errors)
	require.Equal(t, 3, c.Redispatched)
	require.ElementsMatch(t, []job.Ref{refs[0], refs[2], refs[4]}, d.refs)
}

func TestSweeper_Handle_dispatchFails(t *testing.T) {
	for name, c := range map[string]struct {
		answer          error
		refused, errors int
	}{
		"refused":   {fmt.Errorf("invoke: %w", job.ErrRefused), 1, 0},
		"ambiguous": {errors.New("timed out"), 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := newWorkerRig(t, jobstore.Options{})
			ref := g.start(false, "a")
			g.redis.FastForward(rigLease)
			d := &sweepInvoked{answer: c.answer}
			s := g.sweeper(g.store, d)
			counts, err := s.Handle(t.Context())
			require.NoError(t, err)
			require.Equal(t, c.refused, counts.Refused)
			require.Equal(t, c.errors, counts.Errors)
			require.Zero(t, counts.Redispatched)
			require.Equal(t, job.Running, g.read(ref).Status, "left to the next pass")

			d.answer = nil
			g.redis.FastForward(rigLease)
			counts, err = s.Handle(t.Context())
			require.NoError(t, err)
			require.Equal(t, 1, counts.Redispatched)
		})
	}
}

func TestSweeper_Handle_twoAtOnce(t *testing.T) {
	g := newWorkerRig(t, jobstore.Options{})
	refs := g.targets(20)
	g.redis.FastForward(rigLease)
	d := &sweepInvoked{}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			c, err := g.sweeper(g.store, d).Handle(context.Background())
			if err != nil || c.Errors != 0 {
				t.Errorf("pass: %+v, %v", c, err)
			}
		})
	}
	all.Wait()
	require.ElementsMatch(t, refs, d.refs, "each lost job is dispatched once")
}

// A pass ends at its budget, or before its function does, whatever is left.
func TestSweeper_Handle_bounded(t *testing.T) {
	for name, c := range map[string]struct {
		budget, function time.Duration
		want             int
	}{
		"budget":                {10 * time.Second, 0, 10},
		"function less margin":  {time.Minute, 30 * time.Second, 25},
		"a very short function": {time.Minute, 8 * time.Second, 6},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &sweepFaulty{
					watched: func(ctx context.Context, _ int, visit func(context.Context, job.Ref) error) (int, error) {
						for ctx.Err() == nil {
							_ = visit(ctx, job.Ref{ID: "01ARZ3NDEKTSV4RRFFQ69G5FAV"})
						}
						return 7, ctx.Err()
					},
					inspect: func(job.Ref) error { <-time.After(time.Second); return nil },
				}
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if c.function > 0 {
					ctx, cancel = context.WithTimeout(ctx, c.function)
				}
				defer cancel()
				counts, err := NewSweeper(store, &sweepInvoked{}, SweeperOptions{Budget: c.budget, Logger: slog.New(slog.DiscardHandler)}).Handle(ctx)
				require.NoError(t, err)
				require.NoError(t, ctx.Err())
				require.True(t, counts.Unfinished)
				require.Zero(t, counts.Errors, "the budget's end is no error")
				require.InDelta(t, c.want, counts.Inspected, 1)
			})
		})
	}
}

func TestSweeper_Handle_unavailable(t *testing.T) {
	g := newWorkerRig(t, jobstore.Options{})
	ref := g.start(false, "a")
	s := g.sweeper(g.store, &sweepInvoked{})
	g.redis.SetError("LOADING")
	c, err := s.Handle(t.Context())
	require.ErrorIs(t, err, job.ErrUnavailable)
	require.Positive(t, c.Errors)
	g.redis.SetError("")
	require.Equal(t, job.Running, g.read(ref).Status)
	_, err = s.Handle(t.Context())
	require.NoError(t, err)
}

func TestSweeper_Handle_startsAtARandomShard(t *testing.T) {
	starts := map[int]bool{}
	store := &sweepFaulty{watched: func(_ context.Context, start int, _ func(context.Context, job.Ref) error) (int, error) {
		require.GreaterOrEqual(t, start, 0)
		require.Less(t, start, job.Shards)
		starts[start] = true
		return job.Shards, nil
	}}
	s := NewSweeper(store, &sweepInvoked{}, SweeperOptions{})
	for range 100 {
		_, err := s.Handle(t.Context())
		require.NoError(t, err)
	}
	require.Greater(t, len(starts), 10) // 100 draws of 1,024
}

func TestSweeper_Handle_evictionPolicy(t *testing.T) {
	for name, c := range map[string]struct {
		policy string
		err    error
		warns  int
		asked  int
	}{
		"evicts":      {"volatile-lru", nil, 1, 1},
		"noeviction":  {"noeviction", nil, 0, 1},
		"not allowed": {"", errors.New("unknown command CONFIG"), 0, 1},
		"unavailable": {"", fmt.Errorf("config: %w", job.ErrUnavailable), 0, 3},
	} {
		t.Run(name, func(t *testing.T) {
			g := newWorkerRig(t, jobstore.Options{})
			asked := 0
			s := g.sweeper(&sweepFaulty{sweepStore: g.store, policy: func() (string, error) { asked++; return c.policy, c.err }}, &sweepInvoked{})
			for range 3 {
				_, err := s.Handle(t.Context())
				require.NoError(t, err)
			}
			require.Equal(t, c.warns, strings.Count(g.log.String(), "EVICT"))
			require.Equal(t, c.asked, asked)
		})
	}
}
