package jobstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"sunhwa/infra/testkit"
	"sunhwa/shared/job"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// Times of the jobs that tests create: so long that no slow machine reaches one
// by itself. advance makes them pass.
const (
	deadline  = 10 * time.Minute
	retention = 24 * time.Hour
	lease     = 45 * time.Second
)

var ctx = context.Background()

// minted makes every id of this process later than the one before.
var minted atomic.Int64

// world is a store on one server and a target of its own, whose keys are gone
// when the test ends.
type world struct {
	*Store
	t      *testing.T
	mini   *miniredis.Miniredis // nil on a real server
	target job.Target
}

// onEach runs a test on miniredis and on every real deployment.
func onEach(t *testing.T, o Options, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Run("miniredis", func(t *testing.T) {
		m := miniredis.RunT(t)
		w := newWorld(t, ClientOptions{Addrs: []string{m.Addr()}}, o)
		w.mini = m
		test(t, w)
	})
	onReal(t, o, test)
}

// onReal runs a test on redis-server, valkey-server and a three-node cluster.
func onReal(t *testing.T, o Options, test func(t *testing.T, w *world)) {
	t.Helper()
	for _, e := range testkit.Engines(t) {
		t.Run(e.Name, func(t *testing.T) {
			test(t, newWorld(t, ClientOptions{Addrs: e.Addrs, Cluster: e.Cluster}, o))
		})
	}
}

func newWorld(t *testing.T, c ClientOptions, o Options) *world {
	t.Helper()
	rdb := NewClient(c)
	w := &world{Store: New(rdb, o), t: t}
	w.target = job.Target{Tenant: "tenant:한 {x}", ID: fmt.Sprintf("course-%d", minted.Add(1))}
	w.clear()
	t.Cleanup(func() {
		w.clear()
		require.NoError(t, rdb.Close())
	})
	return w
}

// other returns the same store with other options.
func (w *world) other(o Options) *world {
	v := *w
	v.Store = New(w.rdb, o)
	return &v
}

// on returns the same store for another target.
func (w *world) on(target job.Target) *world {
	v := *w
	v.target = target
	return &v
}

func (w *world) clear() {
	if keys := w.keys(); len(keys) > 0 {
		w.rdb.Del(ctx, keys...)
	}
}

// keys lists every key of the target's shard.
func (w *world) keys() []string {
	var mu sync.Mutex
	var keys []string
	scan := func(ctx context.Context, c *redis.Client) error {
		it := c.Scan(ctx, 0, tag(w.target.Shard())+"*", 1000).Iterator()
		for it.Next(ctx) {
			mu.Lock()
			keys = append(keys, it.Val())
			mu.Unlock()
		}
		return it.Err()
	}
	var err error
	switch c := w.rdb.(type) {
	case *redis.ClusterClient:
		err = c.ForEachMaster(ctx, scan)
	case *redis.Client:
		err = scan(ctx, c)
	}
	require.NoError(w.t, err)
	slices.Sort(keys)
	return slices.Compact(keys)
}

// snapshot returns every key of the target's shard: its type, its value, and
// whether it has a TTL.
func (w *world) snapshot() map[string]string {
	all := map[string]string{}
	for _, key := range w.keys() {
		var value any
		var err error
		kind := w.rdb.Type(ctx, key).Val()
		switch kind {
		case "string":
			value, err = w.rdb.Get(ctx, key).Result()
		case "hash":
			value, err = w.rdb.HGetAll(ctx, key).Result() // fmt sorts maps
		case "set":
			var members []string
			members, err = w.rdb.SMembers(ctx, key).Result()
			slices.Sort(members)
			value = members
		default:
			err = fmt.Errorf("key %s of type %q", key, kind)
		}
		require.NoError(w.t, err)
		ttl := w.rdb.PTTL(ctx, key).Val() > 0
		all[key] = fmt.Sprintf("%s ttl=%t %v", kind, ttl, value)
	}
	return all
}

// unchanged asserts that do changes no key of the shard.
func (w *world) unchanged(t *testing.T, do func()) {
	t.Helper()
	before := w.snapshot()
	do()
	require.Equal(t, before, w.snapshot(), "keys changed")
}

// advance makes d pass: each key of the shard expires d sooner, to the
// millisecond and all in one step.
func (w *world) advance(d time.Duration) {
	w.t.Helper()
	if w.mini != nil {
		w.mini.FastForward(d)
		return
	}
	ends := map[string]time.Duration{}
	for _, key := range w.keys() {
		end, err := w.rdb.PExpireTime(ctx, key).Result()
		require.NoError(w.t, err)
		if end > 0 {
			ends[key] = end
		}
	}
	if len(ends) == 0 {
		return
	}
	_, err := w.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for key, end := range ends {
			p.PExpireAt(ctx, key, time.UnixMilli((end - d).Milliseconds()))
		}
		return nil
	})
	require.NoError(w.t, err)
}

// ttl is what is left of a key's life.
func (w *world) ttl(key string) time.Duration { return w.rdb.PTTL(ctx, key).Val() }

func (w *world) field(id job.ID, name string) string {
	return w.rdb.HGet(ctx, jobKey(id), name).Val()
}

// mint returns an id later than every one before.
func (w *world) mint() job.ID {
	id, err := job.NewID(time.UnixMilli(1_900_000_000_000+minted.Add(1)), w.target)
	require.NoError(w.t, err)
	return id
}

// creation is a job of n comments that nobody has acquired yet.
func (w *world) creation(n int) job.Creation {
	c := job.Creation{
		Ref:      job.Ref{ID: w.mint(), Target: w.target},
		Spec:     job.Spec{Model: "model", PromptVersion: "v1", Options: `{"temperature":0.2}`},
		Deadline: deadline, Retention: retention, Lease: lease,
	}
	for i := range n {
		c.Comments = append(c.Comments, job.Comment{ID: fmt.Sprint("c", i), Text: fmt.Sprint("말 ", i)})
	}
	c.Digest = job.InputDigest(c.Comments)
	return c
}

// running acquires a job of n comments.
func (w *world) running(n int) job.Creation {
	w.t.Helper()
	c := w.creation(n)
	require.NoError(w.t, w.Acquire(ctx, c))
	return c
}

func attempt(c job.Creation, token string) job.Attempt {
	return job.Attempt{Ref: c.Ref, Token: token, Lease: lease}
}

// results answers the comments from..to-1 of c, each at the cost of one call.
func results(c job.Creation, from, to int) []job.Result {
	var rs []job.Result
	for i := from; i < to; i++ {
		rs = append(rs, job.Result{Index: i, Text: "정중한 " + c.Comments[i].Text,
			MemoKey: c.Spec.MemoKey(c.Comments[i].Text), Usage: job.Usage{Calls: 1, TotalTokens: 10}})
	}
	return rs
}

// worked acquires a job of n comments, begins it with token "t" and records
// every result.
func (w *world) worked(n int) (job.Creation, job.Attempt, *job.Begun) {
	w.t.Helper()
	c := w.running(n)
	a := attempt(c, "t")
	b, err := w.Begin(ctx, a)
	require.NoError(w.t, err)
	_, err = w.Record(ctx, a, results(c, 0, n), job.Extra{})
	require.NoError(w.t, err)
	return c, a, b
}

// succeeded runs a whole job of n comments.
func (w *world) succeeded(n int) job.Creation {
	w.t.Helper()
	c, a, b := w.worked(n)
	require.NoError(w.t, w.Finish(ctx, a, b.Kept, job.Extra{}))
	return c
}

// read returns the job, which must be there.
func (w *world) read(id job.ID) *job.Job {
	w.t.Helper()
	j, err := w.Read(ctx, id)
	require.NoError(w.t, err)
	return j
}

// hasNoTTL lists the keys of a snapshot that never expire, watch sets left out.
func hasNoTTL(snapshot map[string]string) []string {
	var found []string
	for _, key := range slices.Sorted(maps.Keys(snapshot)) {
		if strings.Contains(snapshot[key], "ttl=false") && !strings.HasSuffix(key, "}:watch") {
			found = append(found, key)
		}
	}
	return found
}

// cancel ends a RUNNING job.
func (w *world) cancel(c job.Creation) {
	w.t.Helper()
	require.NoError(w.t, w.Fail(ctx, c.Ref, job.GuardCancel, "", job.Failure{Code: job.CodeCanceled}, job.Extra{}))
}

// onMini runs a test on miniredis alone: for tables whose breadth matters more
// than the server.
func onMini(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	m := miniredis.RunT(t)
	w := newWorld(t, ClientOptions{Addrs: []string{m.Addr()}}, Options{})
	w.mini = m
	test(t, w)
}
