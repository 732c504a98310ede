package testkit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Node is one server of a deployment.
type Node struct {
	Addr string // host:port

	engine *Engine
	path   string // of the program
	dir    string
	port   int
	bus    int // the cluster bus
	id     string
	proc   *process
	admin  *redis.Client // for this package's own commands
}

func newNode(e *Engine, path string, index int) (*Node, error) {
	n := &Node{engine: e, path: path, dir: filepath.Join(e.dir, strconv.Itoa(index))}
	if err := os.Mkdir(n.dir, 0o700); err != nil {
		return nil, fmt.Errorf("testkit: folder of a node: %w", err)
	}
	return n, nil
}

// place finds the node its ports and starts it there, with others if another
// process was quicker to take one.
func (n *Node) place(ctx context.Context) error {
	var last error
	for range 5 {
		var err error
		if n.port, err = freePort(); err != nil {
			return err
		}
		if n.bus, err = freePort(); err != nil {
			return err
		}
		n.Addr = loopback(n.port)
		last = n.start(ctx)
		if last == nil || !strings.Contains(last.Error(), "in use") {
			return last
		}
	}
	return last
}

// start runs the server and returns once it answers PING and is known to be the
// one this node started.
func (n *Node) start(ctx context.Context) error {
	n.close()
	proc, err := startProcess(n.dir, n.path, n.arguments()...)
	if err != nil {
		return err
	}
	n.proc = proc
	n.admin = redis.NewClient(&redis.Options{
		Addr: n.Addr, Password: n.engine.Password, DisableIdentity: true, PoolSize: 4,
		DialTimeout: time.Second, DialerRetries: 1, ContextTimeoutEnabled: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	var died bool
	err = poll(ctx, func(ctx context.Context) error {
		if died = proc.ended(); died {
			return nil
		}
		conn, err := net.DialTimeout("tcp", n.Addr, time.Second)
		if err != nil {
			return err // asked here first, because the client logs every refusal
		}
		_ = conn.Close()
		if err := n.admin.Ping(ctx).Err(); err != nil {
			return err
		}
		return n.own(ctx)
	})
	if died {
		err = errors.New("it ended")
	}
	if err != nil {
		n.close()
		return fmt.Errorf("testkit: %s on %s: %w; it said:\n%s", n.path, n.Addr, err, proc.logTail())
	}
	return nil
}

// own makes sure that who answers is the process this node started, and not one
// of another test process that took the same port first.
func (n *Node) own(ctx context.Context) error {
	info, err := n.info(ctx, "server")
	if err != nil {
		return err
	}
	if info["process_id"] != strconv.Itoa(n.Pid()) {
		return fmt.Errorf("testkit: %s belongs to another process", n.Addr)
	}
	return nil
}

// close ends the server if it runs, and the client to it.
func (n *Node) close() {
	if n.proc != nil {
		n.proc.kill()
	}
	if n.admin != nil {
		_ = n.admin.Close() // its server is gone
	}
}

// info returns one section of INFO.
func (n *Node) info(ctx context.Context, section string) (map[string]string, error) {
	text, err := n.admin.Info(ctx, section).Result()
	if err != nil {
		return nil, fmt.Errorf("testkit: INFO of %s: %w", n.Addr, err)
	}
	return fields(text), nil
}

// fields reads the "name:value" lines of INFO and CLUSTER INFO.
func fields(text string) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			m[name] = value
		}
	}
	return m
}
