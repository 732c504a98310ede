package jobstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/shared/job"
)

// Complaints (b), (c) and (h): the sweeper's decision in every situation.
func TestStore_Inspect_decisions(t *testing.T) {
	ended := func(c job.Code) job.Verdict { return job.Verdict{Kind: job.Ended, Code: c} }
	for _, c := range []struct {
		name string
		make func(w *world) job.Creation
		want job.Verdict
	}{
		{"missing", func(w *world) job.Creation {
			c := w.creation(1)
			w.rdb.SAdd(ctx, watchKey(c.ID.Shard()), member(c.Ref))
			return c
		}, job.Verdict{Kind: job.Forgotten}},
		{"terminal but still watched", func(w *world) job.Creation {
			c := w.succeeded(1)
			w.rdb.SAdd(ctx, watchKey(c.ID.Shard()), member(c.Ref))
			return c
		}, job.Verdict{Kind: job.Forgotten}},
		{"just acquired", func(w *world) job.Creation { return w.running(1) }, job.Verdict{Kind: job.Left}},
		{"acquired almost a lease ago", func(w *world) job.Creation {
			c := w.running(1)
			w.advance(lease - 10*time.Second)
			return c
		}, job.Verdict{Kind: job.Left, Age: lease - 10*time.Second}},
		{"never begun for a lease", func(w *world) job.Creation {
			c := w.running(1)
			w.advance(lease)
			return c
		}, job.Verdict{Kind: job.Redispatch, Age: lease}},
		{"at work", func(w *world) job.Creation {
			c := w.running(1)
			w.advance(5 * time.Minute) // dispatchAt is long past
			_, err := w.Begin(ctx, attempt(c, "t"))
			require.NoError(w.t, err)
			return c
		}, job.Verdict{Kind: job.Left, Age: 5 * time.Minute}},
		{"renewed just now", func(w *world) job.Creation {
			c := begunWith(w, 1)
			w.advance(5 * time.Minute)
			require.NoError(w.t, w.Renew(ctx, attempt(c, "t")))
			return c
		}, job.Verdict{Kind: job.Left, Age: 5 * time.Minute}},
		{"at work on the last attempt", func(w *world) job.Creation {
			c := w.running(1)
			tries(w, c, 3)
			return c
		}, job.Verdict{Kind: job.Left, Age: 2 * lease}},
		{"its worker was killed", func(w *world) job.Creation {
			c := begunWith(w, 1)
			w.advance(lease)
			return c
		}, job.Verdict{Kind: job.Redispatch, Age: lease}},
		{"all attempts were killed", func(w *world) job.Creation {
			c := w.running(1)
			tries(w, c, 3)
			w.advance(lease)
			return c
		}, ended(job.CodeWorkerLost)},
		{"overdue while at work", func(w *world) job.Creation {
			c := w.running(1)
			w.advance(deadline - lease/2)
			_, err := w.Begin(ctx, attempt(c, "t"))
			require.NoError(w.t, err)
			w.advance(lease / 2)
			return c
		}, ended(job.CodeDeadlineExceeded)},
		{"overdue and never begun", func(w *world) job.Creation {
			c := w.running(1)
			w.advance(deadline)
			return c
		}, ended(job.CodeDeadlineExceeded)},
		{"its claim is another's", func(w *world) job.Creation {
			c := begunWith(w, 1)
			w.rdb.Set(ctx, runKey(w.target), string(w.mint()), deadline)
			return c
		}, ended(job.CodeClaimLost)},
		{"its claim is gone", func(w *world) job.Creation {
			c := begunWith(w, 1)
			w.rdb.Del(ctx, runKey(w.target))
			return c
		}, ended(job.CodeClaimLost)},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEach(t, Options{}, func(t *testing.T, w *world) {
				made := c.make(w)
				before := w.snapshot()
				v, err := w.Inspect(ctx, made.Ref, lease)
				require.NoError(t, err)
				assert.InDelta(t, c.want.Age, v.Age, float64(5*time.Second))
				v.Age = c.want.Age
				assert.Equal(t, c.want, v)
				watched := w.rdb.SIsMember(ctx, watchKey(made.ID.Shard()), member(made.Ref)).Val()
				assert.Equal(t, v.Kind == job.Left || v.Kind == job.Redispatch, watched)
				if v.Kind == job.Left {
					assert.Equal(t, before, w.snapshot(), "a job in good hands is not touched")
				}
				if v.Kind == job.Ended && c.name == "its claim is another's" {
					assert.Equal(t, before[runKey(w.target)], w.snapshot()[runKey(w.target)])
				}
			})
		})
	}
}

// tries begins a job n times, each attempt a lease after the one before.
func tries(w *world, c job.Creation, n int) {
	for i := range n {
		if i > 0 {
			w.advance(lease)
		}
		_, err := w.Begin(ctx, attempt(c, fmt.Sprint("t", i)))
		require.NoError(w.t, err)
	}
}

// Complaint (b): a member somebody wrote for a live job under another target
// ends nothing.
func TestStore_Inspect_foreignMember(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		c := begunWith(w, 1)
		forged := c.Ref
		for i := 0; forged.Target == c.Target || forged.Target.Shard() != c.Target.Shard(); i++ {
			forged.Target.ID = fmt.Sprint("other-", i)
		}
		w.unchanged(t, func() {
			w.rdb.SAdd(ctx, watchKey(c.ID.Shard()), member(forged))
			v, err := w.Inspect(ctx, forged, lease)
			require.NoError(t, err)
			assert.Equal(t, job.Verdict{Kind: job.Forgotten}, v)
		})
	})
}

// A lost worker's job ends as WORKER_LOST after as many dispatches as attempts.
func TestStore_Inspect_lostWorkersEnd(t *testing.T) {
	onEach(t, Options{MaxAttempts: 2}, func(t *testing.T, w *world) {
		c := w.running(1)
		for i := range 2 {
			w.advance(lease)
			v, err := w.Inspect(ctx, c.Ref, lease)
			require.NoError(t, err)
			require.Equal(t, job.Redispatch, v.Kind)
			_, err = w.Begin(ctx, attempt(c, fmt.Sprint("t", i)))
			require.NoError(t, err)
		}
		w.advance(lease)
		v, err := w.Inspect(ctx, c.Ref, lease)
		require.NoError(t, err)
		assert.Equal(t, job.Verdict{Kind: job.Ended, Code: job.CodeWorkerLost}, v)
		w.running(1) // the target is free at once
	})
}

// Watched walks every shard of every node, each watched job once, wherever it
// starts; members nobody wrote are passed over, failed visits told at the end.
func TestStore_Watched_walksAllShards(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		want := map[job.Ref]bool{}
		shards := map[string]bool{}
		for range 60 {
			v := w.on(job.Target{Tenant: "a:b", ID: fmt.Sprint("w:", minted.Add(1))})
			t.Cleanup(v.clear)
			c := v.running(1)
			want[c.Ref] = true
			shards[c.ID.Shard()] = true
		}
		require.Greater(t, len(shards), 20)
		c := w.running(1)
		want[c.Ref] = true
		many := watchKey(w.target.Shard())
		for i := range 1500 { // more than a page
			ref := job.Ref{ID: w.mint(), Target: w.target}
			want[ref] = true
			w.rdb.SAdd(ctx, many, member(ref))
			if i%500 == 0 {
				w.rdb.SAdd(ctx, many, fmt.Sprint("nobody wrote this ", i), string(ref.ID), string(ref.ID)+":!:x",
					string(ref.ID)+":"+ref.Target.TenantKey()+":"+"another shard's")
			}
		}
		for _, start := range []int{0, 1, 511, job.Shards - 1} {
			got := map[job.Ref]int{}
			failing := errors.New("visit failed")
			n, err := w.Watched(ctx, start, func(_ context.Context, r job.Ref) error {
				if got[r]++; len(got)%2 == 0 {
					return failing
				}
				return nil
			})
			require.ErrorIs(t, err, failing)
			assert.Equal(t, job.Shards, n)
			for ref := range want {
				require.Equal(t, 1, got[ref], "%v from %d", ref, start)
			}
		}
	})
}

func TestStore_Watched_goesOnAfterASetItCannotRead(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		key := watchKey(w.target.Shard())
		require.NoError(t, w.rdb.Set(ctx, key, "no set", time.Minute).Err())
		v := w
		for v.target.Shard() == w.target.Shard() {
			v = w.on(job.Target{Tenant: "t", ID: fmt.Sprint("u", minted.Add(1))})
		}
		t.Cleanup(v.clear)
		c := v.running(1)
		var seen []job.Ref
		n, err := w.Watched(ctx, 7, func(_ context.Context, r job.Ref) error { seen = append(seen, r); return nil })
		require.ErrorContains(t, err, "WRONGTYPE")
		assert.Equal(t, job.Shards-1, n)
		assert.True(t, slices.Contains(seen, c.Ref))
	})
}

func TestStore_Watched_endsWithItsContext(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		w.running(1)
		for range 20 {
			w.rdb.SAdd(ctx, watchKey(w.target.Shard()), member(job.Ref{ID: w.mint(), Target: w.target}))
		}
		stopping, stop := context.WithCancel(ctx)
		visits := 0
		_, err := w.Watched(stopping, 0, func(context.Context, job.Ref) error { visits++; stop(); return nil })
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, 1, visits)
		n, err := w.Watched(stopping, 0, func(context.Context, job.Ref) error { visits++; return nil })
		require.ErrorIs(t, err, context.Canceled)
		assert.Zero(t, n)
		assert.Equal(t, 1, visits)
	})
}
