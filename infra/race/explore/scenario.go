package explore

import (
	"sync"
	"time"

	"sunhwa/shared/job"
	"sunhwa/shared/jobstore"
)

// Scenario is who takes part, and what may go wrong.
type Scenario struct {
	Name     string
	Says     string // what it is about, one line
	Target   job.Target
	Configs  []Config
	actors   []program
	Ticks    []time.Duration // the clock's steps, each may be taken at any time
	Losses   int             // replies that may be lost
	Crashes  int             // actors that may crash
	Attempts int             // a job may have
	Memo     int             // memo limit, fields
	// dangling: the world starts with a claim whose job is missing.
	dangling bool
	// foreign: the world starts with a job of a schema nobody knows.
	foreign bool
	// failover: the claim may be taken back, so two jobs of the target may run.
	failover bool
	known    sync.Map // names of keys by id, built once
}

const hour = time.Hour

// times common to most scenarios: three leases fit before the deadline.
var usual = Config{Deadline: time.Minute, Retention: 3 * hour}

// Scenarios lists what is walked. target is one for all: worlds differ in what
// happens, not in names.
func Scenarios() []*Scenario {
	a, b := starter{who: "start A", at: 1000, mark: 0xA5}, starter{who: "start B", store: 1, at: 900, mark: 0xB6}
	w1, w2, w3 := worker{token: "W1"}, worker{token: "W2", store: 1}, worker{token: "W3"}
	list := []*Scenario{
		{
			Name: "re-dispatch", Says: "two starts, two workers, a sweeper, a lease that lapses, a crash",
			actors: []program{a, b, w1, w2, sweeper{2}}, Ticks: []time.Duration{21 * time.Second, 21 * time.Second},
			Crashes: 1,
		},
		{
			Name: "lost reply", Says: "one start, two workers, a sweeper, any one reply lost and asked for again",
			actors: []program{a, w1, w2, sweeper{1}}, Ticks: []time.Duration{21 * time.Second}, Losses: 1,
		},
		{
			Name: "deadline", Says: "the deadline passes anywhere; the other start takes the target over",
			actors: []program{a, b, w1, w2, reader{1}}, Ticks: []time.Duration{time.Minute, time.Second}, Losses: 1,
		},
		{
			Name: "cancel", Says: "a cancel anywhere, a second start, the late worker",
			actors: []program{a, b, w1, w2, canceller{}, reader{1}}, Ticks: []time.Duration{21 * time.Second},
		},
		{
			Name: "kept texts", Says: "two successes after each other, applied and erased meanwhile",
			actors: []program{a, b, w1, w2, applier{}, eraser{}}, Losses: 1, Ticks: []time.Duration{time.Minute},
		},
		{
			Name: "two successes", Says: "two jobs after each other, erased anywhere: whose texts are kept",
			actors: []program{a, b, w1, w2, eraser{}},
		},
		{
			Name: "published", Says: "one job, applied and erased",
			actors: []program{a, w1, applier{}, eraser{}}, Losses: 1, Ticks: []time.Duration{time.Minute, time.Second},
		},
		{
			Name: "late sweeper", Says: "the sweeper acts on what it read before; everything expires",
			actors: []program{a, b, w1, canceller{}, lateSweeper{}}, Ticks: []time.Duration{21 * time.Second, 4 * hour},
		},
		{
			Name: "lost worker", Says: "one attempt is allowed; the sweeper ends what cannot be saved",
			actors: []program{a, b, worker{token: "W1", renews: true}, w3, sweeper{2}}, Attempts: 1,
			Ticks: []time.Duration{10 * time.Second, 11 * time.Second, 30 * time.Second}, Crashes: 1,
		},
		{
			Name: "failures", Says: "a refused invocation, a refusing model, the memo full",
			actors: []program{
				starter{who: "start A", at: 1000, mark: 0xA5, refused: true}, b,
				worker{token: "W1", fails: true}, worker{token: "W2", clumsy: true}, sweeper{1}, reader{1},
			},
			Ticks: []time.Duration{21 * time.Second}, Losses: 1, Memo: 1,
		},
		{
			Name: "faulty callers", Says: "a start that calls a live job missing, a worker that finishes without working",
			actors: []program{a, starter{who: "liar", at: 2000, mark: 0xB6, lies: true}, hasty{"H"}, hasty{""}, w2, applier{}, eraser{}},
			Ticks:  []time.Duration{21 * time.Second},
		},
		{
			Name: "failover", Says: "the claim is taken back by a failover; the job that lost it gets nowhere",
			actors:   []program{a, b, worker{token: "W1", renews: true}, w2, sweeper{1}, canceller{}, failover{}},
			failover: true,
		},
		{
			Name: "dangling claim", Says: "the claim names a job that is gone; two starts and a fresh run",
			actors: []program{a, starter{who: "start B", at: 1000, mark: 0xB6, fresh: true}, w1, w2}, Losses: 1,
			Ticks: []time.Duration{time.Minute}, dangling: true,
		},
		{
			Name: "another schema", Says: "a job written by a version nobody here knows",
			actors: []program{w1, sweeper{2}, canceller{}, reader{1}}, Losses: 1,
			Ticks: []time.Duration{21 * time.Second, 40 * time.Second}, foreign: true,
		},
	}
	for _, sc := range list {
		sc.Target = job.Target{Tenant: "tenant", ID: "target"}
		// The second configuration differs in everything: a job's clock is its own.
		sc.Configs = []Config{usual, {Deadline: 100 * time.Second, Retention: 2 * hour}}
		if sc.Attempts == 0 {
			sc.Attempts = 3
		}
		if sc.Memo == 0 {
			sc.Memo = 10
		}
	}
	return list
}

// names returns the keys of one job of the scenario's target.
func (sc *Scenario) names(id job.ID) *jobstore.Keys {
	if k, ok := sc.known.Load(id); ok {
		return k.(*jobstore.Keys)
	}
	of := id
	if of == "" {
		of = mint(sc.Target, 0, 0)
	}
	k := jobstore.KeysOf(job.Ref{ID: of, Target: sc.Target})
	sc.known.Store(id, &k)
	return &k
}

// first is the world before anybody has moved.
func (sc *Scenario) first() *world {
	w := &world{keys: snapshot{}, actors: make([]spot, len(sc.actors)), losses: sc.Losses, crashes: sc.Crashes}
	old := mint(sc.Target, 500, 0x11)
	k := sc.names(old)
	if sc.dangling {
		w.keys[k.Run] = &entry{kind: "string", text: string(old), ttl: sc.Configs[0].Deadline.Milliseconds()}
	}
	if sc.foreign {
		life := (sc.Configs[0].Deadline + sc.Configs[0].Retention).Milliseconds()
		w.keys[k.Run] = &entry{kind: "string", text: string(old), ttl: sc.Configs[0].Deadline.Milliseconds()}
		w.keys[k.In] = &entry{kind: "string", text: `[{"id":"a","text":"one"},{"id":"b","text":"two"}]`, ttl: life}
		w.keys[k.Watch] = &entry{kind: "set", fields: map[string]string{k.Member: ""}}
		w.keys[k.Job] = &entry{kind: "hash", ttl: life, fields: map[string]string{
			"schema": "999", "status": "RUNNING", "tenant": sc.Target.TenantKey(), "target": sc.Target.ID, "total": "2",
			"done": "0", "retention": "10800000", "createdAt": "1000", "deadlineAt": "61000", "attempt": "0", "token": "",
			"leaseAt": "0", "dispatchAt": "10840000", "seq": "0", "fresh": "0",
		}}
		w.born, w.queue = []job.ID{old}, []job.ID{old}
	}
	w.sum = w.keys.digest()
	return w
}
