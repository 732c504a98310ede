package explore

import (
	"fmt"
	"slices"
	"time"

	"sunhwa/shared/job"
	"sunhwa/shared/jobstore"
)

// stepped is one step with the worlds around it: what invariants look at.
type stepped struct {
	sc            *Scenario
	actor         string
	op            op
	reply         reply
	before, after *world
	repeat        bool   // the reply of the same call was lost before
	lost          string // … and was this
	untouched     bool   // … and nothing has changed since
}

// Invariant is one thing that holds after every step.
type Invariant struct {
	Name    string
	Says    string // in plain words
	Promise int    // of the README's seven, the one it serves; 0: housekeeping
	// check returns what is wrong, or "".
	check func(s *stepped) string
}

// view is a job as the keys show it.
type view struct {
	id       job.ID
	keys     *jobstore.Keys
	status   string
	ttl      int64 // ms
	left     int64 // ms to the deadline
	token    string
	terminal bool
	running  bool // RUNNING and not overdue
}

func (sc *Scenario) job(s snapshot, id job.ID) view {
	k := sc.names(id)
	v := view{id: id, keys: k, status: s.field(k.Job, "status"), ttl: s.ttl(k.Job), token: s.field(k.Job, "token")}
	v.left = v.ttl - s.number(k.Job, "retention")
	v.terminal = job.Status(v.status).Terminal()
	v.running = v.status == "RUNNING" && v.left > 0
	return v
}

// live reports whether the job's attempt holds a live lease.
func (v view) live(s snapshot) bool { return v.token != "" && v.ttl > s.number(v.keys.Job, "leaseAt") }

// jobs lists every job there is, in the order of birth.
func (s *stepped) jobs(w *world) []view {
	var all []view
	for _, id := range w.born {
		if w.keys[s.sc.names(id).Job] != nil {
			all = append(all, s.sc.job(w.keys, id))
		}
	}
	return all
}

// at returns the job the step names, before it.
func (s *stepped) at() view { return s.sc.job(s.before.keys, s.op.ref.ID) }

// ended returns the jobs that this step made terminal, as they were before.
func (s *stepped) ended() []view {
	var all []view
	for _, v := range s.jobs(s.before) {
		if !v.terminal && s.sc.job(s.after.keys, v.id).terminal {
			all = append(all, v)
		}
	}
	return all
}

// refusal is what a worker's write must answer by the order missing, state,
// deadline, claim, token; "" when it must be let in.
func (s *stepped) refusal() string {
	v, keys := s.at(), s.before.keys
	switch {
	case v.status == "":
		return answer(job.ErrNotFound)
	case v.terminal:
		return answer(&job.StateError{Status: job.Status(v.status), Code: job.Code(keys.field(v.keys.Job, "error"))})
	case v.left <= 0:
		return answer(job.ErrOverdue)
	case keys.text(v.keys.Run) != string(v.id):
		return answer(job.ErrClaimLost)
	case s.op.token == "" || v.token != s.op.token:
		return answer(job.ErrStale)
	}
	return ""
}

// differs lists the keys the step changed.
func (s *stepped) differs() []string { return changed(s.before.keys, s.after.keys) }

func want(got, expected string) string {
	if got == expected {
		return ""
	}
	return fmt.Sprintf("answered %q, want %q", got, expected)
}

// expected is what a call must answer by the state it meets, "" when several
// answers are right and other invariants judge.
func (s *stepped) expected() string {
	v, keys := s.at(), s.before.keys
	ok := answer(nil)
	switch s.op.move {
	case "acquire":
		run, last := keys.text(v.keys.Run), keys.text(v.keys.Last)
		gone := run != "" && keys[s.sc.names(job.ID(run)).Job] == nil && run == string(s.op.other)
		switch {
		case keys[v.keys.Job] != nil:
			return ok
		case run != "" && !gone:
			return answer(&job.HeldError{Holder: job.ID(run)})
		case last != "" && string(v.id) <= last:
			return answer(&job.StaleIDError{Newest: job.ID(last)})
		}
		return ok
	case "record", "renew":
		if r := s.refusal(); r != "" {
			return r
		}
		if s.op.move == "record" && int64(s.op.index) >= keys.number(v.keys.Job, "total") {
			return answer(job.ErrOutOfRange)
		}
		return "" // OK with figures that other invariants judge
	case "finish":
		if v.status == "SUCCESS" && v.token == s.op.token {
			return ok
		}
		if r := s.refusal(); r != "" {
			return r
		}
		if keys.size(v.keys.Out) != int(keys.number(v.keys.Job, "total")) {
			return answer(job.ErrIncomplete)
		}
		return ok
	case "fail":
		return s.expectedFail(v, keys)
	case "begin":
		return s.expectedBegin(v, keys)
	case "inspect":
		return s.expectedInspect(v, keys)
	case "erase":
		if last := keys.text(v.keys.Last); last != string(s.op.other) {
			return answer(&job.ChangedError{Newest: job.ID(last)})
		}
		return ok
	}
	return ""
}

func (s *stepped) expectedFail(v view, keys snapshot) string {
	code := keys.field(v.keys.Job, "error")
	switch {
	case v.status == "":
		return answer(job.ErrNotFound)
	case v.terminal && code == string(s.op.code):
		return answer(nil)
	case v.terminal && code == "DEADLINE_EXCEEDED", !v.terminal && v.left <= 0:
		return answer(job.ErrOverdue)
	case v.terminal:
		return answer(&job.StateError{Status: job.Status(v.status), Code: job.Code(code)})
	case s.op.guard == job.GuardWorker && (s.op.token == "" || v.token != s.op.token):
		return answer(job.ErrStale)
	case s.op.guard == job.GuardStart && keys.number(v.keys.Job, "attempt") != 0:
		return answer(job.ErrBegun)
	}
	return answer(nil)
}

func (s *stepped) expectedBegin(v view, keys snapshot) string {
	switch {
	case v.status == "":
		return answer(job.ErrNotFound)
	case keys.field(v.keys.Job, "schema") != "1":
		return answer(job.ErrSchema)
	case v.terminal || v.left <= 0 || keys.text(v.keys.Run) != string(v.id):
		return s.refusal()
	case s.op.token == "":
		return answer(job.ErrStale)
	case v.token == s.op.token:
		return ""
	case v.live(keys):
		return answer(job.ErrBusy)
	case keys.number(v.keys.Job, "attempt") >= int64(s.sc.Attempts):
		return answer(job.ErrExhausted)
	}
	return ""
}

func (s *stepped) expectedInspect(v view, keys snapshot) string {
	ok := func(kind job.VerdictKind, code job.Code) string {
		if code != "" {
			return "OK: " + string(kind) + " " + string(code)
		}
		return "OK: " + string(kind)
	}
	live := v.live(keys)
	switch {
	case v.status != "RUNNING":
		return ok(job.Forgotten, "")
	case v.left <= 0:
		return ok(job.Ended, job.CodeDeadlineExceeded)
	case keys.text(v.keys.Run) != string(v.id):
		return ok(job.Ended, job.CodeClaimLost)
	case !live && keys.number(v.keys.Job, "attempt") >= int64(s.sc.Attempts):
		return ok(job.Ended, job.CodeWorkerLost)
	case !live && v.ttl <= keys.number(v.keys.Job, "dispatchAt"):
		return ok(job.Redispatch, "")
	}
	return ok(job.Left, "")
}

// check returns the first invariant the step breaks, with what is wrong.
func check(s *stepped) (*Invariant, string) {
	for i := range invariants {
		if wrong := invariants[i].check(s); wrong != "" {
			return &invariants[i], wrong
		}
	}
	return nil, ""
}

// atEnd checks a world in which nobody can move: no claim outlives its job, and
// every key but the watch sets ends within a day.
func (sc *Scenario) atEnd(w *world) string {
	run := w.keys.text(sc.names("").Run)
	if run != "" && w.keys[sc.names(job.ID(run)).Job] == nil {
		return "run names " + run + ", which is gone"
	}
	for k, e := range w.keys {
		if kindOf(k) != "watch" && e.ttl > (24*time.Hour).Milliseconds() {
			return fmt.Sprintf("%s lives another %d ms", k, e.ttl)
		}
	}
	return ""
}

// Invariants lists what is checked after every step.
func Invariants() []Invariant { return slices.Clone(invariants) }

// keptFields reports whether every field of a is in b with the same value.
func keptFields(a, b *entry) bool {
	if a == nil || b == nil {
		return true
	}
	for f, v := range a.fields {
		if b.fields[f] != v {
			return false
		}
	}
	return true
}
