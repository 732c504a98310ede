package explore

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"sunhwa/shared/job"
)

// done is the place of an actor that has nothing more to do.
const done = -1

// program is what one actor does. next lists the calls it may make now (several
// when it has a choice, none when it waits); after moves the actor on by the
// answer. Both are pure: they read and change the world given and nothing else.
type program interface {
	name() string
	next(sc *Scenario, w *world, a spot) []op
	after(sc *Scenario, w *world, a *spot, o op, r reply)
}

// mint makes the id that who would draw at the given ms: the same one every time.
func mint(t job.Target, at int64, who byte) job.ID {
	var u ulid.ULID
	_ = u.SetTime(uint64(at)) //nolint:gosec // scenario times are small and positive
	for i := 6; i < len(u); i++ {
		u[i] = who
	}
	s := u.String()
	return job.ID(s[:24] + t.Shard())
}

// starter is the start function: claims, or learns who holds the target.
type starter struct {
	who     string
	store   int   // whose configuration
	at      int64 // ms its host's clock shows
	mark    byte  // its entropy
	refused bool  // Lambda refuses its invocation
	fresh   bool
	lies    bool // calls whoever holds the target missing, and has never looked
}

func (s starter) name() string { return s.who }

const (
	startAcquire = iota
	startReadHolder
	startAcquireMissing
	startFail
)

func (s starter) next(sc *Scenario, w *world, a spot) []op {
	id := a.id
	if id == "" && a.at != done {
		id = mint(sc.Target, s.at, s.mark)
	}
	ref := job.Ref{ID: id, Target: sc.Target}
	switch a.at {
	case startAcquire, startAcquireMissing:
		c := sc.creation(s.store, ref, s.fresh)
		if a.at == startAcquireMissing {
			c.Missing = a.other
		} else if s.lies {
			c.Missing = job.ID(w.keys.text(sc.names("").Run))
		}
		return []op{{move: "acquire", store: s.store, ref: ref, make: &c, other: c.Missing}}
	case startReadHolder:
		return []op{{move: "read", store: s.store, ref: job.Ref{ID: a.other, Target: sc.Target}}}
	case startFail:
		return []op{{move: "fail", store: s.store, ref: ref, guard: job.GuardStart, code: job.CodeDispatchFailed}}
	}
	return nil
}

func (s starter) after(sc *Scenario, w *world, a *spot, o op, r reply) {
	var held *job.HeldError
	var stale *job.StaleIDError
	switch {
	case o.move == "fail":
		a.at = done
	case o.move == "read" && r.err == nil && r.job.Status == job.Running:
		a.at = done // 200, reused
	case o.move == "read" && errors.Is(r.err, job.ErrNotFound):
		a.at = startAcquireMissing
	case o.move == "read":
		a.at = startAcquire
	case r.err == nil && s.refused:
		a.id, a.at = o.ref.ID, startFail
	case r.err == nil:
		w.send(o.ref.ID)
		a.at = done
	case errors.As(r.err, &held) && a.n < 2:
		a.n, a.id, a.other, a.at = a.n+1, o.ref.ID, held.Holder, startReadHolder
	case errors.As(r.err, &stale) && a.n < 2:
		at := max(s.at, stale.Newest.Time().UnixMilli()+1)
		a.n, a.id, a.at = a.n+1, mint(sc.Target, at, s.mark), startAcquire
	default:
		a.at = done // 503
	}
}

// each makes one op for every job born so far.
func each(sc *Scenario, w *world, o op) []op {
	ops := make([]op, 0, len(w.born))
	for _, id := range w.born {
		o.ref = job.Ref{ID: id, Target: sc.Target}
		ops = append(ops, o)
	}
	return ops
}

// reader is somebody who polls.
type reader struct{ times int }

func (reader) name() string { return "reader" }

func (p reader) next(sc *Scenario, w *world, a spot) []op { return each(sc, w, op{move: "read"}) }

func (p reader) after(sc *Scenario, w *world, a *spot, o op, r reply) {
	if a.n++; a.n == p.times {
		a.at = done
	}
}

// canceller ends a job it knows of.
type canceller struct{}

func (canceller) name() string { return "canceller" }

func (canceller) next(sc *Scenario, w *world, a spot) []op {
	o := op{move: "fail", guard: job.GuardCancel, code: job.CodeCanceled}
	if a.owed {
		o.ref = job.Ref{ID: a.id, Target: sc.Target}
		return []op{o}
	}
	return each(sc, w, o)
}

func (canceller) after(sc *Scenario, w *world, a *spot, o op, r reply) { a.at = done }

// sweeper inspects watched jobs and dispatches again.
type sweeper struct{ times int }

func (sweeper) name() string { return "sweeper" }

func (p sweeper) next(sc *Scenario, w *world, a spot) []op {
	o := op{move: "inspect"}
	if a.owed {
		o.ref = job.Ref{ID: a.id, Target: sc.Target}
		return []op{o}
	}
	var ops []op
	for _, id := range watched(sc, w.keys) {
		o.ref = job.Ref{ID: id, Target: sc.Target}
		ops = append(ops, o)
	}
	return ops
}

func (p sweeper) after(sc *Scenario, w *world, a *spot, o op, r reply) {
	if r.verdict.Kind == job.Redispatch {
		w.send(o.ref.ID)
	}
	if a.n++; a.n == p.times {
		a.at = done
	}
}

// lateSweeper reads the watch set first and inspects one of its jobs later, as the
// sweeper does with a whole shard's: the job may have ended meanwhile.
type lateSweeper struct{}

func (lateSweeper) name() string { return "late sweeper" }

func (lateSweeper) next(sc *Scenario, w *world, a spot) []op {
	if a.at == 1 {
		return []op{{move: "inspect", ref: job.Ref{ID: a.id, Target: sc.Target}}}
	}
	ops := sweeper{}.next(sc, w, spot{})
	for i := range ops {
		ops[i].move = "scan"
	}
	return ops
}

func (lateSweeper) after(sc *Scenario, w *world, a *spot, o op, r reply) {
	if o.move == "scan" {
		a.id, a.at = o.ref.ID, 1
		return
	}
	sweeper{times: 1}.after(sc, w, a, o, r)
}

// watched lists the ids in the scenario's watch set, sorted.
func watched(sc *Scenario, s snapshot) []job.ID {
	e := s[sc.names("").Watch]
	if e == nil {
		return nil
	}
	var ids []job.ID
	for m := range e.fields {
		id, _, _ := strings.Cut(m, ":")
		ids = append(ids, job.ID(id))
	}
	slices.Sort(ids)
	return ids
}

// applier publishes: reads the results, notes that they are published.
type applier struct{}

func (applier) name() string { return "applier" }

func (applier) next(sc *Scenario, w *world, a spot) []op {
	switch a.at {
	case 0:
		return each(sc, w, op{move: "results"})
	case 1:
		return []op{{move: "applied", ref: job.Ref{ID: a.id, Target: sc.Target}}}
	}
	return nil
}

func (applier) after(sc *Scenario, w *world, a *spot, o op, r reply) {
	a.at = done
	if o.move == "results" && r.err == nil {
		a.id, a.at = o.ref.ID, 1
	}
}

// eraser forgets the target's texts.
type eraser struct{}

func (eraser) name() string { return "eraser" }

func (eraser) next(sc *Scenario, w *world, a spot) []op {
	ref := job.Ref{Target: sc.Target}
	switch a.at {
	case 0:
		return []op{{move: "newest", ref: ref}}
	case 1:
		return []op{{move: "erase", ref: ref, other: a.other}}
	}
	return nil
}

func (eraser) after(sc *Scenario, w *world, a *spot, o op, r reply) {
	var moved *job.ChangedError
	switch {
	case o.move == "newest":
		a.other, a.at = r.newest, 1
	case errors.As(r.err, &moved) && a.n < 2:
		a.n, a.other = a.n+1, moved.Newest
	default:
		a.at = done
	}
}

// failover is an asynchronous failover that takes the claim back and nothing
// else: the exception that the promises name.
type failover struct{}

func (failover) name() string { return "failover" }

func (failover) next(sc *Scenario, w *world, a spot) []op {
	if w.keys[sc.names("").Run] == nil {
		return nil
	}
	return []op{{move: "failover", lose: sc.names("").Run}}
}

func (failover) after(sc *Scenario, w *world, a *spot, o op, r reply) { a.at = done }

// creation is what a start under configuration store writes.
func (sc *Scenario) creation(store int, ref job.Ref, fresh bool) job.Creation {
	c := sc.Configs[store]
	comments := []job.Comment{{ID: "a", Text: "one"}, {ID: "b", Text: "two"}}
	return job.Creation{
		Ref: ref, Comments: comments, Digest: "digest", Fresh: fresh, Spec: job.Spec{Model: "m", PromptVersion: "1"},
		Deadline: c.Deadline, Retention: c.Retention, Lease: lease,
	}
}

// Config is what one function's environment says of a job's times.
type Config struct {
	Deadline, Retention time.Duration
}
