package jobstore

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/infra/testkit"
	"sunhwa/shared/job"
)

// methods lists every method that asks Redis.
func methods(w *world) map[string]func(context.Context) error { return methodsOf(w, w.creation(2)) }

func methodsOf(w *world, c job.Creation) map[string]func(context.Context) error {
	a := attempt(c, "t")
	return map[string]func(context.Context) error{
		"Acquire": func(ctx context.Context) error { return w.Acquire(ctx, c) },
		"Begin":   func(ctx context.Context) error { _, err := w.Begin(ctx, a); return err },
		"Recall": func(ctx context.Context) error {
			_, err := w.Recall(ctx, w.target, []string{"k"})
			return err
		},
		"Record": func(ctx context.Context) error {
			_, err := w.Record(ctx, a, results(c, 0, len(c.Comments)), job.Extra{})
			return err
		},
		"Renew":  func(ctx context.Context) error { return w.Renew(ctx, a) },
		"Finish": func(ctx context.Context) error { return w.Finish(ctx, a, "", job.Extra{}) },
		"Fail": func(ctx context.Context) error {
			return w.Fail(ctx, c.Ref, job.GuardCancel, "", job.Failure{Code: job.CodeCanceled}, job.Extra{})
		},
		"Read":    func(ctx context.Context) error { _, err := w.Read(ctx, c.ID); return err },
		"Newest":  func(ctx context.Context) error { _, err := w.Newest(ctx, w.target); return err },
		"Results": func(ctx context.Context) error { _, _, err := w.Results(ctx, c.ID); return err },
		"Applied": func(ctx context.Context) error { return w.Applied(ctx, c.ID, shownAt) },
		"Erase":   func(ctx context.Context) error { return w.Erase(ctx, w.target, c.ID) },
		"Inspect": func(ctx context.Context) error { _, err := w.Inspect(ctx, c.Ref, lease); return err },
		"Watched": func(ctx context.Context) error {
			_, err := w.Watched(ctx, 0, func(context.Context, job.Ref) error { return nil })
			return err
		},
		"Ping": w.Ping,
		"EvictionPolicy": func(ctx context.Context) error {
			_, err := w.EvictionPolicy(ctx)
			return err
		},
	}
}

// silent accepts connections and never says a word.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var mu sync.Mutex
	var open []net.Conn
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, c := range open {
			_ = c.Close()
		}
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
		}
	}()
	return l.Addr().String()
}

// Every method answers ErrUnavailable within 5 s, though the caller's context
// has no end, when Redis is not there, is silent from the start or goes silent;
// what it says by itself once Redis is back is right.
func TestStore_unreachable(t *testing.T) {
	t.Parallel()
	three := func(addr func(*testing.T) string) func(*testing.T) []string {
		return func(t *testing.T) []string { return []string{addr(t), addr(t), addr(t)} }
	}
	closed := func(t *testing.T) string { return testkit.FreeAddr(t) }
	for _, c := range []struct {
		name  string
		addrs func(t *testing.T) []string
	}{{"port closed", three(closed)}, {"silent", three(silent)}} {
		for _, cluster := range []bool{false, true} {
			t.Run(c.name+map[bool]string{true: " cluster"}[cluster], func(t *testing.T) {
				t.Parallel()
				o := ClientOptions{Addrs: c.addrs(t), Cluster: cluster}
				allUnavailable(t, func() *world { return bare(t, o) })
			})
		}
	}
	for _, o := range []testkit.Options{{}, {Valkey: true}, {Cluster: true}} {
		e := testkit.New(t, o)
		t.Run("frozen "+e.Name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, ClientOptions{Addrs: e.Addrs, Cluster: e.Cluster}, Options{})
			c := begunWith(w, 2)
			before := w.snapshot()
			worlds := make(chan *world, len(methods(w))+1)
			for range len(methods(w)) + 1 {
				warm := bare(t, ClientOptions{Addrs: e.Addrs, Cluster: e.Cluster})
				warm.read(c.ID)
				worlds <- warm
			}
			for _, n := range e.Nodes() {
				n.Pause(t)
			}
			allUnavailable(t, func() *world { return <-worlds })
			for _, n := range e.Nodes() {
				n.Resume(t)
			}
			require.Eventually(t, func() bool { _, err := w.Read(ctx, c.ID); return err == nil },
				30*time.Second, 20*time.Millisecond, "recovery by itself")
			// The outage's own calls may have been carried out late, on a job of theirs.
			after := w.snapshot()
			for key, value := range before {
				assert.Equal(t, value, after[key], "no state of a job changed")
			}
			require.NoError(t, w.Finish(ctx, attempt(c, "t"), "", job.Extra{}))
		})
	}
}

// bare is a world on servers that may not answer.
func bare(t *testing.T, o ClientOptions) *world {
	rdb := NewClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	return &world{Store: New(rdb, Options{}), t: t, target: job.Target{Tenant: "t", ID: "outage"}}
}

func allUnavailable(t *testing.T, next func() *world) {
	t.Helper()
	var wg sync.WaitGroup
	for name := range methods(next()) {
		w := next()
		call := methods(w)[name]
		wg.Go(func() {
			began := time.Now()
			err := call(ctx)
			took := time.Since(began)
			assert.ErrorIs(t, err, job.ErrUnavailable, name)
			assert.Less(t, took, 5*time.Second, name)
			t.Log(name, took, err)
		})
	}
	wg.Wait()
}
