package explore

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"sunhwa/shared/job"
	"sunhwa/shared/jobstore"
)

// lab is one embedded server with a store for each configuration. The stores
// share one fixed wall clock: it decides nothing.
type lab struct {
	server *miniredis.Miniredis
	client redis.UniversalClient
	stores []*jobstore.Store
}

func newLab(sc *Scenario, scripts map[string]string) (*lab, error) {
	m, err := miniredis.Run()
	if err != nil {
		return nil, fmt.Errorf("explore: start the embedded server: %w", err)
	}
	l := &lab{server: m, client: jobstore.NewClient(jobstore.ClientOptions{Addrs: []string{m.Addr()}})}
	l.stores = sc.stores(l.client, scripts)
	return l, nil
}

func (l *lab) close() {
	_ = l.client.Close()
	l.server.Close()
}

// stores makes a store for each configuration; they differ in what a job must
// not depend on.
func (sc *Scenario) stores(rdb redis.UniversalClient, scripts map[string]string) []*jobstore.Store {
	at := time.UnixMilli(1_000_000)
	all := make([]*jobstore.Store, len(sc.Configs))
	for i := range all {
		all[i] = jobstore.New(rdb, jobstore.Options{
			MemoLimit: sc.Memo, MaxAttempts: sc.Attempts, Now: func() time.Time { return at },
			Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Scripts: scripts,
		})
	}
	return all
}

// server runs a step's call from a world and returns the answer, the keys after
// it and their digest.
type server func(context.Context, *world, op) (*outcome, error)

// outcome is what a call led to.
type outcome struct {
	reply reply
	keys  snapshot
	sum   digest
}

// serve runs a step's call on the embedded server.
func (l *lab) serve(ctx context.Context, w *world, o op) (*outcome, error) {
	write(l.server, w.keys)
	out := &outcome{}
	switch o.move {
	case "clock":
		l.server.FastForward(time.Duration(o.passes) * time.Millisecond)
	case "failover":
		l.server.Del(o.lose)
	case "scan": // what it saw is in the step itself
	default:
		out.reply = call(ctx, l.stores, o)
	}
	out.keys = read(l.server)
	out.sum = out.keys.digest()
	return out, ctx.Err()
}

// asked names a call on given keys. What it leads to depends on nothing else:
// the displayed time is fixed and the server's clock is in the keys' TTLs. So the
// same call on the same keys is run once and its outcome used again, whatever the
// actors around it have in hand; the invariants look at every step all the same.
type asked struct {
	keys   digest
	op     op
	missed job.ID
	fresh  bool
}

func askedOf(w *world, o op) asked {
	k := asked{keys: w.sum, op: o}
	if o.make != nil {
		k.missed, k.fresh = o.make.Missing, o.make.Fresh
	}
	k.op.make, k.op.first = nil, false
	return k
}

// cached serves from what was asked before.
func (k *walk) cached(l *lab) server {
	return func(ctx context.Context, w *world, o op) (*outcome, error) {
		q := askedOf(w, o)
		k.mu.Lock()
		out := k.known[q]
		k.mu.Unlock()
		if out != nil {
			return out, nil
		}
		out, err := l.serve(ctx, w, o)
		k.mu.Lock()
		k.known[q] = out
		k.calls++
		k.mu.Unlock()
		return out, err
	}
}
