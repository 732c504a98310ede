package main

import (
	"context"
	"fmt"
	"time"

	"sunhwa/infra/race/explore"
	"sunhwa/infra/testkit"
	"sunhwa/shared/jobstore"
)

// engines are the real servers orders are replayed on. Redis's clock moves by
// some ms inside a transaction, Valkey's stands still.
var engines = []struct {
	name      string
	options   testkit.Options
	tolerance int64 // ms
}{
	{"redis", testkit.Options{}, 50},
	{"valkey", testkit.Options{Valkey: true}, 0},
	{"cluster", testkit.Options{Cluster: true}, 50},
}

// startAll starts every real server, before anything that takes time: what is
// missing is told at once. stop ends those that were started.
func startAll() (servers []*testkit.Engine, stop func(), err error) {
	stop = func() {
		for _, server := range servers {
			server.Stop()
		}
	}
	for _, e := range engines {
		server, err := testkit.Start(e.options)
		if err != nil {
			stop()
			return nil, nil, err
		}
		servers = append(servers, server)
	}
	return servers, stop, nil
}

// replayAll runs a sample of every scenario's orders on every real server.
func replayAll(ctx context.Context, servers []*testkit.Engine, scenarios []*explore.Scenario, o options) error {
	fmt.Fprintf(o.out, "the same orders on real servers, answer for answer and key for key (seed %d)\n", o.seed)
	for i, e := range engines {
		began := time.Now()
		orders, calls, err := replayOn(ctx, servers[i], scenarios, o, e.tolerance)
		if err != nil {
			return fmt.Errorf("on %s: %w", e.name, err)
		}
		fmt.Fprintf(o.out, "  %-8s %5d orders, %6d calls agree %s\n", e.name, orders, calls, time.Since(began).Round(100*time.Millisecond))
	}
	return nil
}

func replayOn(ctx context.Context, server *testkit.Engine, scenarios []*explore.Scenario, o options, tolerance int64) (orders, calls int, err error) {
	at := jobstore.ClientOptions{Addrs: server.Addrs, Cluster: server.Cluster}
	plain := jobstore.NewClient(at)
	defer func() { _ = plain.Close() }()
	for _, sc := range scenarios {
		hooked := jobstore.NewClient(at)
		p, err := explore.NewReplayer(ctx, sc, plain, hooked, tolerance)
		if err != nil {
			return orders, calls, err
		}
		for i := range o.samples {
			n, err := p.Sample(ctx, o.seed+uint64(i))
			if err != nil {
				return orders, calls, err
			}
			orders, calls = orders+1, calls+n
		}
		p.Close()
		if err := hooked.Close(); err != nil {
			return orders, calls, err
		}
	}
	return orders, calls, nil
}
