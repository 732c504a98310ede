package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"sunhwa/shared/job"
	"sunhwa/shared/jobstore"
)

// The times of a history's jobs. A history may shorten a job's life by lapses and
// its texts' hour by deadlines as well, at most so often that minutes remain.
const (
	lease     = 4 * time.Minute
	deadline  = 20 * time.Minute
	retention = 24 * time.Hour
	hour      = time.Hour // the texts' life after applied
	slack     = 2 * time.Minute

	maxLapses    = 4 // deadline - 4 leases > slack
	maxDeadlines = 2 // hour - 2 deadlines - 4 leases > slack
)

// comments a job has, attempts it may have, calls made on one target (the clock's
// own come on top), calls of them that do not wait for their reply.
const (
	comments = 2
	attempts = 2
	budget   = 50
	hasty    = 3
)

// ErrSlow: recording took so long that something may have lapsed by itself. It
// says nothing of the history.
var ErrSlow = errors.New("history: the machine was too slow to record it")

// Servers is a deployment as several functions see it.
type Servers struct {
	Clients []redis.UniversalClient // one a store; the first also moves the clock
	Scripts map[string]string       // see jobstore.Options; nil: those shipped
}

// round is one target while its history is recorded.
type round struct {
	target job.Target
	ids    []job.ID // all that may be acquired, ascending
	rdb    redis.UniversalClient
	stores []*jobstore.Store
	began  time.Time

	mu      sync.Mutex
	turned  *sync.Cond // slot, over, active or waiting has changed
	slot    int        // calls made so far
	over    bool
	active  int // clients that have not ended
	waiting int // of them, those inside await
	hasty   int // calls that still may go without a reply
	known   []job.ID
	ops     []Op
}

// Record makes a target of the given name and lets ten clients loose on it: three
// starters, three workers, a canceller, a reader, a sweeper, and the clock. What
// each does is drawn from seed; how their calls interleave is the machine's
// choice. It fails when a store answers what no move may answer, and with ErrSlow.
func Record(ctx context.Context, s Servers, name string, seed uint64) (History, error) {
	r := &round{target: job.Target{Tenant: "history", ID: name}, rdb: s.Clients[0], hasty: hasty}
	r.turned = sync.NewCond(&r.mu)
	for i := range 18 {
		id, err := job.NewID(time.UnixMilli(1_900_000_000_000+int64(i)), r.target)
		if err != nil {
			return History{}, err
		}
		r.ids = append(r.ids, id)
	}
	for _, c := range s.Clients {
		r.stores = append(r.stores, jobstore.New(c, jobstore.Options{MaxAttempts: attempts, Scripts: s.Scripts}))
	}
	defer r.clear(context.WithoutCancel(ctx))
	if err := r.run(ctx, seed); err != nil {
		return History{}, err
	}
	if time.Since(r.began) > slack {
		return History{}, ErrSlow
	}
	return History{Target: name, Ops: r.ops}, nil
}

// run lets the clients work until the calls are used up.
func (r *round) run(ctx context.Context, seed uint64) error {
	programs := []struct {
		who string
		run func(*client, context.Context) error
	}{
		{"starter 0", (*client).start}, {"starter 1", (*client).start}, {"starter 2", (*client).start},
		{"worker a", (*client).work}, {"worker b", (*client).work}, {"worker c", (*client).work},
		{"canceller", (*client).cancel}, {"reader", (*client).read}, {"sweeper", (*client).sweep},
	}
	asked := ctx
	g, ctx := errgroup.WithContext(ctx)
	stop := context.AfterFunc(ctx, r.end)
	defer stop()
	r.active, r.began = len(programs), time.Now()
	for i, p := range programs {
		c := &client{
			round: r, who: p.who, number: i, store: r.stores[i%len(r.stores)], random: rand.New(rand.NewPCG(seed, uint64(i))), //nolint:gosec // repeatable
		}
		g.Go(func() error {
			defer r.leave()
			if err := p.run(c, ctx); !errors.Is(err, errOver) {
				return fmt.Errorf("history: %s: %w", c.who, err)
			}
			return nil
		})
	}
	clock := &client{round: r, who: "clock", store: r.stores[0], random: rand.New(rand.NewPCG(seed, 99))} //nolint:gosec // repeatable
	g.Go(func() error { return clock.tick(ctx) })
	if err := g.Wait(); err != nil {
		return err
	}
	return asked.Err()
}

// errOver ends a client: the calls are used up.
var errOver = errors.New("over")

// take gives a client one of the calls, and its place among them.
func (r *round) take() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.slot++; r.slot > budget {
		r.over = true
	}
	r.turned.Broadcast()
	if r.over {
		return errOver
	}
	return nil
}

func (r *round) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	r.turned.Broadcast()
}

func (r *round) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active--
	r.turned.Broadcast()
}

// await holds a client until n more calls have been made, unless all wait.
func (r *round) await(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	until := r.slot + n
	r.waiting++
	for r.slot < until && !r.over && r.waiting < r.active {
		r.turned.Wait()
	}
	r.waiting--
}

// reach holds the clock until the call of that place has been given out; false
// when the calls are used up before.
func (r *round) reach(place int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.slot < place && !r.over {
		r.turned.Wait()
	}
	return !r.over
}

func (r *round) note(o Op) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, o)
	if o.In.Move == job.MoveAcquire && o.Out.Reply == job.ReplyOK && !slices.Contains(r.known, o.In.ID) {
		r.known = append(r.known, o.In.ID)
	}
}

// one of the jobs acquired so far, an older one than the newest once in n times
// or less. Before there is any, an id that none has.
func (r *round) one(random *rand.Rand, n int) job.ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.known) == 0 {
		return r.ids[0]
	}
	if random.IntN(n) > 0 {
		return r.known[len(r.known)-1]
	}
	return r.known[random.IntN(len(r.known))]
}

// impatient gives a call a deadline so short that its reply may be lost, for as
// long as the history may have such calls.
func (r *round) impatient(ctx context.Context, random *rand.Rand) (context.Context, context.CancelFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hasty == 0 || random.IntN(12) > 0 {
		return ctx, func() {}
	}
	r.hasty--
	return context.WithTimeout(ctx, time.Duration(50+random.IntN(1500))*time.Microsecond)
}
