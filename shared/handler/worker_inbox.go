package handler

import (
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
