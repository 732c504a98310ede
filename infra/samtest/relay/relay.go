// Package relay lets containers reach servers that listen on loopback only: it
// passes connections on from an address of this machine that containers see.
package relay

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os/exec"
	"strings"
	"sync"
)

// Relay passes every connection to one address on to another.
type Relay struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	done  sync.WaitGroup
}

// Open listens on from, host:port, and passes connections on to to until Close.
// Nothing needs to listen there yet. The error is that of listening.
func Open(from, to string) (*Relay, error) {
	l, err := net.Listen("tcp", from)
	if err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	r := &Relay{listener: l, to: to, conns: map[net.Conn]struct{}{}}
	r.done.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // closed
			}
			r.done.Go(func() { r.pass(c) })
		}
	})
	return r, nil
}

// Addr is where it listens.
func (r *Relay) Addr() string { return r.listener.Addr().String() }

// Close ends the listening and every connection, and waits for them.
func (r *Relay) Close() error {
	err := r.listener.Close()
	r.mu.Lock()
	for c := range r.conns {
		_ = c.Close() // its copying then ends
	}
	r.mu.Unlock()
	r.done.Wait()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("relay: close: %w", err)
	}
	return nil
}

func (r *Relay) pass(c net.Conn) {
	defer func() { _ = c.Close() }() // may be closed already
	up, err := net.Dial("tcp", r.to)
	if err != nil {
		slog.Warn("relay: nobody listens", "to", r.to)
		return
	}
	defer func() { _ = up.Close() }()
	r.mu.Lock()
	r.conns[c], r.conns[up] = struct{}{}, struct{}{}
	r.mu.Unlock()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{c, up}, {up, c}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // either side's end is the end
			_ = way[0].Close()
		})
	}
	both.Wait()
	r.mu.Lock()
	delete(r.conns, c)
	delete(r.conns, up)
	r.mu.Unlock()
}

// Gateway returns the address by which containers on the engine's default network
// reach this machine, which "host-gateway" stands for. It is none of this
// machine's own where the engine runs in a machine of its own (Docker Desktop),
// which passes host.docker.internal on to loopback itself.
func Gateway() (string, error) {
	out, err := exec.Command("docker", "network", "inspect", "bridge", "--format", "{{(index .IPAM.Config 0).Gateway}}").Output()
	gateway := strings.TrimSpace(string(out))
	if err == nil && net.ParseIP(gateway) == nil {
		err = errors.New("no address")
	}
	if err != nil {
		return "", fmt.Errorf("relay: the container engine's bridge: %w", err)
	}
	return gateway, nil
}
