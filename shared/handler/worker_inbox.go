package handler

import (
	"context"
	"sync"

	"sunhwa/shared/job"
)

// workerInbox is where callers leave what came of their calls. It never blocks
// them: it holds at most one result a comment.
type workerInbox struct {
	mu     sync.Mutex
	came   []job.Result
	usage  job.Usage
	active int
	notify chan struct{} // holds a token when something has changed
}

func newWorkerInbox() *workerInbox { return &workerInbox{notify: make(chan struct{}, 1)} }

func (b *workerInbox) change(f func()) {
	b.mu.Lock()
	f()
	b.mu.Unlock()
	select {
	case b.notify <- struct{}{}:
	default:
	}
}

// results leaves answers.
func (b *workerInbox) results(rs []job.Result) {
	b.change(func() { b.came = append(b.came, rs...) })
}

// spent leaves the usage of a call that gave no answer.
func (b *workerInbox) spent(u job.Usage) { b.change(func() { b.usage = b.usage.Plus(u) }) }

// enter counts a caller in; leave counts it out.
func (b *workerInbox) enter() { b.change(func() { b.active++ }) }
func (b *workerInbox) leave() { b.change(func() { b.active-- }) }

// take empties the inbox. idle says that no caller is left, so nothing will come.
func (b *workerInbox) take() (rs []job.Result, u job.Usage, idle bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	rs, u = b.came, b.usage
	b.came, b.usage = nil, job.Usage{}
	return rs, u, b.active == 0
}

// workerGate holds callers back while the store is unavailable. It begins open.
type workerGate struct {
	mu   sync.Mutex
	open chan struct{} // closed while the gate is open
	shut bool
}

func newWorkerGate() *workerGate {
	g := &workerGate{open: make(chan struct{})}
	close(g.open)
	return g
}

// set opens or shuts the gate; it reports whether that changed anything.
func (g *workerGate) set(shut bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut == shut {
		return false
	}
	g.shut = shut
	if shut {
		g.open = make(chan struct{})
	} else {
		close(g.open)
	}
	return true
}

// pass waits until the gate is open. It reports false when ctx ended first.
func (g *workerGate) pass(ctx context.Context) bool {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	select {
	case <-open:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
