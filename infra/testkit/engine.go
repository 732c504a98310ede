package testkit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// Options says what New starts. The zero value is one redis-server.
type Options struct {
	Valkey   bool // valkey-server rather than redis-server
	Cluster  bool // three primaries that share all slots
	Replicas int  // replicas of each primary; with Cluster only
	// NodeTimeout is the cluster's cluster-node-timeout: how long a node is silent
	// before it counts as failed. Zero means 15 s, at which no slow machine makes
	// a node fail; 1 s suits a failover test.
	NodeTimeout time.Duration
	MaxMemory   string   // for example "8mb", with the policy noeviction; empty: no limit
	Password    string   // of the default user; empty: none
	Args        []string // further arguments of every server, which overrule the others
}

// Engine is a running deployment of one or several servers.
type Engine struct {
	Name     string   // "redis", "valkey" or "cluster"
	Addrs    []string // host:port of every node
	Cluster  bool     // whether clients must use cluster mode
	Password string   // of the default user; empty: none

	options Options
	dir     string
	nodes   []*Node
}

// New starts a deployment for this test alone and ends it when the test ends.
func New(t testing.TB, o Options) *Engine {
	t.Helper()
	e, err := start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.stop)
	return e
}

func start(o Options) (*Engine, error) {
	e := &Engine{Name: "redis", Cluster: o.Cluster, Password: o.Password, options: o}
	path, err := program("redis-server", "")
	if o.Valkey {
		e.Name = "valkey"
		path, err = program("valkey-server", "valkey/valkey-server")
	}
	if err != nil {
		return nil, err
	}
	count := 1
	if o.Cluster {
		e.Name = "cluster"
		count = 3 * (1 + o.Replicas)
	}
	if e.dir, err = os.MkdirTemp("", "sunhwa-"+e.Name+"-"); err != nil {
		return nil, fmt.Errorf("testkit: folder: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := e.launch(ctx, path, count); err != nil {
		e.stop()
		return nil, err
	}
	return e, nil
}

func (e *Engine) launch(ctx context.Context, path string, count int) error {
	for i := range count {
		n, err := newNode(e, path, i)
		if err != nil {
			return err
		}
		e.nodes = append(e.nodes, n)
	}
	g, gctx := errgroup.WithContext(ctx)
	for _, n := range e.nodes {
		g.Go(func() error { return n.place(gctx) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, n := range e.nodes {
		e.Addrs = append(e.Addrs, n.Addr)
	}
	if e.Cluster {
		return e.join(ctx)
	}
	return nil
}

// stop ends every server and removes what they wrote. It may be called again.
func (e *Engine) stop() {
	for _, n := range e.nodes {
		n.close()
	}
	_ = os.RemoveAll(e.dir) // only a leftover in the temporary folder
}

// Nodes returns every server of the deployment; in a cluster the primaries as
// created come first.
func (e *Engine) Nodes() []*Node { return e.nodes }

// The shared instances, one a test process.
var (
	sharedRedis   = sync.OnceValues(func() (*Engine, error) { return share(Options{}) })
	sharedValkey  = sync.OnceValues(func() (*Engine, error) { return share(Options{Valkey: true}) })
	sharedCluster = sync.OnceValues(func() (*Engine, error) { return share(Options{Cluster: true}) })

	sharedMu sync.Mutex
	shared   []*Engine
)

func share(o Options) (*Engine, error) {
	e, err := start(o)
	if err != nil {
		return nil, err
	}
	sharedMu.Lock()
	defer sharedMu.Unlock()
	shared = append(shared, e)
	return e, nil
}

func get(t testing.TB, of func() (*Engine, error)) *Engine {
	t.Helper()
	e, err := of()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Redis returns the shared redis-server.
func Redis(t testing.TB) *Engine { t.Helper(); return get(t, sharedRedis) }

// Valkey returns the shared valkey-server.
func Valkey(t testing.TB) *Engine { t.Helper(); return get(t, sharedValkey) }

// Cluster returns the shared cluster of three redis-servers.
func Cluster(t testing.TB) *Engine { t.Helper(); return get(t, sharedCluster) }

// Engines returns the three shared deployments that every behaviour of the store
// is tested on.
func Engines(t testing.TB) []*Engine {
	t.Helper()
	return []*Engine{Redis(t), Valkey(t), Cluster(t)}
}

// Main runs a package's tests and then ends the shared instances: the body of
// its TestMain.
func Main(m *testing.M) {
	m.Run() // the exit code is kept in m
	sharedMu.Lock()
	defer sharedMu.Unlock()
	for _, e := range shared {
		e.stop()
	}
	shared = nil
}

// Kill ends the server at once, as a lost machine would.
func (n *Node) Kill() { n.proc.kill() }

// Pause freezes the server: connections stay open and nothing answers. The test's
// end thaws it if Resume was not called.
func (n *Node) Pause(t testing.TB) {
	t.Helper()
	if err := n.proc.signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.proc.signal(syscall.SIGCONT) }) // it may have been killed since
}

// Resume thaws a frozen server.
func (n *Node) Resume(t testing.TB) {
	t.Helper()
	if err := n.proc.signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

// Restart starts a killed server again at the same address: a standalone one
// empty, a cluster's node with its slots and its place.
func (n *Node) Restart(t testing.TB) {
	t.Helper()
	if !n.proc.ended() {
		t.Fatal(errors.New("testkit: restart of a running server"))
	}
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	if err := n.start(ctx); err != nil {
		t.Fatal(err)
	}
}

// Pid returns the server's process id.
func (n *Node) Pid() int { return n.proc.cmd.Process.Pid }

// arguments builds the server's command line. Nothing is kept on disk but a
// cluster's own configuration.
func (n *Node) arguments() []string {
	o := n.engine.options
	args := []string{
		"--bind", "127.0.0.1", "--port", strconv.Itoa(n.port), "--dir", n.dir,
		"--save", "", "--appendonly", "no", "--protected-mode", "no",
		// A replica is there at once instead of after the 5 s that wait for others.
		"--repl-diskless-sync-delay", "0",
	}
	if o.Password != "" {
		args = append(args, "--requirepass", o.Password, "--masterauth", o.Password)
	}
	if o.MaxMemory != "" {
		args = append(args, "--maxmemory", o.MaxMemory, "--maxmemory-policy", "noeviction")
	}
	if o.Cluster {
		timeout := o.NodeTimeout
		if timeout == 0 {
			timeout = 15 * time.Second
		}
		args = append(args, "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf",
			"--cluster-port", strconv.Itoa(n.bus), "--cluster-announce-ip", "127.0.0.1",
			"--cluster-node-timeout", strconv.FormatInt(timeout.Milliseconds(), 10),
			// A replica takes over however long it was cut off, and stays with its primary.
			"--cluster-replica-validity-factor", "0", "--cluster-allow-replica-migration", "no")
	}
	return append(args, o.Args...)
}
