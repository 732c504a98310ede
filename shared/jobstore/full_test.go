package jobstore

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/infra/testkit"
	"sunhwa/shared/job"
)

// onFull runs a test on a redis-server and a valkey-server of its own. full
// makes the server refuse every write that may need memory; it is given the jobs
// to look at afterwards first.
func onFull(t *testing.T, test func(t *testing.T, w *world, full, roomy func())) {
	t.Helper()
	for _, o := range []testkit.Options{{}, {Valkey: true}} {
		e := testkit.New(t, o)
		t.Run(e.Name, func(t *testing.T) {
			w := newWorld(t, ClientOptions{Addrs: e.Addrs}, Options{})
			limit := func(bytes string) func() {
				return func() { require.NoError(t, w.rdb.ConfigSet(ctx, "maxmemory", bytes).Err()) }
			}
			t.Cleanup(limit("0"))
			require.NoError(t, w.rdb.ConfigSet(ctx, "maxmemory-policy", "noeviction").Err())
			test(t, w, limit("1"), limit("0"))
		})
	}
}

// Redis is full for good: what begins or extends work answers ErrUnavailable and
// writes nothing; whatever ends a job, frees its texts or only reads works.
func TestStore_full_everyCall(t *testing.T) {
	fail := func(g job.Guard, token string) func(*world, job.Creation) error {
		return func(w *world, c job.Creation) error {
			return w.Fail(ctx, c.Ref, g, token, job.Failure{Code: job.CodeLLMFailed}, job.Extra{Seq: 1, Usage: job.Usage{Calls: 1}})
		}
	}
	read := func(w *world, c job.Creation) error { _, err := w.Read(ctx, c.ID); return err }
	inspect := func(w *world, c job.Creation) error { _, err := w.Inspect(ctx, c.Ref, lease); return err }
	overdue := func(w *world) job.Creation {
		c := begunWith(w, 2)
		w.advance(deadline)
		return c
	}
	complete := func(w *world) job.Creation { return begunWith(w, 2) }
	running := func(w *world) job.Creation { return w.running(2) }
	for _, c := range []struct {
		name  string
		make  func(w *world) job.Creation
		do    func(w *world, c job.Creation) error
		works bool
		want  string // status and code afterwards
	}{
		{"acquire", func(w *world) job.Creation { return w.creation(2) },
			func(w *world, c job.Creation) error { return w.Acquire(ctx, c) }, false, ""},
		{"begin", running, func(w *world, c job.Creation) error { _, err := w.Begin(ctx, attempt(c, "t")); return err }, false, "RUNNING"},
		{"record", complete, func(w *world, c job.Creation) error {
			_, err := w.Record(ctx, attempt(c, "t"), results(c, 0, 2), job.Extra{Seq: 1})
			return err
		}, false, "RUNNING"},
		{"renew", complete, func(w *world, c job.Creation) error { return w.Renew(ctx, attempt(c, "t")) }, false, "RUNNING"},
		{"finish", complete, func(w *world, c job.Creation) error {
			return w.Finish(ctx, attempt(c, "t"), "", job.Extra{Seq: 1, Usage: job.Usage{Calls: 1}})
		}, true, "SUCCESS"},
		{"fail by the worker", complete, fail(job.GuardWorker, "t"), true, "FAILED LLM_FAILED"},
		{"fail by start", running, fail(job.GuardStart, ""), true, "FAILED LLM_FAILED"},
		{"cancel", running, fail(job.GuardCancel, ""), true, "FAILED LLM_FAILED"},
		{"read", complete, read, true, "RUNNING"},
		{"read overdue", overdue, read, true, "FAILED DEADLINE_EXCEEDED"},
		{"results", func(w *world) job.Creation { return w.succeeded(2) },
			func(w *world, c job.Creation) error { _, _, err := w.Results(ctx, c.ID); return err }, true, "SUCCESS"},
		{"applied", func(w *world) job.Creation { return w.succeeded(2) },
			func(w *world, c job.Creation) error { return w.Applied(ctx, c.ID, shownAt) }, true, "SUCCESS"},
		{"erase", complete, func(w *world, c job.Creation) error { return w.Erase(ctx, w.target, c.ID) }, true, "FAILED CANCELED"},
		{"inspect overdue", overdue, inspect, true, "FAILED DEADLINE_EXCEEDED"},
		{"inspect for a new dispatch", func(w *world) job.Creation {
			c := w.running(2)
			w.advance(lease)
			return c
		}, inspect, false, "RUNNING"},
		{"recall", complete, func(w *world, c job.Creation) error {
			_, err := w.Recall(ctx, w.target, []string{"k"})
			return err
		}, true, "RUNNING"},
	} {
		t.Run(c.name, func(t *testing.T) {
			onFull(t, func(t *testing.T, w *world, full, roomy func()) {
				made := c.make(w)
				before := w.snapshot()
				full()
				err := c.do(w, made)
				if c.works {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, job.ErrUnavailable)
					require.Equal(t, before, w.snapshot(), "nothing is half-written")
				}
				assert.Equal(t, c.want, strings.TrimSpace(w.field(made.ID, "status")+" "+w.field(made.ID, "error")))
				assert.Empty(t, hasNoTTL(w.snapshot()))
				roomy()
				if !c.works {
					require.NoError(t, c.do(w, made), "it works by itself once there is room")
				}
			})
		})
	}
}

// Redis runs full under real load: every call works or answers ErrUnavailable,
// overdue jobs become FAILED, and afterwards all is well.
func TestStore_full_ofJunk(t *testing.T) {
	for _, o := range []testkit.Options{{MaxMemory: "12mb"}, {Valkey: true, MaxMemory: "12mb"}} {
		e := testkit.New(t, o)
		t.Run(e.Name, func(t *testing.T) {
			w := newWorld(t, ClientOptions{Addrs: e.Addrs}, Options{})
			policy, err := w.EvictionPolicy(ctx)
			require.NoError(t, err)
			require.Equal(t, "noeviction", policy)
			c := begunWith(w, 1)
			late := w.on(job.Target{Tenant: "late", ID: "late"})
			overdue := begunWith(late, 1)
			late.advance(deadline)
			junk := fill(t, w)

			allowed := func(err error) {
				t.Helper()
				if !errors.Is(err, job.ErrUnavailable) {
					require.NoError(t, err)
				}
			}
			big := w.on(job.Target{Tenant: "big", ID: "big"}).creation(500)
			before := w.on(big.Target).snapshot()
			err = w.Acquire(ctx, big)
			require.ErrorIs(t, err, job.ErrUnavailable)
			assert.Equal(t, before, w.on(big.Target).snapshot())
			_, err = w.Record(ctx, attempt(c, "t"), results(c, 1, 2), job.Extra{})
			allowed(err)
			allowed(w.Renew(ctx, attempt(c, "t")))
			assert.Equal(t, job.CodeDeadlineExceeded, w.read(overdue.ID).Failure.Code)
			w.cancel(c)
			assert.Equal(t, job.CodeCanceled, w.read(c.ID).Failure.Code)
			for _, v := range []*world{w, late} {
				assert.Empty(t, hasNoTTL(v.snapshot()))
			}
			require.NoError(t, w.rdb.Del(ctx, junk...).Err())
			require.NoError(t, w.Acquire(ctx, big), "recovery by itself")
		})
	}
}

// fill writes junk until not another byte is let in.
func fill(t *testing.T, w *world) []string {
	t.Helper()
	var keys []string
	for _, size := range []int{1 << 16, 1 << 10, 1} {
		for {
			key := fmt.Sprint("junk", len(keys))
			err := w.rdb.Set(ctx, key, strings.Repeat("x", size), time.Hour).Err()
			if err != nil {
				require.ErrorContains(t, err, "OOM")
				break
			}
			keys = append(keys, key)
		}
	}
	return keys
}
