// Race shows, on a temporary real server, that the usual way (GET the running
// job, decide, SET) breaks in one order of events, and that the shipped job store
// does not in the same one.
//
// The order is forced by barriers, on as many different targets as there are
// scenarios. So the figures say what happens in that order; they say nothing of
// how often it happens.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"sunhwa/infra/testkit"
	"sunhwa/shared/jobstore"
)

func main() {
	scenarios := flag.Int("scenarios", 100, "targets on which each order is forced")
	engine := flag.String("engine", "redis", "redis or valkey: the temporary server to start")
	addr := flag.String("addr", "", "host:port of a running server to use instead, or several, comma-separated")
	mode := flag.String("mode", "standalone", "standalone or cluster: what the running server is")
	asJSON := flag.Bool("json", false, "print the figures as JSON")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *scenarios, *engine, *addr, *mode, *asJSON); err != nil {
		fmt.Fprintln(os.Stderr, "race:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has been called
	}
}

func run(ctx context.Context, scenarios int, engine, addr, mode string, asJSON bool) error {
	if scenarios < 1 || scenarios > 100_000 {
		return fmt.Errorf("SCENARIOS is %d, want 1 to 100000", scenarios)
	}
	if engine != "redis" && engine != "valkey" {
		return fmt.Errorf("ENGINE is %q, want redis or valkey", engine)
	}
	if mode != "standalone" && mode != "cluster" {
		return fmt.Errorf("REDIS_MODE is %q, want standalone or cluster", mode)
	}
	redis.SetLogger(silence{}) // what goes wrong comes back as an error
	if addr == "" {
		server, err := testkit.Start(testkit.Options{Valkey: engine == "valkey"})
		if err != nil {
			return err
		}
		defer server.Stop()
		addr = server.Addrs[0]
	}
	rdb := jobstore.NewClient(jobstore.ClientOptions{Addrs: strings.Split(addr, ","), Cluster: mode == "cluster"})
	defer func() { _ = rdb.Close() }()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	r := newRace(rdb)
	defer r.clean(context.WithoutCancel(ctx))
	f, err := r.all(ctx, scenarios)
	if err != nil {
		return err
	}
	if asJSON {
		err = json.NewEncoder(os.Stdout).Encode(f)
	} else {
		fmt.Fprintf(os.Stderr, "Each order of events is forced by barriers on %d different targets: "+
			"the figures say what happens in that order, not how often it happens.\n", scenarios)
		err = f.print(os.Stdout)
	}
	if wrong := f.check(); wrong != nil {
		return wrong
	}
	return err
}

// silence drops what the client library would print.
type silence struct{}

// Printf does nothing.
func (silence) Printf(context.Context, string, ...any) {}
