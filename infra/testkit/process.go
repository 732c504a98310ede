package testkit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// startTimeout bounds how long one server, or one cluster, may take until it
// serves. It takes 16 ms and 2–4 s on an idle machine; the rest is for busy ones.
const startTimeout = 60 * time.Second

// process is one child that this package started, and the only thing it ends.
type process struct {
	cmd  *exec.Cmd
	log  string        // file with all it printed
	done chan struct{} // closed once the child has been reaped
}

// spawner runs functions on one OS thread that lives as long as the process:
// a child that dies with its parent dies with the thread that forked it.
var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// startProcess runs program in dir, its output in dir/log.
func startProcess(dir, program string, args ...string) (*process, error) {
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("testkit: log of %s: %w", program, err)
	}
	defer log.Close() // the child has its own descriptor
	p := &process{cmd: exec.Command(program, args...), log: log.Name(), done: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, log, log
	p.cmd.SysProcAttr = dieWithParent()
	started := make(chan error)
	spawner() <- func() { started <- p.cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("testkit: start %s: %w", program, err)
	}
	go func() {
		_ = p.cmd.Wait() // the exit status of a killed server says nothing
		close(p.done)
	}()
	return p, nil
}

// ended reports whether the child is gone.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// kill ends the child at once (SIGKILL, a stopped one too) and waits for it.
func (p *process) kill() {
	if !p.ended() {
		_ = p.cmd.Process.Kill() // it may have ended meanwhile
	}
	<-p.done
}

func (p *process) signal(s syscall.Signal) error {
	if p.ended() {
		return errors.New("testkit: the process has ended")
	}
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("testkit: signal %s: %w", s, err)
	}
	return nil
}

// logTail returns the end of what the child printed, for an error.
func (p *process) logTail() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	const limit = 2000
	if len(b) > limit {
		b = b[len(b)-limit:]
	}
	return string(b)
}

// poll calls ready every few milliseconds until it returns nil, and returns its
// last error when ctx ends first.
func poll(ctx context.Context, ready func(context.Context) error) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

var ports = struct {
	sync.Mutex
	given map[int]bool
}{given: map[int]bool{}}

// freePort returns a loopback port on which nobody listens and which it never
// gave before. It lies below the ephemeral ranges of Linux and macOS, so that no
// outgoing connection takes it before the server does.
func freePort() (int, error) {
	ports.Lock()
	defer ports.Unlock()
	var last error
	for range 500 {
		port := 20000 + rand.IntN(10000)
		if ports.given[port] {
			continue
		}
		l, err := net.Listen("tcp", loopback(port))
		if err != nil {
			last = err
			continue
		}
		_ = l.Close() // it was opened only to see that it can be
		ports.given[port] = true
		return port, nil
	}
	return 0, fmt.Errorf("testkit: no free port: %w", last)
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// FreeAddr returns a loopback address on which nobody listens: an unreachable
// server, or a place for one the test starts itself.
func FreeAddr(t testing.TB) string {
	t.Helper()
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	return loopback(port)
}

// Root returns the module's root folder: the nearest one above the test's that
// holds this package.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("testkit: working folder: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "infra", "testkit", "doc.go")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("testkit: not inside the project")
		}
		dir = up
	}
}

// program returns the path of an installed program: under .tools, where `make
// tools` puts what the system does not package, or on the PATH.
func program(name, underTools string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	if underTools != "" {
		path := filepath.Join(root, ".tools", underTools)
		if found, err := exec.LookPath(path); err == nil {
			return found, nil
		}
	}
	found, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("testkit: %s is not installed; run: make tools", name)
	}
	return found, nil
}
