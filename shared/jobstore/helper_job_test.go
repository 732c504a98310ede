package jobstore

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"sunhwa/shared/job"
)

// Times of the jobs that tests create: so long that no slow machine reaches one
// by itself. advance makes them pass.
const (
	deadline  = 10 * time.Minute
	retention = 24 * time.Hour
	lease     = 45 * time.Second
)

// mint returns an id later than every one before.
func (w *world) mint() job.ID {
	id, err := job.NewID(time.UnixMilli(1_900_000_000_000+minted.Add(1)), w.target)
	require.NoError(w.t, err)
	return id
}

// creation is a job of n comments that nobody has acquired yet.
func (w *world) creation(n int) job.Creation {
	c := job.Creation{
		Ref:      job.Ref{ID: w.mint(), Target: w.target},
		Spec:     job.Spec{Model: "model", PromptVersion: "v1", Options: `{"temperature":0.2}`},
		Deadline: deadline, Retention: retention, Lease: lease,
	}
	for i := range n {
		c.Comments = append(c.Comments, job.Comment{ID: fmt.Sprint("c", i), Text: fmt.Sprint("말 ", i)})
	}
	c.Digest = job.InputDigest(c.Comments)
	return c
}

// running acquires a job of n comments.
func (w *world) running(n int) job.Creation {
	w.t.Helper()
	c := w.creation(n)
	require.NoError(w.t, w.Acquire(ctx, c))
	return c
}

func attempt(c job.Creation, token string) job.Attempt {
	return job.Attempt{Ref: c.Ref, Token: token, Lease: lease}
}

// results answers the comments from..to-1 of c, each at the cost of one call.
func results(c job.Creation, from, to int) []job.Result {
	var rs []job.Result
	for i := from; i < to; i++ {
		rs = append(rs, job.Result{Index: i, Text: "정중한 " + c.Comments[i].Text,
			MemoKey: c.Spec.MemoKey(c.Comments[i].Text), Usage: job.Usage{Calls: 1, TotalTokens: 10}})
	}
	return rs
}

// worked acquires a job of n comments, begins it with token "t" and records
// every result.
func (w *world) worked(n int) (job.Creation, job.Attempt, *job.Begun) {
	w.t.Helper()
	c := w.running(n)
	a := attempt(c, "t")
	b, err := w.Begin(ctx, a)
	require.NoError(w.t, err)
	_, err = w.Record(ctx, a, results(c, 0, n), job.Extra{})
	require.NoError(w.t, err)
	return c, a, b
}

// succeeded runs a whole job of n comments.
func (w *world) succeeded(n int) job.Creation {
	w.t.Helper()
	c, a, b := w.worked(n)
	require.NoError(w.t, w.Finish(ctx, a, b.Kept, job.Extra{}))
	return c
}

// read returns the job, which must be there.
func (w *world) read(id job.ID) *job.Job {
	w.t.Helper()
	j, err := w.Read(ctx, id)
	require.NoError(w.t, err)
	return j
}

// cancel ends a RUNNING job.
func (w *world) cancel(c job.Creation) {
	w.t.Helper()
	require.NoError(w.t, w.Fail(ctx, c.Ref, job.GuardCancel, "", job.Failure{Code: job.CodeCanceled}, job.Extra{}))
}
