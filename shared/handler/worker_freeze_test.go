package handler

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sunhwa/shared/job"
	"sunhwa/shared/jobstore"
)

// workerFrozen is the clock of a worker that can be frozen: time jumps, and no
// timer of the recorder's tells it so.
type workerFrozen struct{ by atomic.Int64 }

func (c *workerFrozen) now() time.Time { return time.Now().Add(time.Duration(c.by.Load())) }
func (c *workerFrozen) freeze()        { c.by.Add(int64(rigLease + time.Millisecond)) }

// after lets backoffs end and nothing else: no renewal comes of itself.
func (c *workerFrozen) after(d time.Duration) <-chan time.Time {
	if d >= rigLease/3 {
		return nil
	}
	return time.After(min(d, 2*time.Millisecond))
}

// A worker that wakes after its lease starts no call before a write of its own has
// been answered OK: none if another attempt took over, all if nobody did.
func TestWorker_Handle_frozenPastLease(t *testing.T) {
	for _, at := range []string{"begin", "recall", "record", "call"} {
		for _, c := range []struct {
			after   string
			refusal error // of every write after the freeze; nil: nobody took over
			outages int   // writes after the freeze that find the store unavailable first
		}{
			{"replaced", job.ErrStale, 0},
			{"replaced, store unavailable at first", job.ErrStale, 3},
			{"claim lost", job.ErrClaimLost, 0},
			{"canceled", &job.StateError{Status: job.Failed, Code: job.CodeCanceled}, 3},
			{"not replaced", nil, 0},
			{"not replaced, store unavailable at first", nil, 3},
		} {
			t.Run(at+", "+c.after, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					clock := &workerFrozen{}
					store := &workerFake{begun: job.Begun{Remaining: time.Hour, Attempt: 1}}
					for i := range 12 {
						store.begun.Comments = append(store.begun.Comments, job.Comment{ID: fmt.Sprint(i), Text: fmt.Sprint("text ", i)})
					}
					llm := &workerScript{}
					var once sync.Once
					frozen := make(chan struct{}) // closed when the freeze is over
					thawed := func() bool {
						select {
						case <-frozen:
							return true
						default:
							return false
						}
					}
					var before int // calls made when the freeze ended
					freeze := func() {
						once.Do(func() {
							clock.freeze()
							before = llm.count()
							close(frozen)
						})
					}
					var outages, proofs, unproven int
					store.refuse = func(move string) error { // one move at a time: all are the recorder's
						if thawed() {
							// Whatever can run does before this write is answered.
							synctest.Wait()
							if proofs == 0 {
								unproven = max(unproven, llm.count()-before)
							}
							if outages++; outages <= c.outages {
								return fmt.Errorf("%s: %w", move, job.ErrUnavailable)
							}
							if move == "recall" {
								return nil // asks no token
							}
							if c.refusal == nil {
								proofs++
							}
							return c.refusal
						}
						if move == at {
							synctest.Wait() // until "text 1" is asked, if this is its record
							freeze()        // the move was made; its OK is read after the freeze
						}
						return nil
					}
					llm.answer = func(_ context.Context, text string) (string, job.Usage, error) {
						switch {
						case at == "record" && text == "text 1":
							<-frozen // in flight while the first answer is recorded
						case at == "call":
							freeze()
						}
						return text, workerCost, nil
					}
					var report WorkerReport
					w := NewWorker(store, llm, WorkerOptions{
						Concurrency: 1, Lease: rigLease, Now: clock.now, After: clock.after, Logger: slog.New(slog.DiscardHandler),
						Observe: func(_ context.Context, r WorkerReport) { report = r },
					})
					require.NoError(t, w.Handle(context.Background(), workerFakeEvent(t)))
					require.True(t, thawed())
					require.Zero(t, unproven, "no call starts before a write is answered OK")
					if c.refusal != nil {
						require.Equal(t, before, llm.count(), "no further call")
						require.Equal(t, WorkerStopped, report.Outcome)
						require.Empty(t, store.fails)
						return
					}
					require.Equal(t, 12, llm.count())
					require.Equal(t, WorkerSucceeded, report.Outcome)
					require.Positive(t, proofs)
				})
			})
		}
	}
}

// The same on a real store, which decides who holds the job.
func TestWorker_Handle_frozenAndReplaced(t *testing.T) {
	for _, replaced := range []bool{true, false} {
		t.Run(fmt.Sprintf("replaced %t", replaced), func(t *testing.T) {
			g := newWorkerRig(t, jobstore.Options{})
			ref := g.start(false, "a", "b", "c", "d", "e", "f")
			clock := &workerFrozen{}
			renews := 0
			store := &workerFaulty{workerStore: g.store, after: func(move string) error {
				switch move {
				case "begin":
					g.redis.FastForward(rigLease + time.Millisecond)
					clock.freeze()
					if replaced {
						_, err := g.store.Begin(t.Context(), job.Attempt{Ref: ref, Token: "new owner", Lease: rigLease})
						return err
					}
				case "renew":
					renews++
				}
				return nil
			}}
			llm := &workerScript{}
			o := g.options()
			o.Now, o.After = clock.now, clock.after
			require.NoError(t, NewWorker(store, llm, o).Handle(t.Context(), ref.Event()))
			require.Positive(t, renews, "asked at once, not at the next tick")
			if j := g.read(ref); replaced {
				require.Zero(t, llm.count())
				require.Equal(t, job.Running, j.Status)
				require.Equal(t, 2, j.Attempt)
			} else {
				require.Equal(t, 6, llm.count())
				require.Equal(t, job.Success, j.Status)
			}
		})
	}
}
