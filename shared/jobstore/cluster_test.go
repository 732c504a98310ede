package jobstore

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/infra/testkit"
	"sunhwa/shared/job"
)

// watcher sees every command that the store sends and how it ended.
type watcher func(cmd redis.Cmder)

func (watcher) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (f watcher) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		f(cmd)
		return err
	}
}

func (watcher) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { return next(ctx, cmds) }
}

// Complaint (i): every key of every script has the target's hash tag, in every
// move there is, with and without its optional keys; a cluster takes them all.
func TestStore_neverCrossSlot(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		scripts := map[string]bool{}
		w.rdb.AddHook(watcher(func(cmd redis.Cmder) {
			args := cmd.Args()
			if name := cmd.Name(); name != "evalsha" && name != "eval" {
				return
			}
			n, _ := args[2].(int)
			assert.Positive(t, n, "a script without keys")
			for _, key := range args[3 : 3+n] {
				assert.True(t, strings.HasPrefix(fmt.Sprint(key), "{"+w.target.Shard()+"}:"), "%v", key)
			}
			scripts[fmt.Sprint(args[1])] = true
		}))
		gone := w.running(1)
		require.NoError(t, w.rdb.Del(ctx, jobKey(gone.ID)).Err())
		c := w.creation(2)
		c.Missing = gone.ID
		require.NoError(t, w.Acquire(ctx, c))
		w.cancel(c)
		w.succeeded(2)
		c = w.succeeded(2) // names a kept job
		require.NoError(t, w.Renew(ctx, attempt(begunWith(w, 1), "t")))
		last, err := w.Newest(ctx, w.target)
		require.NoError(t, err)
		_, err = w.Inspect(ctx, job.Ref{ID: last, Target: w.target}, lease)
		require.NoError(t, err)
		_, _, err = w.Results(ctx, c.ID)
		require.NoError(t, err)
		require.NoError(t, w.Applied(ctx, c.ID, shownAt))
		w.read(c.ID)
		require.NoError(t, w.Erase(ctx, w.target, last))
		for name, s := range w.scripts {
			assert.True(t, scripts[s.Hash()], name)
		}
	})
}

// sibling returns a target of the same shard that has no job.
func sibling(w *world) *world {
	v := w.on(job.Target{Tenant: w.target.Tenant})
	for v.target.Shard() != w.target.Shard() {
		v.target.ID = fmt.Sprint("sibling-", minted.Add(1))
	}
	return v
}

// While a slot is on its way between two nodes, what names an absent key is asked
// again until it can be answered; TTLs, the deadline among them, go along.
func TestStore_slotMigration(t *testing.T) {
	e := testkit.New(t, testkit.Options{Cluster: true})
	w := newWorld(t, ClientOptions{Addrs: e.Addrs, Cluster: true}, Options{})
	c := begunWith(w, 1)
	ends := map[string]time.Duration{}
	for _, key := range w.keys() {
		ends[key] = w.rdb.PExpireTime(ctx, key).Val()
	}
	var again atomic.Int64
	w.rdb.AddHook(watcher(func(cmd redis.Cmder) {
		if err := cmd.Err(); err != nil && strings.HasPrefix(err.Error(), "TRYAGAIN") {
			again.Add(1)
		}
	}))

	m := e.Migrate(t, runKey(w.target))
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	fresh := sibling(w)
	err := w.Acquire(short, fresh.creation(1))
	require.ErrorIs(t, err, job.ErrUnavailable)
	require.ErrorIs(t, err, context.DeadlineExceeded, "the caller's own end stays visible")

	m.Move(t, jobKey(c.ID)) // now the job is on one node and its claim on the other
	seen := again.Load()
	next := fresh.creation(1)
	next.ID = fresh.mint()
	answers := make(chan error, 2)
	go func() { answers <- w.Acquire(ctx, next) }()
	go func() {
		_, err := w.Record(ctx, attempt(c, "t"), results(c, 1, 2), job.Extra{})
		answers <- err
	}()
	require.Eventually(t, func() bool { return again.Load() >= seen+4 }, 30*time.Second, time.Millisecond)
	m.Finish(t)
	require.NoError(t, <-answers)
	require.NoError(t, <-answers)

	for key, end := range ends {
		now := w.rdb.PExpireTime(ctx, key).Val()
		assert.InDelta(t, end, now, float64(2*time.Second), key)
		assert.Equal(t, end > 0, now > 0, key)
	}
	require.NoError(t, w.Finish(ctx, attempt(c, "t"), "", job.Extra{}))
	assert.Equal(t, job.Running, w.read(next.ID).Status)
}

// A primary of a six-node cluster dies: until its replica takes over every call
// says ErrUnavailable and nothing else, then its slots work again, and no job has
// failed by it.
func TestStore_primaryKilled(t *testing.T) {
	e := testkit.New(t, testkit.Options{Cluster: true, Replicas: 1, NodeTimeout: time.Second})
	w := newWorld(t, ClientOptions{Addrs: e.Addrs, Cluster: true}, Options{})
	dead := e.Owner(t, runKey(w.target))
	var hit, safe []job.Creation
	for len(hit) < 5 || len(safe) < 5 {
		v := w.on(job.Target{Tenant: "t", ID: fmt.Sprint("f", minted.Add(1))})
		c := begunWith(v, 1)
		if e.Owner(t, jobKey(c.ID)) == dead {
			hit = append(hit, c)
		} else {
			safe = append(safe, c)
		}
	}
	cluster, ok := w.rdb.(*redis.ClusterClient)
	require.True(t, ok)
	require.NoError(t, cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
		return c.Wait(ctx, 1, 10*time.Second).Err() // the replica has everything
	}))

	dead.Kill()
	ask := func(c job.Creation) bool {
		within, cancel := context.WithTimeout(ctx, 4*time.Second)
		defer cancel()
		_, err := w.Record(within, attempt(c, "t"), results(c, 1, 2), job.Extra{})
		if err != nil {
			assert.ErrorIs(t, err, job.ErrUnavailable)
		}
		return err == nil
	}
	require.Eventually(t, func() bool {
		ask(hit[0])
		return e.Owner(t, jobKey(hit[0].ID)) != dead
	}, time.Minute, 5*time.Millisecond, "no failover")
	began := time.Now()
	for !ask(hit[0]) {
		require.Less(t, time.Since(began), 10*time.Second, "promised: 3 s; the rest is for busy machines")
	}
	t.Logf("served again %v after the failover", time.Since(began))
	for _, c := range append(hit, safe...) {
		require.True(t, ask(c) || ask(c))
		assert.Equal(t, job.Running, w.read(c.ID).Status)
		v, err := w.Inspect(ctx, c.Ref, lease)
		require.NoError(t, err)
		assert.Equal(t, job.Left, v.Kind)
		require.NoError(t, w.Finish(ctx, attempt(c, "t"), "", job.Extra{}))
	}
}
