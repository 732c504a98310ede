package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sunhwa/shared/job"
	"sunhwa/shared/jobstore"
)

// op is one call of the shipped store, with what the checks need to know of it.
type op struct {
	move   string  // the script's name, or "clock"
	store  int     // which configuration calls
	ref    job.Ref // the job it names
	token  string  // the attempt's, if any
	index  int     // of the result recorded
	extra  bool    // usage without a result comes along
	first  bool    // … for the first time by this attempt
	guard  job.Guard
	code   job.Code
	other  job.ID // a missing holder, kept or newest job passed along
	make   *job.Creation
	passes int64  // ms, of a clock step
	lose   string // the key a failover takes
}

// reply is what a call answered: text for comparing and showing, and what
// programs go on with.
type reply struct {
	text    string
	err     error
	begun   *job.Begun
	job     *job.Job
	newest  job.ID
	verdict job.Verdict
}

// lease is what every worker of a scenario holds; redispatches rest as long.
const lease = 20 * time.Second

// publishedAt is when every head of a scenario says that its job was published.
var publishedAt = time.UnixMilli(1_893_553_445_678)

// call runs o on the server.
func call(ctx context.Context, stores []*jobstore.Store, o op) reply {
	s := stores[o.store]
	a := job.Attempt{Ref: o.ref, Token: o.token, Lease: lease}
	x := job.Extra{}
	if o.extra {
		x = job.Extra{Seq: 1, Usage: job.Usage{Calls: 10}}
	}
	var r reply
	detail := ""
	switch o.move {
	case "acquire":
		r.err = s.Acquire(ctx, *o.make)
	case "begin":
		if r.begun, r.err = s.Begin(ctx, a); r.err == nil {
			detail = fmt.Sprintf("attempt %d, recorded %v, kept %s, %s left", r.begun.Attempt, sortedKeys(r.begun.Recorded), r.begun.Kept, r.begun.Remaining)
		}
	case "record":
		var p job.Progress
		res := job.Result{Index: o.index, Text: o.token, MemoKey: fmt.Sprint("memo", o.index), Usage: job.Usage{Calls: 1}}
		if p, r.err = s.Record(ctx, a, []job.Result{res}, x); r.err == nil {
			detail = fmt.Sprintf("done %d, calls %d", p.Done, p.Usage.Calls)
		}
	case "renew":
		r.err = s.Renew(ctx, a)
	case "finish":
		r.err = s.Finish(ctx, a, o.other, x)
	case "fail":
		r.err = s.Fail(ctx, o.ref, o.guard, o.token, job.Failure{Code: o.code}, x)
	case "read":
		if r.job, r.err = s.Read(ctx, o.ref.ID); r.err == nil {
			detail = describe(r.job)
		}
	case "results":
		var all []job.Rewritten
		if r.job, all, r.err = s.Results(ctx, o.ref.ID); r.err == nil {
			detail = fmt.Sprintf("%s, %v", describe(r.job), all)
		}
	case "applied":
		r.err = s.Applied(ctx, o.ref.ID, publishedAt)
	case "newest":
		r.newest, r.err = s.Newest(ctx, o.ref.Target)
		detail = string(r.newest)
	case "erase":
		r.err = s.Erase(ctx, o.ref.Target, o.other)
	case "inspect":
		r.verdict, r.err = s.Inspect(ctx, o.ref, lease)
		detail = strings.TrimSpace(string(r.verdict.Kind) + " " + string(r.verdict.Code))
	}
	r.text = answer(r.err)
	if detail != "" && r.err == nil {
		r.text += ": " + detail
	}
	return r
}

func describe(j *job.Job) string {
	s := string(j.Status)
	if j.Failure != nil {
		s += "(" + string(j.Failure.Code) + ")"
	}
	return fmt.Sprintf("%s %d/%d, calls %d", s, j.Done, j.Total, j.Usage.Calls)
}

// answer names an outcome the same way on every server.
func answer(err error) string {
	if err == nil {
		return "OK"
	}
	for _, known := range []error{
		job.ErrNotFound, job.ErrBusy, job.ErrExhausted, job.ErrOverdue, job.ErrClaimLost, job.ErrStale, job.ErrBegun,
		job.ErrIncomplete, job.ErrOutOfRange, job.ErrSchema, job.ErrGone,
	} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	var held *job.HeldError
	var stale *job.StaleIDError
	var state *job.StateError
	var moved *job.ChangedError
	switch {
	case errors.As(err, &held), errors.As(err, &stale), errors.As(err, &state), errors.As(err, &moved):
		return err.Error()
	}
	return "UNEXPECTED: " + err.Error()
}

// known reports whether the call got an answer the store's contract lists.
func (r reply) known() bool { return !strings.HasPrefix(r.text, "UNEXPECTED") }

func sortedKeys(m map[int]string) []int {
	ks := make([]int, 0, len(m))
	for k := range m {
		ks = append(ks, k)
	}
	slices.Sort(ks)
	return ks
}

func (o op) String() string {
	if o.move == "clock" {
		return fmt.Sprintf("%s pass", time.Duration(o.passes)*time.Millisecond)
	}
	if o.move == "failover" {
		return "the claim is lost"
	}
	s := o.move + " " + short(o.ref.ID)
	if o.move == "record" {
		s += fmt.Sprintf(" comment %d", o.index)
	}
	if o.move == "fail" {
		s += fmt.Sprintf(" %s (guard %s)", o.code, o.guard)
	}
	return s
}

// short is the part of an id that differs inside a scenario: the last digits of
// its time and its entropy's mark.
func short(id job.ID) string {
	if len(id) != 26 {
		return "-"
	}
	return string(id[7:12])
}
