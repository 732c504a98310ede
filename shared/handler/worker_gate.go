package handler

import (
	"context"
	"sync"
	"time"
)

// workerGate holds callers back while the store is unavailable, and while the
// attempt's lease may have passed: another attempt may then be paying for the
// same comments. A lapsed lease alone revokes nothing, so it asks for a renewal;
// the answer reopens the gate or stops the run.
//
// What it cannot see is a freeze between a caller's pass and its request: that
// call counts as in flight.
type workerGate struct {
	now   func() time.Time
	lease time.Duration
	ask   chan struct{} // holds a token when a caller waits for a renewal

	mu      sync.Mutex
	down    bool          // the store is unavailable
	held    time.Time     // just before the last write that extended the lease was sent
	changed chan struct{} // closed, and replaced, when down or held changes
}

// newWorkerGate returns a gate that holds no lease yet. now must be safe for
// concurrent use.
func newWorkerGate(now func() time.Time, lease time.Duration) *workerGate {
	return &workerGate{now: now, lease: lease, ask: make(chan struct{}, 1), changed: make(chan struct{})}
}

// leased wraps a write that extends the lease, so that its OK is noted. The hold
// counts from just before the write is sent: Redis counts from when it ran, which
// is later, so the lease never passes there before it does here. An OK that was
// read only after a freeze is therefore no proof that the lease is live now.
func (g *workerGate) leased(do func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		sent := g.now()
		err := do(ctx)
		if err == nil {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.held = sent
			g.wake()
		}
		return err
	}
}

// wake makes the waiting callers look again. The lock is held.
func (g *workerGate) wake() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// set says whether the store is unavailable, and reports whether that is new.
func (g *workerGate) set(down bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.down == down {
		return false
	}
	g.down = down
	g.wake()
	return true
}

// lapsed reports whether the lease may have passed.
func (g *workerGate) lapsed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.over()
}

// over is lapsed with the lock held.
func (g *workerGate) over() bool { return workerElapsed(g.held, g.now()) >= g.lease }

// pass waits until the gate is open. It reports false when ctx ended first. Every
// token it leaves in ask must be followed by a write that is answered, or by the
// end of ctx.
func (g *workerGate) pass(ctx context.Context) bool {
	for {
		g.mu.Lock()
		down, over, changed := g.down, g.over(), g.changed
		g.mu.Unlock()
		if !down && !over {
			return ctx.Err() == nil
		}
		if over {
			select {
			case g.ask <- struct{}{}:
			default: // asked already
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// workerElapsed returns the time from then to now by whichever clock shows more.
// Go's monotonic clock is Linux's CLOCK_MONOTONIC: it runs on through SIGSTOP but
// stands still while the machine is suspended (clock_gettime(2); package time,
// "Monotonic Clocks"), as a frozen Lambda sandbox may be. The wall clock shows
// such a gap but may be set back. A wall clock set forward costs one renewal.
func workerElapsed(then, now time.Time) time.Duration {
	return max(now.Sub(then), now.Round(0).Sub(then.Round(0))) // Round(0) strips the monotonic reading
}
