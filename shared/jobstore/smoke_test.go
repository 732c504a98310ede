package jobstore

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"sunhwa/shared/job"
)

func smoke(t *testing.T, rdb redis.UniversalClient) {
	ctx := context.Background()
	s := New(rdb, Options{})
	target := job.Target{Tenant: "t:한", ID: "course-1"}
	id, err := job.NewID(time.Now(), target)
	require.NoError(t, err)
	c := job.Creation{Ref: job.Ref{ID: id, Target: target}, Comments: []job.Comment{{ID: "a", Text: "x"}, {ID: "b", Text: "y"}}, Digest: "d", Spec: job.Spec{Model: "m", PromptVersion: "1"}, Deadline: time.Minute, Retention: time.Hour, Lease: time.Second * 20}
	require.NoError(t, s.Acquire(ctx, c))
	require.NoError(t, s.Acquire(ctx, c))
	id2, _ := job.NewID(time.Now(), target)
	c2 := c
	c2.ID = id2
	var held *job.HeldError
	require.ErrorAs(t, s.Acquire(ctx, c2), &held)
	require.Equal(t, id, held.Holder)
	a := job.Attempt{Ref: c.Ref, Token: "tok", Lease: 20 * time.Second}
	b, err := s.Begin(ctx, a)
	require.NoError(t, err)
	require.Equal(t, c.Comments, b.Comments)
	require.Equal(t, 1, b.Attempt)
	_, err = s.Begin(ctx, job.Attempt{Ref: c.Ref, Token: "other", Lease: time.Second})
	require.ErrorIs(t, err, job.ErrBusy)
	require.ErrorIs(t, s.Finish(ctx, a, "", job.Extra{}), job.ErrIncomplete)
	p, err := s.Record(ctx, a, []job.Result{{Index: 0, Text: "X", MemoKey: "k", Usage: job.Usage{Calls: 1}}}, job.Extra{Seq: 1, Usage: job.Usage{Calls: 2}})
	require.NoError(t, err)
	require.Equal(t, job.Progress{Done: 1, Usage: job.Usage{Calls: 3}}, p)
	require.NoError(t, s.Renew(ctx, a))
	_, err = s.Record(ctx, a, []job.Result{{Index: 2}}, job.Extra{})
	require.ErrorIs(t, err, job.ErrOutOfRange)
	_, err = s.Record(ctx, a, []job.Result{{Index: 1, Text: "Y", MemoKey: "k2"}}, job.Extra{Seq: 1, Usage: job.Usage{Calls: 2}})
	require.NoError(t, err)
	m, err := s.Recall(ctx, target, []string{"k", "nope", "k2"})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"k": "X", "k2": "Y"}, m)
	v, err := s.Inspect(ctx, c.Ref, time.Second)
	require.NoError(t, err)
	require.Equal(t, job.Left, v.Kind)
	n := 0
	shards, err := s.Watched(ctx, 1000, func(_ context.Context, r job.Ref) error { n++; require.Equal(t, c.Ref, r); return nil })
	require.NoError(t, err)
	require.Equal(t, 1024, shards)
	require.Equal(t, 1, n)
	require.NoError(t, s.Finish(ctx, a, b.Kept, job.Extra{}))
	require.NoError(t, s.Finish(ctx, a, b.Kept, job.Extra{}))
	j, rs, err := s.Results(ctx, id)
	require.NoError(t, err)
	require.Equal(t, job.Success, j.Status)
	require.Equal(t, []job.Rewritten{{ID: "a", Before: "x", After: "X"}, {ID: "b", Before: "y", After: "Y"}}, rs)
	require.NoError(t, s.Applied(ctx, id))
	id3, _ := job.NewID(time.Now().Add(time.Second), target)
	c.ID = id3
	require.NoError(t, s.Acquire(ctx, c))
	newest, err := s.Newest(ctx, target)
	require.NoError(t, err)
	require.NoError(t, s.Erase(ctx, target, newest))
	j, err = s.Read(ctx, id3)
	require.NoError(t, err)
	require.Equal(t, job.CodeCanceled, j.Failure.Code)
	require.NoError(t, s.Fail(ctx, c.Ref, job.GuardCancel, "", job.Failure{Code: job.CodeCanceled}, job.Extra{}))
	_, _, err = s.Results(ctx, id)
	require.ErrorIs(t, err, job.ErrGone)
}

func TestSmoke(t *testing.T) {
	m := miniredis.RunT(t)
	smoke(t, NewClient(ClientOptions{Addrs: []string{m.Addr()}}))
}

func TestSmokeReal(t *testing.T) {
	smoke(t, NewClient(ClientOptions{Addrs: []string{"127.0.0.1:7999"}}))
}
