package handler

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"

	"sunhwa/shared/job"
	"sunhwa/shared/jobstore"
)

// workerMarker stands in every comment's text: no log may hold it.
const workerMarker = "Xq7marker"

var workerCost = job.Usage{PromptTokens: 6, CompletionTokens: 4, TotalTokens: 10, Calls: 1}

// workerRig is a real store on an embedded Redis whose clock moves by
// FastForward only, with one target.
type workerRig struct {
	t      *testing.T
	redis  *miniredis.Miniredis
	store  *jobstore.Store
	target job.Target
	log    *workerLog
	minted int
}

type workerLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *workerLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *workerLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newWorkerRig(t *testing.T, o jobstore.Options) *workerRig {
	t.Helper()
	m := miniredis.RunT(t)
	rdb := jobstore.NewClient(jobstore.ClientOptions{Addrs: []string{m.Addr()}})
	t.Cleanup(func() { require.NoError(t, rdb.Close()) })
	g := &workerRig{t: t, redis: m, store: jobstore.New(rdb, o), target: job.Target{Tenant: "school", ID: "course-1"}, log: &workerLog{}}
	t.Cleanup(func() {
		require.NotContains(t, g.log.String(), workerMarker, "a log line holds a comment's text")
		require.Eventually(t, func() bool { return !workerLeaks() }, 5*time.Second, time.Millisecond, "a goroutine outlives Handle")
	})
	return g
}

// workerLeaks reports whether a goroutine of a run is alive.
func workerLeaks() bool {
	buf := make([]byte, 1<<20)
	return strings.Contains(string(buf[:runtime.Stack(buf, true)]), "handler.(*workerRun)")
}

const (
	rigDeadline = 10 * time.Minute
	rigLease    = 45 * time.Second
)

// start acquires a job of texts; the comment at i has the id "c<i>".
func (g *workerRig) start(fresh bool, texts ...string) job.Ref {
	g.t.Helper()
	g.minted++
	id, err := job.NewID(time.Now().Add(time.Duration(g.minted)*time.Second), g.target)
	require.NoError(g.t, err)
	c := job.Creation{
		Ref: job.Ref{ID: id, Target: g.target}, Digest: "d", Fresh: fresh, Spec: job.Spec{Model: "m", PromptVersion: "1"},
		Deadline: rigDeadline, Retention: time.Hour, Lease: rigLease,
	}
	for i, text := range texts {
		c.Comments = append(c.Comments, job.Comment{ID: fmt.Sprintf("c%d", i), Text: workerMarker + text})
	}
	require.NoError(g.t, g.store.Acquire(context.Background(), c))
	return c.Ref
}

func (g *workerRig) read(ref job.Ref) *job.Job {
	g.t.Helper()
	j, err := g.store.Read(context.Background(), ref.ID)
	require.NoError(g.t, err)
	return j
}

// requireFailed checks that the job is FAILED with code and its target free.
func (g *workerRig) requireFailed(ref job.Ref, code job.Code) *job.Job {
	g.t.Helper()
	j := g.read(ref)
	require.Equal(g.t, job.Failed, j.Status)
	require.Equal(g.t, code, j.Failure.Code)
	for _, key := range g.redis.Keys() {
		require.NotContains(g.t, key, ":run:")
		require.NotContains(g.t, key, ":out:")
		require.NotContains(g.t, key, ":in:")
	}
	return j
}

func (g *workerRig) outKey(ref job.Ref) string {
	return "{" + ref.ID.Shard() + "}:out:" + string(ref.ID)
}

// options are those of a worker whose waits are short; tests that need a wait to
// last replace After.
func (g *workerRig) options() WorkerOptions {
	return WorkerOptions{
		Concurrency: 4, Lease: rigLease,
		After:  func(d time.Duration) <-chan time.Time { return time.After(min(d, 2*time.Millisecond)) },
		Logger: slog.New(slog.NewTextHandler(g.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
}

// workerNever is a clock on which no wait ends.
func workerNever(time.Duration) <-chan time.Time { return nil }

// workerScript is a scripted model: by default it answers at once.
type workerScript struct {
	mu      sync.Mutex
	calls   map[string]int // by text without the marker
	running int
	most    int // most calls side by side
	answer  func(ctx context.Context, text string) (string, job.Usage, error)
}

func (s *workerScript) Rewrite(ctx context.Context, _ job.Spec, text string) (string, job.Usage, error) {
	text = strings.TrimPrefix(text, workerMarker)
	s.mu.Lock()
	if s.calls == nil {
		s.calls = map[string]int{}
	}
	s.calls[text]++
	s.running++
	s.most = max(s.most, s.running)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.running--
		s.mu.Unlock()
	}()
	if s.answer != nil {
		return s.answer(ctx, text)
	}
	return workerPolite(text), workerCost, nil
}

func (s *workerScript) count() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		n += c
	}
	return n
}

func (s *workerScript) by() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := map[string]int{}
	for k, v := range s.calls {
		m[k] = v
	}
	return m
}

func workerPolite(text string) string { return "politely " + workerMarker + text }

// workerFaulty is a store with a fault put before or after each call. An error of
// before keeps the call from being made; one of after replaces its answer.
type workerFaulty struct {
	workerStore
	before, after func(move string) error
}

func (f *workerFaulty) through(move string, do func() error) error {
	if f.before != nil {
		if err := f.before(move); err != nil {
			return err
		}
	}
	err := do()
	if f.after != nil {
		if lost := f.after(move); lost != nil {
			return lost
		}
	}
	return err
}

func (f *workerFaulty) Begin(ctx context.Context, a job.Attempt) (b *job.Begun, err error) {
	err = f.through("begin", func() (err error) { b, err = f.workerStore.Begin(ctx, a); return err })
	return b, err
}

func (f *workerFaulty) Recall(ctx context.Context, t job.Target, keys []string) (m map[string]string, err error) {
	err = f.through("recall", func() (err error) { m, err = f.workerStore.Recall(ctx, t, keys); return err })
	return m, err
}

func (f *workerFaulty) Record(ctx context.Context, a job.Attempt, rs []job.Result, x job.Extra) (p job.Progress, err error) {
	err = f.through("record", func() (err error) { p, err = f.workerStore.Record(ctx, a, rs, x); return err })
	return p, err
}

func (f *workerFaulty) Renew(ctx context.Context, a job.Attempt) error {
	return f.through("renew", func() error { return f.workerStore.Renew(ctx, a) })
}

func (f *workerFaulty) Finish(ctx context.Context, a job.Attempt, kept job.ID, x job.Extra) error {
	return f.through("finish", func() error { return f.workerStore.Finish(ctx, a, kept, x) })
}

func (f *workerFaulty) Fail(ctx context.Context, ref job.Ref, g job.Guard, token string, fl job.Failure, x job.Extra) error {
	return f.through("fail", func() error { return f.workerStore.Fail(ctx, ref, g, token, fl, x) })
}
