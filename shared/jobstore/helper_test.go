package jobstore

import (
	"context"
	"fmt"
	"log/slog"
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

func TestMain(m *testing.M) {
	redis.SetLogger(quiet{}) // servers die here on purpose
	testkit.Main(m)
}

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

var ctx = context.Background()

// shownAt is a head's time, for tests that do not look at it.
var shownAt = time.Date(2030, 1, 2, 3, 4, 5, 678_000_000, time.UTC)

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

// onMini runs a test on miniredis alone: for tables whose breadth matters more
// than the server.
func onMini(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	m := miniredis.RunT(t)
	w := newWorld(t, ClientOptions{Addrs: []string{m.Addr()}}, Options{})
	w.mini = m
	test(t, w)
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
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
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
