package jobstore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/shared/job"
)

// Complaint (g), an option that excludes nobody, is answered by the same test.
func TestStore_Acquire_200AtOnceOneJob(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		const starters = 200
		creations := make([]job.Creation, starters)
		for i := range creations {
			creations[i] = w.creation(2)
		}
		rand.Shuffle(starters, func(i, j int) { creations[i], creations[j] = creations[j], creations[i] })
		errs := make([]error, starters)
		var wg sync.WaitGroup
		gate := make(chan struct{})
		for i := range creations {
			wg.Go(func() {
				<-gate
				errs[i] = w.Acquire(ctx, creations[i])
			})
		}
		close(gate)
		wg.Wait()

		var winner job.ID
		for i, err := range errs {
			if err == nil {
				require.Emptyf(t, winner, "two jobs were created: %s, %s", winner, creations[i].ID)
				winner = creations[i].ID
			}
		}
		require.NotEmpty(t, winner, "no job was created")
		told := 0
		for _, err := range errs {
			var held *job.HeldError
			if errors.As(err, &held) {
				assert.Equal(t, winner, held.Holder)
				told++
			}
		}
		assert.Equal(t, starters-1, told, "everybody else is told the winner's id")
		assert.ElementsMatch(t, []string{
			jobKey(winner), inKey(winner), runKey(w.target), lastKey(w.target), watchKey(w.target.Shard()),
		}, w.keys())
	})
}

func TestStore_Acquire_writesWhatWasAsked(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 678_000_000, time.UTC)
	onEach(t, Options{Now: func() time.Time { return at }}, func(t *testing.T, w *world) {
		c := w.creation(2)
		c.Fresh = true
		require.NoError(t, w.Acquire(ctx, c))
		assert.Equal(t, &job.Job{
			ID: c.ID, Target: w.target, Status: job.Running, Total: 2, CreatedAt: at, DeadlineAt: at.Add(deadline),
			InputDigest: c.Digest, Fresh: true, Spec: c.Spec,
		}, w.read(c.ID))
		id, err := w.Newest(ctx, w.target)
		require.NoError(t, err)
		assert.Equal(t, c.ID, id)
	})
}

// Ids order as acquired: an id minted earlier but acquired later is refused, and
// the one minted from the answer is taken.
func TestStore_Acquire_idsOrderAsAcquired(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		late := w.creation(1)
		first := w.succeeded(1)
		w.unchanged(t, func() {
			var stale *job.StaleIDError
			require.ErrorAs(t, w.Acquire(ctx, late), &stale)
			assert.Equal(t, first.ID, stale.Newest)
		})
		id, err := job.NewID(first.ID.Time().Add(time.Millisecond), w.target)
		require.NoError(t, err)
		late.ID = id
		require.NoError(t, w.Acquire(ctx, late))
		assert.Greater(t, late.ID, first.ID)
	})
}

// A host whose clock lags mints again, as start does, until it is taken; with
// many such hosts the ids still order as the claims were granted.
func TestStore_Acquire_laggingHostsOrderAsAcquired(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		var mu sync.Mutex
		var granted []job.ID
		var wg sync.WaitGroup
		base := time.UnixMilli(1_900_000_000_000)
		for host := range 4 {
			wg.Go(func() {
				clock := base.Add(-time.Duration(host) * time.Minute)
				for done, tries := 0, 0; done < 5; tries++ {
					if !assert.Less(t, tries, 20_000) {
						return
					}
					c := w.creation(1)
					c.ID, _ = job.NewID(clock, w.target)
					err := w.Acquire(ctx, c)
					var stale *job.StaleIDError
					if errors.As(err, &stale) {
						c.ID, _ = job.NewID(stale.Newest.Time().Add(time.Millisecond), w.target)
						err = w.Acquire(ctx, c)
					}
					if err != nil {
						continue
					}
					// The claim is held: nobody else is granted one meanwhile.
					mu.Lock()
					granted = append(granted, c.ID)
					mu.Unlock()
					assert.NoError(t, w.Fail(ctx, c.Ref, job.GuardStart, "", job.Failure{Code: job.CodeCanceled}, job.Extra{}))
					done++
				}
			})
		}
		wg.Wait()
		require.Len(t, granted, 20)
		assert.IsIncreasing(t, granted)
	})
}

// Complaint (a): the pointer never outlives its job. A claim whose job has
// vanished (a failover took it back) counts as free for whoever saw that, and
// only while it is so.
func TestStore_Acquire_pointerWithoutJob(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		gone := w.running(1)
		c := w.creation(1)
		c.Missing = gone.ID
		var held *job.HeldError
		w.unchanged(t, func() {
			require.ErrorAs(t, w.Acquire(ctx, c), &held, "the job is there: it is not missing")
		})
		require.NoError(t, w.rdb.Del(ctx, jobKey(gone.ID)).Err())
		for name, missing := range map[string]job.ID{
			"none named": "", "another named": w.mint(), "no id at all": "x",
			"another shard's": "01JZZZZZZZZZZZZZZZZZZZZZ" + job.ID(otherShard(w.target)),
		} {
			w.unchanged(t, func() {
				c.Missing = missing
				require.ErrorAs(t, w.Acquire(ctx, c), &held, name)
				assert.Equal(t, gone.ID, held.Holder)
			})
		}
		c.Missing = gone.ID
		require.NoError(t, w.Acquire(ctx, c))
		require.NoError(t, w.Acquire(ctx, c), "a repeat")
		assert.Equal(t, job.Running, w.read(c.ID).Status)
	})
}

func otherShard(t job.Target) string {
	if t.Shard() == "00" {
		return "01"
	}
	return "00"
}

// Complaints (a) and (f): the claim lives until the deadline, everything else of
// the job at least as long.
func TestStore_Acquire_lifetimes(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		c := w.running(1)
		for key, want := range map[string]time.Duration{
			runKey(w.target): deadline, jobKey(c.ID): deadline + retention,
			inKey(c.ID): deadline + retention, lastKey(w.target): deadline + retention,
		} {
			assert.InDelta(t, want, w.ttl(key), float64(5*time.Second), key)
			assert.LessOrEqual(t, w.ttl(key), want, key)
		}
		assert.Empty(t, hasNoTTL(w.snapshot()))
		_, err := w.Begin(ctx, attempt(c, "t"))
		require.NoError(t, err)
		before := w.ttl(jobKey(c.ID))
		_, err = w.Record(ctx, attempt(c, "t"), results(c, 0, 1), job.Extra{})
		require.NoError(t, err)
		require.NoError(t, w.Renew(ctx, attempt(c, "t")))
		assert.LessOrEqual(t, w.ttl(jobKey(c.ID)), before, "nothing moves the job's clock")
		assert.InDelta(t, w.ttl(jobKey(c.ID)), w.ttl(outKey(c.ID)), float64(time.Second))
	})
}

// A job keeps the deadline and retention it was started with, whatever the store
// that touches it later would give.
func TestStore_Acquire_jobKeepsItsOwnTimes(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		short := w.creation(1)
		short.Deadline, short.Retention = time.Minute, time.Hour
		require.NoError(t, w.Acquire(ctx, short))
		v := w.other(Options{MemoLimit: 1, MaxAttempts: 9})
		b, err := v.Begin(ctx, attempt(short, "t"))
		require.NoError(t, err)
		assert.InDelta(t, time.Minute, b.Remaining, float64(5*time.Second))
		_, err = v.Record(ctx, attempt(short, "t"), results(short, 0, 1), job.Extra{})
		require.NoError(t, err)
		assert.InDelta(t, time.Hour, v.ttl(memoKey(w.target)), float64(5*time.Second))
		require.NoError(t, v.Finish(ctx, attempt(short, "t"), "", job.Extra{}))
		for _, key := range []string{jobKey(short.ID), inKey(short.ID), outKey(short.ID), keptKey(w.target)} {
			assert.InDelta(t, time.Hour, v.ttl(key), float64(5*time.Second), key)
		}
		long := w.running(1)
		w.advance(2 * time.Minute)
		assert.Equal(t, job.Running, v.read(long.ID).Status, "another job's minute is not this one's")
	})
}

// Tenant and targetId are two things in every key and watch member, whatever
// characters they have.
func TestStore_Acquire_separatorsDoNotCollide(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, w *world) {
		var tail string
		var targets []job.Target
		for same := false; !same; same = targets[0].Shard() == targets[1].Shard() {
			tail = fmt.Sprint(minted.Add(1)) // of one shard, so that only the keys' own form tells them apart
			targets = []job.Target{{Tenant: "a:b", ID: "c" + tail}, {Tenant: "a", ID: "b:c" + tail}}
		}
		for _, name := range []string{"", "}{", "*", "\x00", "한", "../x", "a b\r\nDEL"} {
			targets = append(targets, job.Target{Tenant: name, ID: name + tail})
		}
		var cs []job.Creation
		for _, target := range targets {
			v := w.on(target)
			t.Cleanup(v.clear)
			cs = append(cs, v.running(1)) // every one is free, none is another's
		}
		for _, c := range cs {
			assert.Equal(t, c.Target, w.read(c.ID).Target)
			ref, err := parseMember(member(c.Ref), c.ID.Shard())
			require.NoError(t, err)
			assert.Equal(t, c.Ref, ref)
			w.cancel(c)
			assert.False(t, w.rdb.SIsMember(ctx, watchKey(c.ID.Shard()), member(c.Ref)).Val(), "Lua names the same member")
		}
	})
}
