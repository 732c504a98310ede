package jobstore

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/shared/job"
)

// Complaint (g), an option silently ignored: what the client was told is what it
// does, on a single node and, node by node, on a cluster.
func TestNewClient_options(t *testing.T) {
	secret := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: "redis.example"}
	o := ClientOptions{Addrs: []string{"127.0.0.1:1"}, TLS: secret, Username: "u", Password: "p",
		Credentials: func(context.Context) (string, string, error) { return "iam", "token", nil }}
	single, ok := NewClient(o).(*redis.Client)
	require.True(t, ok, "one address and no cluster: a single node")
	o.Cluster = true
	cluster, ok := NewClient(o).(*redis.ClusterClient)
	require.True(t, ok, "one address and cluster: a cluster client")
	t.Cleanup(func() { _, _ = single.Close(), cluster.Close() })

	node := redis.NewClient(single.Options())
	t.Cleanup(func() { _ = node.Close() })
	s, c := single.Options(), cluster.Options()
	assert.Equal(t, 1, s.MaxRetries, "a thawed Lambda's first command meets a dead connection")
	assert.Equal(t, 1, c.MaxRedirects)
	assert.Equal(t, -1, c.MaxRetries)
	assert.Equal(t, time.Second, c.ClusterStateReloadInterval)
	assert.False(t, c.ReadOnly || c.RouteByLatency || c.RouteRandomly, "reads go to the primary")
	assert.Equal(t, "127.0.0.1:1", s.Addr)
	assert.Equal(t, o.Addrs, c.Addrs)
	type common struct {
		dial, read, write, pool, idle, life time.Duration
		dials, size, minIdle                int
		contexts, anonymous                 bool
		maint                               maintnotifications.Mode
		tls                                 *tls.Config
		user, password                      string
	}
	want := common{
		dial: time.Second, read: 2 * time.Second, write: 2 * time.Second, pool: 2 * time.Second,
		idle: 45 * time.Second, life: 11 * time.Hour, dials: 1, size: 5, contexts: true, anonymous: true,
		maint: maintnotifications.ModeDisabled, tls: secret, user: "u", password: "p",
	}
	assert.Equal(t, want, common{s.DialTimeout, s.ReadTimeout, s.WriteTimeout, s.PoolTimeout, s.ConnMaxIdleTime,
		s.ConnMaxLifetime, s.DialerRetries, s.PoolSize, s.MinIdleConns, s.ContextTimeoutEnabled, s.DisableIdentity,
		s.MaintNotificationsConfig.Mode, s.TLSConfig, s.Username, s.Password})
	assert.Equal(t, want, common{c.DialTimeout, c.ReadTimeout, c.WriteTimeout, c.PoolTimeout, c.ConnMaxIdleTime,
		c.ConnMaxLifetime, c.DialerRetries, c.PoolSize, c.MinIdleConns, c.ContextTimeoutEnabled, c.DisableIdentity,
		c.MaintNotificationsConfig.Mode, c.TLSConfig, c.Username, c.Password})
	for _, credentials := range []func(context.Context) (string, string, error){
		s.CredentialsProviderContext, c.CredentialsProviderContext,
	} {
		name, token, err := credentials(ctx)
		require.NoError(t, err)
		assert.Equal(t, "iam token", name+" "+token)
	}
}

// What the client sends first: no CLIENT SETINFO and no maintenance handshake,
// which older and managed servers refuse.
func TestNewClient_handshake(t *testing.T) {
	m := miniredis.RunT(t)
	heard := &tap{}
	w := bare(t, ClientOptions{Addrs: []string{heard.before(t, m.Addr())}})
	require.NoError(t, w.Ping(ctx))
	said := heard.text()
	assert.Contains(t, said, "ping")
	assert.NotContains(t, said, "SETINFO")
	assert.NotContains(t, said, "setinfo")
	assert.NotContains(t, said, "maint_notifications")
}

// Authentication that fails, and a token nobody can give, are ErrUnavailable:
// they say nothing of the job.
func TestStore_authenticationFails(t *testing.T) {
	m := miniredis.RunT(t)
	m.RequireUserAuth("u", "right")
	given := errors.New("no token today")
	for name, o := range map[string]ClientOptions{
		"no password":    {},
		"wrong password": {Username: "u", Password: "wrong"},
		"no token":       {Credentials: func(context.Context) (string, string, error) { return "", "", given }},
		"TLS":            {Username: "u", Password: "right", TLS: &tls.Config{MinVersion: tls.VersionTLS12}},
	} {
		o.Addrs = []string{m.Addr()}
		for call, do := range methods(bare(t, o)) {
			if call == "EvictionPolicy" {
				continue // miniredis knows no CONFIG
			}
			err := do(ctx)
			assert.ErrorIs(t, err, job.ErrUnavailable, "%s %s", name, call)
			if name == "no token" {
				assert.ErrorIs(t, err, given)
			}
		}
	}
	rotated := atomic.Bool{}
	w := bare(t, ClientOptions{Addrs: []string{m.Addr()}, Username: "u", Password: "wrong",
		Credentials: func(context.Context) (string, string, error) {
			if rotated.Load() {
				return "u", "right", nil
			}
			return "u", "stale", nil
		}})
	require.ErrorIs(t, w.Ping(ctx), job.ErrUnavailable)
	rotated.Store(true)
	require.NoError(t, w.Ping(ctx), "each connection asks for credentials of its own")
}

// A caller's cancel stays visible, and is no refusal.
func TestStore_cancellationStaysVisible(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		canceled, cancel := context.WithCancel(ctx)
		cancel()
		for name, call := range methods(w) {
			err := call(canceled)
			assert.ErrorIs(t, err, context.Canceled, name)
			if name != "Watched" {
				assert.ErrorIs(t, err, job.ErrUnavailable, name)
			}
		}
	})
}

// The reply of each move gets lost on the wire once: the client asks again by
// itself and the caller sees nothing of it.
func TestStore_lostReply(t *testing.T) {
	m := miniredis.RunT(t)
	wire := &tap{}
	w := bare(t, ClientOptions{Addrs: []string{wire.before(t, m.Addr())}})
	cs := []job.Creation{w.creation(1), w.creation(1)}
	x := job.Extra{Seq: 1, Usage: job.Usage{Calls: 1}}
	for round, c := range cs { // in the first one the scripts are loaded
		a := attempt(c, "t")
		for _, call := range []func() error{
			func() error { return w.Acquire(ctx, c) },
			func() error { b, err := w.Begin(ctx, a); require.Equal(t, 1, b.Attempt); return err },
			func() error {
				p, err := w.Record(ctx, a, results(c, 0, 1), x)
				assert.Equal(t, job.Progress{Done: 1, Usage: job.Usage{Calls: 2, TotalTokens: 10}}, p)
				return err
			},
			func() error { return w.Renew(ctx, a) },
			func() error { return w.Finish(ctx, a, "", job.Extra{}) },
			func() error { _, _, err := w.Results(ctx, c.ID); return err },
			func() error { return w.Applied(ctx, c.ID, shownAt) },
			func() error { _, err := w.Inspect(ctx, c.Ref, lease); return err },
			func() error { return w.Erase(ctx, w.target, c.ID) },
		} {
			if round == 1 {
				wire.lose.Store(true)
			}
			require.NoError(t, call())
			require.False(t, wire.lose.Load(), "a reply was lost")
		}
		assert.Equal(t, int64(2), w.read(c.ID).Usage.Calls)
	}
}

// tap stands between a client and its server, listens, and may cut the wire where
// a reply should come back.
type tap struct {
	lose atomic.Bool
	mu   sync.Mutex
	said []byte
}

func (p *tap) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return string(p.said)
}

// Write notes what a client sent.
func (p *tap) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said = append(p.said, b...)
	return len(b), nil
}

// before returns the address to reach the server at addr through the tap.
func (p *tap) before(t *testing.T, addr string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", addr)
			if err != nil {
				_ = client.Close()
				return
			}
			go func() {
				defer server.Close()
				_, _ = io.Copy(server, io.TeeReader(client, p))
			}()
			go func() {
				defer client.Close()
				b := make([]byte, 1<<16)
				for {
					n, err := server.Read(b)
					if err != nil || p.lose.CompareAndSwap(true, false) {
						return
					}
					if _, err := client.Write(b[:n]); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}
