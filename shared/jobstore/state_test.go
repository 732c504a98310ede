package jobstore

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/shared/job"
)

// A from puts a job of two comments into one state; the token of its attempt,
// if it has one, is "t".
type from struct {
	name string
	make func(w *world) job.Creation
}

func froms() []from {
	all := []from{
		{"missing", func(w *world) job.Creation { return w.creation(2) }},
		{"unbegun", func(w *world) job.Creation { return w.running(2) }},
		{"partial", func(w *world) job.Creation { return begunWith(w, 1) }},
		{"complete", func(w *world) job.Creation { return begunWith(w, 2) }},
		{"overdue", func(w *world) job.Creation {
			c := begunWith(w, 2)
			w.advance(deadline)
			return c
		}},
		{"unclaimed", func(w *world) job.Creation {
			c := begunWith(w, 2)
			w.rdb.Set(ctx, runKey(w.target), string(w.mint()), deadline)
			return c
		}},
		{"SUCCESS", func(w *world) job.Creation { return w.succeeded(2) }},
	}
	for _, code := range job.Codes() {
		all = append(all, from{string(code), func(w *world) job.Creation {
			c := begunWith(w, 2)
			if code == job.CodeDeadlineExceeded {
				w.advance(deadline)
				w.read(c.ID)
				return c
			}
			f := job.Failure{Code: code}
			require.NoError(w.t, w.Fail(ctx, c.Ref, job.GuardWorker, "t", f, job.Extra{}))
			return c
		}})
	}
	return all
}

func begunWith(w *world, done int) job.Creation {
	c := w.running(2)
	_, err := w.Begin(ctx, attempt(c, "t"))
	require.NoError(w.t, err)
	_, err = w.Record(ctx, attempt(c, "t"), results(c, 0, done), job.Extra{})
	require.NoError(w.t, err)
	return c
}

// A step is one move and what becomes of a RUNNING job by it: where a from is
// not named, the move leaves the status. err is what a from is refused with.
type step struct {
	name string
	do   func(w *world, c job.Creation) error
	to   map[string]string // from -> SUCCESS or a failure code
	err  map[string]error
	// free says that the move may write although the status stays: the froms
	// where it has something else to write.
	free []string
}

// refusals is what a worker's write meets, besides terminal states.
func refusals(more map[string]error) map[string]error {
	all := map[string]error{"missing": job.ErrNotFound, "overdue": job.ErrOverdue, "unclaimed": job.ErrClaimLost}
	for k, v := range more {
		all[k] = v
	}
	return all
}

func failing(g job.Guard, token string) func(*world, job.Creation) error {
	return func(w *world, c job.Creation) error {
		return w.Fail(ctx, c.Ref, g, token, job.Failure{Code: job.CodeCanceled}, job.Extra{})
	}
}

func steps() []step {
	late := string(job.CodeDeadlineExceeded)
	ended := string(job.CodeCanceled)
	open := []string{"unbegun", "partial", "complete"}
	own := map[string]error{"unbegun": job.ErrStale}
	return []step{
		{"begin", func(w *world, c job.Creation) error { _, err := w.Begin(ctx, attempt(c, "t")); return err },
			nil, refusals(nil), open},
		{"record", func(w *world, c job.Creation) error {
			_, err := w.Record(ctx, attempt(c, "t"), results(c, 0, 2), job.Extra{Seq: 9, Usage: job.Usage{Calls: 1}})
			return err
		}, nil, refusals(own), open},
		{"renew", func(w *world, c job.Creation) error { return w.Renew(ctx, attempt(c, "t")) },
			nil, refusals(own), open},
		{"finish", func(w *world, c job.Creation) error {
			return w.Finish(ctx, attempt(c, "t"), "", job.Extra{Seq: 9, Usage: job.Usage{Calls: 1}})
		}, map[string]string{"complete": "SUCCESS"},
			refusals(map[string]error{"unbegun": job.ErrStale, "partial": job.ErrIncomplete}), nil},
		{"fail by the worker", failing(job.GuardWorker, "t"),
			map[string]string{"partial": ended, "complete": ended, "unclaimed": ended, "overdue": late},
			map[string]error{"missing": job.ErrNotFound, "unbegun": job.ErrStale, "overdue": job.ErrOverdue, late: job.ErrOverdue}, nil},
		{"fail by start", failing(job.GuardStart, ""),
			map[string]string{"unbegun": ended, "overdue": late},
			map[string]error{"missing": job.ErrNotFound, "partial": job.ErrBegun, "complete": job.ErrBegun,
				"unclaimed": job.ErrBegun, "overdue": job.ErrOverdue, late: job.ErrOverdue}, nil},
		{"fail by cancel", failing(job.GuardCancel, ""),
			map[string]string{"unbegun": ended, "partial": ended, "complete": ended, "unclaimed": ended, "overdue": late},
			map[string]error{"missing": job.ErrNotFound, "overdue": job.ErrOverdue, late: job.ErrOverdue}, nil},
		{"read", func(w *world, c job.Creation) error { _, err := w.Read(ctx, c.ID); return err },
			map[string]string{"overdue": late}, map[string]error{"missing": job.ErrNotFound}, nil},
		{"results", func(w *world, c job.Creation) error { _, _, err := w.Results(ctx, c.ID); return err },
			map[string]string{"overdue": late}, map[string]error{"missing": job.ErrNotFound}, nil},
		{"applied", func(w *world, c job.Creation) error { return w.Applied(ctx, c.ID, shownAt) },
			nil, map[string]error{"missing": job.ErrNotFound}, []string{"SUCCESS"}},
		{"inspect", func(w *world, c job.Creation) error { _, err := w.Inspect(ctx, c.Ref, lease); return err },
			map[string]string{"overdue": late, "unclaimed": string(job.CodeClaimLost)}, nil, nil},
		{"acquire by another", func(w *world, c job.Creation) error {
			next := w.creation(1)
			next.Missing = c.ID
			_ = w.Acquire(ctx, next) // HELD while the job holds the claim
			return nil
		}, nil, nil, []string{"missing", "overdue", "SUCCESS", "FAILED"}},
		{"erase", func(w *world, c job.Creation) error {
			last, err := w.Newest(ctx, w.target)
			if err != nil {
				last = ""
			}
			return w.Erase(ctx, w.target, last)
		}, map[string]string{"unbegun": ended, "partial": ended, "complete": ended, "unclaimed": ended, "overdue": late},
			nil, []string{"SUCCESS", "FAILED"}},
	}
}

// Complaints (c) and (d): every move from every state, and what it leaves.
func TestStore_everyFromTimesTo(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		for _, f := range froms() {
			for _, s := range steps() {
				t.Run(f.name+"/"+s.name, func(t *testing.T) {
					v := w.on(job.Target{Tenant: w.target.Tenant, ID: fmt.Sprint("from-to-", minted.Add(1))})
					v.t = t
					defer v.clear()
					check(t, v, f, s)
				})
			}
		}
	})
}

func check(t *testing.T, w *world, f from, s step) {
	c := f.make(w)
	before, status, code := w.snapshot(), w.field(c.ID, "status"), w.field(c.ID, "error")
	err := s.do(w, c)

	terminal := status == string(job.Success) || status == string(job.Failed)
	answersTerminal := map[string]bool{"begin": true, "record": true, "renew": true, "finish": true,
		"fail by the worker": true, "fail by start": true, "fail by cancel": true, "results": true, "applied": true}
	repeats := code == string(job.CodeCanceled) && s.name[:4] == "fail" ||
		f.name == "SUCCESS" && (s.name == "finish" || s.name == "results" || s.name == "applied")
	switch want := s.err[f.name]; {
	case want != nil:
		require.ErrorIs(t, err, want)
	case s.name == "results" && s.to[f.name] == "" && !terminal || s.name == "applied" && !terminal:
		assertState(t, err, job.Running, "")
	case s.name == "results" && f.name == "overdue":
		assertState(t, err, job.Failed, job.CodeDeadlineExceeded)
	case terminal && answersTerminal[s.name] && !repeats:
		assertState(t, err, job.Status(status), job.Code(code))
	default:
		require.NoError(t, err)
	}

	to := s.to[f.name]
	switch {
	case to == "SUCCESS":
		assert.Equal(t, "SUCCESS", w.field(c.ID, "status"))
	case to != "":
		assert.Equal(t, "FAILED", w.field(c.ID, "status"))
		assert.Equal(t, to, w.field(c.ID, "error"))
		assert.NotEqual(t, string(c.ID), w.rdb.Get(ctx, runKey(w.target)).Val(), "the claim is released")
		assert.False(t, w.rdb.SIsMember(ctx, watchKey(c.ID.Shard()), member(c.Ref)).Val(), "the watch is left")
		assert.Zero(t, w.rdb.Exists(ctx, inKey(c.ID), outKey(c.ID)).Val(), "the texts are gone")
		assert.Equal(t, before[runKey(w.target)] != "" && f.name == "unclaimed", w.snapshot()[runKey(w.target)] != "",
			"another's claim stays")
	default:
		assert.Equal(t, status, w.field(c.ID, "status"))
		assert.Equal(t, code, w.field(c.ID, "error"))
		for _, name := range s.free {
			if name == f.name || name == status && status == "FAILED" {
				return
			}
		}
		assert.Equal(t, before, w.snapshot(), "a move that leaves the state writes nothing")
	}
}

func assertState(t *testing.T, err error, status job.Status, code job.Code) {
	t.Helper()
	var state *job.StateError
	require.ErrorAs(t, err, &state)
	assert.Equal(t, job.StateError{Status: status, Code: code}, *state)
}
