package explore

import (
	"errors"
	"slices"
	"strconv"

	"sunhwa/shared/job"
)

// worker is one invocation of the worker: its name is its token.
type worker struct {
	token  string
	store  int
	renews bool // extends its lease between the two comments
	fails  bool // the model refuses the second comment
	clumsy bool // first records a comment that the job does not have
}

func (k worker) name() string { return "worker " + k.token }

const (
	workBegin = iota
	workRecord
	workRenew
	workFinish
	workFailLLM
	workFailOverdue
	workFailInternal
)

func (k worker) next(sc *Scenario, w *world, a spot) []op {
	ref := job.Ref{ID: a.id, Target: sc.Target}
	o := op{store: k.store, ref: ref, token: k.token}
	switch a.at {
	case workBegin:
		o.move = "begin"
		if a.owed {
			return []op{o}
		}
		var ops []op
		for _, id := range slices.Compact(slices.Clone(w.queue)) {
			o.ref.ID = id
			ops = append(ops, o)
		}
		return ops
	case workRecord:
		o.move, o.extra, o.first = "record", true, !a.sent && !a.owed
		switch {
		case k.clumsy && a.n&4 == 0:
			o.index, o.extra, o.first = 2, false, false
		case a.n&1 != 0:
			o.index = 1
		}
		return []op{o}
	case workRenew:
		o.move = "renew"
	case workFinish:
		o.move, o.other = "finish", a.other
	case workFailLLM:
		o.move, o.guard, o.code = "fail", job.GuardWorker, job.CodeLLMFailed
	case workFailOverdue:
		o.move, o.guard, o.code = "fail", job.GuardWorker, job.CodeDeadlineExceeded
	case workFailInternal:
		o.move, o.guard, o.code = "fail", job.GuardWorker, job.CodeInternal
	default:
		return nil
	}
	return []op{o}
}

func (k worker) after(sc *Scenario, w *world, a *spot, o op, r reply) {
	switch {
	case o.move == "fail" || o.move == "finish" && r.err == nil:
		a.at = done
	case errors.Is(r.err, job.ErrOverdue):
		a.id, a.at = o.ref.ID, workFailOverdue
	case errors.Is(r.err, job.ErrIncomplete):
		a.at = workFailInternal
	case errors.Is(r.err, job.ErrOutOfRange):
		a.n |= 4
	case r.err != nil:
		a.at = done // another has the job, or nobody needs it any more
	case o.move == "begin":
		a.id, a.other, a.at = o.ref.ID, r.begun.Kept, workRecord
		for i := range r.begun.Recorded {
			a.n |= 1 << i
		}
	case o.move == "record":
		a.sent, a.n, a.at = true, a.n|1<<o.index, workRecord
		if k.renews && o.index == 0 {
			a.at = workRenew
		}
	case o.move == "renew":
		a.at = workRecord
	}
	if a.at == workRecord && a.n&3 == 3 {
		a.at = workFinish
	} else if a.at == workRecord && a.n == 1 && k.fails {
		a.at = workFailLLM
	}
}

// hasty finishes the jobs it hears of as if it had done the work: a worker with
// a fault of its own. It must get nowhere.
type hasty struct{ token string }

func (h hasty) name() string { return "hasty " + strconv.Quote(h.token) }

func (h hasty) next(sc *Scenario, w *world, a spot) []op {
	ref := job.Ref{ID: a.id, Target: sc.Target}
	if h.token == "" && len(w.queue) > 0 && a.at == 0 { // holds nothing and says so: finish and fail must refuse it
		ref.ID = w.queue[0]
		return []op{
			{move: "begin", ref: ref}, {move: "finish", ref: ref},
			{move: "fail", ref: ref, guard: job.GuardWorker, code: job.CodeLLMFailed},
		}
	}
	switch a.at {
	case 0:
		return worker{token: h.token}.next(sc, w, spot{at: workBegin, id: a.id, owed: a.owed})
	case 1:
		return []op{{move: "finish", ref: ref, token: h.token, other: a.other}}
	}
	return nil
}

func (h hasty) after(sc *Scenario, w *world, a *spot, o op, r reply) {
	a.at = done
	if o.move == "begin" && r.err == nil {
		a.id, a.other, a.at = o.ref.ID, r.begun.Kept, 1
	}
}
