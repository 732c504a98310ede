package testkit

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMain also plays the test process that is killed, for
// TestServers_dieWithTheTestProcess.
func TestMain(m *testing.M) {
	if file := os.Getenv("SUNHWA_TESTKIT_CHILD"); file != "" {
		e, err := start(Options{})
		if err == nil {
			err = os.WriteFile(file, []byte(strconv.Itoa(e.nodes[0].Pid())+" "+e.dir), 0o600)
		}
		if err != nil {
			panic(err)
		}
		select {}
	}
	Main(m)
}

// client is how a package under test would connect.
func client(t *testing.T, e *Engine) redis.UniversalClient {
	t.Helper()
	o := &redis.UniversalOptions{
		Addrs: e.Addrs, Password: e.Password,
		DialTimeout: time.Second, ReadTimeout: time.Second, ContextTimeoutEnabled: true,
	}
	var c redis.UniversalClient = redis.NewClient(o.Simple())
	if e.Cluster {
		co := o.Cluster()
		co.ClusterStateReloadInterval = time.Second
		c = redis.NewClusterClient(co)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestEngines_serve(t *testing.T) {
	engines := Engines(t)
	require.Len(t, engines, 3)
	for i, name := range []string{"redis", "valkey", "cluster"} {
		e := engines[i]
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, name, e.Name)
			assert.Equal(t, name == "cluster", e.Cluster)
			assert.Same(t, e, Engines(t)[i], "one instance a test process")
			c := client(t, e)
			info, err := c.Info(t.Context(), "server").Result()
			require.NoError(t, err)
			assert.Equal(t, name == "valkey", fields(info)["server_name"] == "valkey")
			for i := range 100 { // spread over all slots
				require.NoError(t, c.Set(t.Context(), "serve:"+strconv.Itoa(i), i, time.Minute).Err())
			}
			keys := e.Keys(t, "serve:*")
			assert.Len(t, keys, 100)
			assert.Greater(t, keys["serve:7"], time.Duration(0))
		})
	}
}

func TestEngine_Snapshot_showsEveryChange(t *testing.T) {
	e := Redis(t)
	c := client(t, e)
	ctx := t.Context()
	require.NoError(t, c.Set(ctx, "snap:s", "한글", 0).Err())
	require.NoError(t, c.HSet(ctx, "snap:h", "b", "2", "a", "1").Err())
	require.NoError(t, c.SAdd(ctx, "snap:m", "y", "x").Err())
	before := e.Snapshot(t, "snap:*")
	assert.Equal(t, map[string]string{
		"snap:s": `string "한글"`, "snap:h": `hash {"a":"1","b":"2"}`, "snap:m": `set ["x","y"]`,
	}, before)
	require.NoError(t, c.HSet(ctx, "snap:h", "a", "3").Err())
	assert.NotEqual(t, before, e.Snapshot(t, "snap:*"))
	assert.Equal(t, time.Duration(-1), e.Keys(t, "snap:s")["snap:s"], "no TTL")
}

func TestNode_killAndRestart(t *testing.T) {
	e := New(t, Options{Password: "p"})
	c := client(t, e)
	require.NoError(t, c.Set(t.Context(), "k", "v", 0).Err())
	e.Nodes()[0].Kill()
	require.Error(t, c.Ping(t.Context()).Err())
	e.Nodes()[0].Restart(t)
	require.NoError(t, c.Ping(t.Context()).Err(), "the same address and password")
	assert.ErrorIs(t, c.Get(t.Context(), "k").Err(), redis.Nil, "empty again")
}

func TestNode_pauseAndResume(t *testing.T) {
	e := New(t, Options{})
	c := client(t, e)
	n := e.Nodes()[0]
	n.Pause(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, c.Ping(ctx).Err(), context.DeadlineExceeded, "frozen, not refused")
	n.Resume(t)
	require.NoError(t, c.Ping(t.Context()).Err())
}

func TestEngine_full(t *testing.T) {
	e := New(t, Options{MaxMemory: "8mb"})
	c := client(t, e)
	require.NoError(t, c.Set(t.Context(), "before", "v", 0).Err())
	t.Run("full", func(t *testing.T) {
		e.ConfigSet(t, "maxmemory", "1")
		require.ErrorContains(t, c.Set(t.Context(), "k", "v", 0).Err(), "OOM")
		require.NoError(t, c.Get(t.Context(), "before").Err(), "noeviction")
	})
	require.NoError(t, c.Set(t.Context(), "k", "v", 0).Err(), "set back at the test's end")
}

func TestEngine_Migrate_halfWayRefusesAbsentKeys(t *testing.T) {
	e := New(t, Options{Cluster: true})
	c := client(t, e)
	ctx := t.Context()
	const present, absent = "{m}:present", "{m}:absent"
	require.NoError(t, c.Set(ctx, present, "v", time.Hour).Err())
	both := redis.NewScript(`return {redis.call('EXISTS', KEYS[1]), redis.call('EXISTS', KEYS[2])}`)
	require.NoError(t, both.Run(ctx, c, []string{present, absent}).Err())

	m := e.Migrate(t, present)
	assert.NotSame(t, m.From, m.To)
	node := redis.NewClient(&redis.Options{Addr: m.From.Addr, MaxRetries: -1})
	t.Cleanup(func() { _ = node.Close() })
	require.ErrorContains(t, both.Eval(ctx, node, []string{present, absent}).Err(), "TRYAGAIN")
	m.Move(t, present)
	require.NoError(t, c.Get(ctx, present).Err(), "redirected to the new owner")
	m.Finish(t)
	require.NoError(t, both.Run(ctx, c, []string{present, absent}).Err())
	assert.Same(t, m.To, e.Owner(t, present))
	assert.Greater(t, e.Keys(t, "{m}:*")[present], time.Minute, "moved with its TTL")
}

func TestEngine_failover(t *testing.T) {
	e := New(t, Options{Cluster: true, Replicas: 1, NodeTimeout: time.Second})
	require.Len(t, e.Nodes(), 6)
	c := client(t, e)
	old := e.Owner(t, "k")
	require.NoError(t, c.Set(t.Context(), "k", "v", 0).Err())
	old.Kill()
	require.Eventually(t, func() bool {
		return c.Set(t.Context(), "k", "w", 0).Err() == nil
	}, 30*time.Second, 50*time.Millisecond)
	assert.NotSame(t, old, e.Owner(t, "k"))
	old.Restart(t)
}

func TestFreeAddr_nobodyListens(t *testing.T) {
	addr := FreeAddr(t)
	assert.NotEqual(t, addr, FreeAddr(t))
	_, err := net.DialTimeout("tcp", addr, time.Second)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

func TestNode_start_saysWhyItFailed(t *testing.T) {
	_, err := start(Options{Args: []string{"--no-such-directive", "1"}})
	require.ErrorContains(t, err, "no-such-directive", "the server's own words")
}

func TestProgram_missingNamesTheCommand(t *testing.T) {
	_, err := program("no-such-server", "")
	require.EqualError(t, err, "testkit: no-such-server is not installed; run: make tools")
}

func TestServers_dieWithTheTestProcess(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "SUNHWA_TESTKIT_CHILD="+file)
	require.NoError(t, child.Start())
	var pid int
	require.Eventually(t, func() bool {
		b, err := os.ReadFile(file)
		if err != nil {
			return false
		}
		number, dir, _ := strings.Cut(string(b), " ")
		pid, err = strconv.Atoi(number)
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		return err == nil
	}, 30*time.Second, 10*time.Millisecond)
	require.NoError(t, syscall.Kill(pid, 0), "it runs")
	require.NoError(t, child.Process.Kill())
	_ = child.Wait()
	require.Eventually(t, func() bool { return gone(pid) }, 10*time.Second, 10*time.Millisecond)
}

// gone reports whether the process has ended; in a container without an init it
// may stay a zombie.
func gone(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || strings.Contains(string(b), ") Z ")
}
