package handler

import (
	"context"
	"errors"
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

// lostOnce loses the reply of the first try of every call: the move is done, the
// caller hears "unavailable".
func lostOnce() func(string) error {
	var mu sync.Mutex
	tries := map[string]int{}
	return func(move string) error {
		mu.Lock()
		defer mu.Unlock()
		tries[move]++
		if tries[move]%2 == 1 {
			return fmt.Errorf("%s: %w", move, job.ErrUnavailable)
		}
		return nil
	}
}

func TestWorker_Handle_lostReplies(t *testing.T) {
	g := newWorkerRig(t, jobstore.Options{})
	ref := g.start(false, "a", "b", "c", "a")
	llm := &workerScript{}
	store := &workerFaulty{workerStore: g.store, after: lostOnce()}
	require.NoError(t, NewWorker(store, llm, g.options()).Handle(t.Context(), ref.Event()))
	j := g.read(ref)
	require.Equal(t, job.Success, j.Status)
	require.Equal(t, 1, j.Attempt)
	require.Equal(t, job.Usage{PromptTokens: 18, CompletionTokens: 12, TotalTokens: 30, Calls: 3, MemoHits: 1}, j.Usage)
}

func TestWorker_Handle_lostRepliesOfFailure(t *testing.T) {
	g := newWorkerRig(t, jobstore.Options{})
	ref := g.start(false, "bad", "late", "cut off")
	var asked sync.WaitGroup
	asked.Add(2)
	llm := &workerScript{answer: func(ctx context.Context, text string) (string, job.Usage, error) {
		if text == "bad" {
			asked.Wait()
			return "", workerCost, &job.LLMError{Detail: "status=400"}
		}
		asked.Done()
		<-ctx.Done()
		if text == "late" {
			return workerPolite(text), workerCost, nil
		}
		return "", workerCost, ctx.Err()
	}}
	store := &workerFaulty{workerStore: g.store, after: lostOnce()}
	require.NoError(t, NewWorker(store, llm, g.options()).Handle(t.Context(), ref.Event()))
	j := g.requireFailed(ref, job.CodeLLMFailed)
	require.Equal(t, job.Usage{PromptTokens: 18, CompletionTokens: 12, TotalTokens: 30, Calls: 3}, j.Usage)
}

func TestWorker_Handle_unavailableInTheMiddle(t *testing.T) {
	g := newWorkerRig(t, jobstore.Options{})
	texts := make([]string, 30)
	for i := range texts {
		texts[i] = fmt.Sprintf("text %d", i)
	}
	ref := g.start(false, texts...)
	llm := &workerScript{}
	var failing, atFirst, atLast atomic.Int64
	found := make(chan struct{}) // closed when the worker has found the store unavailable
	var once sync.Once
	llm.answer = func(_ context.Context, text string) (string, job.Usage, error) {
		if llm.count() >= 5 {
			once.Do(func() { g.redis.SetError("LOADING Redis is loading the dataset in memory") })
			<-found
		}
		return workerPolite(text), workerCost, nil
	}
	o := g.options()
	o.After = func(d time.Duration) <-chan time.Time {
		if d < rigLease/3 { // a backoff: the store was just found unavailable
			switch failing.Add(1) {
			case 1:
				atFirst.Store(int64(llm.count()))
				close(found)
			case 6:
				atLast.Store(int64(llm.count()))
				g.redis.SetError("")
			}
		}
		return time.After(min(d, 2*time.Millisecond))
	}
	require.NoError(t, NewWorker(g.store, llm, o).Handle(t.Context(), ref.Event()))
	j := g.read(ref)
	require.Equal(t, job.Success, j.Status)
	require.Equal(t, int64(30), j.Usage.Calls)
	for text, n := range llm.by() {
		require.Equal(t, 1, n, "%s is paid once", text)
	}
	require.GreaterOrEqual(t, failing.Load(), int64(6))
	require.LessOrEqual(t, atLast.Load()-atFirst.Load(), int64(o.Concurrency), "no new call starts meanwhile")
	require.Less(t, atLast.Load(), int64(30))
}

func TestWorker_Handle_incompleteFinish(t *testing.T) {
	for name, c := range map[string]struct {
		lose int // finishes before which a result is lost
		want job.Status
	}{"once": {1, job.Success}, "again": {2, job.Failed}} {
		t.Run(name, func(t *testing.T) {
			g := newWorkerRig(t, jobstore.Options{})
			ref := g.start(false, "a", "b", "a")
			finishes := 0
			store := &workerFaulty{workerStore: g.store, before: func(move string) error {
				if move == "finish" {
					if finishes++; finishes <= c.lose {
						g.redis.HDel(g.outKey(ref), "1")
					}
				}
				return nil
			}}
			llm := &workerScript{}
			require.NoError(t, NewWorker(store, llm, g.options()).Handle(t.Context(), ref.Event()))
			require.Equal(t, 2, finishes)
			require.Equal(t, 2, llm.count(), "nothing is paid again")
			if j := g.read(ref); c.want == job.Failed {
				g.requireFailed(ref, job.CodeInternal)
			} else {
				require.Equal(t, job.Success, j.Status)
			}
		})
	}
}

func TestWorker_Handle_canceledInvocationKeepsAnswers(t *testing.T) {
	g := newWorkerRig(t, jobstore.Options{})
	ref := g.start(false, "came", "cut off")
	ctx, cancel := context.WithCancel(context.Background())
	var asked sync.WaitGroup
	asked.Add(2)
	llm := &workerScript{answer: func(ctx context.Context, text string) (string, job.Usage, error) {
		asked.Done()
		<-ctx.Done()
		if text == "came" {
			return workerPolite(text), workerCost, nil
		}
		return "", job.Usage{Calls: 1}, ctx.Err()
	}}
	done := make(chan error, 1)
	go func() { done <- NewWorker(g.store, llm, g.options()).Handle(ctx, ref.Event()) }()
	asked.Wait()
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	j := g.read(ref)
	require.Equal(t, job.Running, j.Status, "left to another attempt")
	require.Equal(t, 1, j.Done)
	require.Equal(t, int64(2), j.Usage.Calls)
}

// workerFake is a store that accepts everything but what the test refuses. It
// needs no socket, so that a synctest bubble's clock can move it.
type workerFake struct {
	begun  job.Begun
	refuse func(move string) error

	mu    sync.Mutex
	moves map[string]int
	fails []workerFakeFail
}

type workerFakeFail struct {
	failure job.Failure
	extra   job.Extra
	at      time.Time
}

func (f *workerFake) move(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.moves == nil {
		f.moves = map[string]int{}
	}
	f.moves[name]++
	if f.refuse != nil {
		return f.refuse(name)
	}
	return nil
}

func (f *workerFake) Begin(context.Context, job.Attempt) (*job.Begun, error) {
	if err := f.move("begin"); err != nil {
		return nil, err
	}
	return &f.begun, nil
}

func (f *workerFake) Recall(context.Context, job.Target, []string) (map[string]string, error) {
	return nil, f.move("recall")
}

func (f *workerFake) Record(context.Context, job.Attempt, []job.Result, job.Extra) (job.Progress, error) {
	return job.Progress{}, f.move("record")
}
func (f *workerFake) Renew(context.Context, job.Attempt) error { return f.move("renew") }
func (f *workerFake) Finish(context.Context, job.Attempt, job.ID, job.Extra) error {
	return f.move("finish")
}

func (f *workerFake) Fail(_ context.Context, _ job.Ref, _ job.Guard, _ string, fl job.Failure, x job.Extra) error {
	err := f.move("fail")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fails = append(f.fails, workerFakeFail{fl, x, time.Now()})
	return err
}

func workerFakeEvent(t *testing.T) job.Event {
	target := job.Target{Tenant: "t", ID: "x"}
	id, err := job.NewID(time.Now(), target)
	require.NoError(t, err)
	return job.Ref{ID: id, Target: target}.Event()
}

func workerStall(ctx context.Context, _ string) (string, job.Usage, error) {
	<-ctx.Done()
	return "", workerCost, fmt.Errorf("ask: %w", ctx.Err())
}

// The worker's own deadlines, on a bubble's clock: the bubble also fails the test
// when a goroutine is left.
func TestWorker_Handle_ownDeadline(t *testing.T) {
	for name, c := range map[string]struct {
		remaining, function, want time.Duration
	}{
		"the job's":                   {10 * time.Minute, 15 * time.Minute, 10 * time.Minute},
		"the job's, no function's":    {10 * time.Minute, 0, 10 * time.Minute},
		"the function's is sooner":    {10 * time.Minute, 5 * time.Minute, 5*time.Minute - 10*time.Second},
		"a very short function's":     {10 * time.Minute, 4 * time.Second, 3 * time.Second},
		"the margin meets the job's ": {10 * time.Minute, 10*time.Minute + 5*time.Second, 10*time.Minute - 5*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if c.function > 0 {
					ctx, cancel = context.WithTimeout(ctx, c.function)
				}
				defer cancel()
				store := &workerFake{begun: job.Begun{Comments: []job.Comment{{ID: "c0", Text: "a"}}, Remaining: c.remaining, Attempt: 1}}
				began := time.Now()
				w := NewWorker(store, &workerScript{answer: workerStall}, WorkerOptions{Lease: rigLease, Logger: slog.New(slog.DiscardHandler)})
				require.NoError(t, w.Handle(ctx, workerFakeEvent(t)))
				require.NoError(t, ctx.Err(), "FAILED is written before the kill")
				require.Len(t, store.fails, 1)
				require.Equal(t, job.CodeDeadlineExceeded, store.fails[0].failure.Code)
				require.Equal(t, c.want, store.fails[0].at.Sub(began))
				require.InDelta(t, float64(c.want/(rigLease/3)), store.moves["renew"], 1, "the lease is renewed while calls are slow")
			})
		})
	}
}

func TestWorker_Handle_unavailableToTheEnd(t *testing.T) {
	for _, from := range []string{"begin", "recall", "record", "renew", "finish"} {
		t.Run(from, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
				defer cancel()
				store := &workerFake{begun: job.Begun{Comments: []job.Comment{{ID: "c0", Text: "a"}}, Remaining: 10 * time.Minute}}
				down := false
				store.refuse = func(move string) error {
					if down = down || move == from; down {
						return fmt.Errorf("%s: %w", move, job.ErrUnavailable)
					}
					return nil
				}
				llm := &workerScript{}
				if from == "renew" {
					llm.answer = workerStall
				}
				began := time.Now()
				err := NewWorker(store, llm, WorkerOptions{Lease: rigLease, Logger: slog.New(slog.DiscardHandler)}).Handle(ctx, workerFakeEvent(t))
				require.ErrorIs(t, err, job.ErrUnavailable)
				require.NoError(t, ctx.Err())
				require.Greater(t, store.moves[from], 100, "asked again, with pauses")
				if from == "begin" {
					require.GreaterOrEqual(t, time.Since(began), 5*time.Minute)
				} else {
					require.GreaterOrEqual(t, time.Since(began), 10*time.Minute, "until the deadline")
					require.Less(t, time.Since(began), 10*time.Minute+10*time.Second)
				}
			})
		})
	}
}

// A record whose reply was lost and whose repeat is refused may have counted its
// usage: fail carries the same Extra or none of it.
func TestWorker_lastExtra(t *testing.T) {
	one := job.Usage{TotalTokens: 1}
	two := []job.Result{{Usage: job.Usage{TotalTokens: 2, MemoHits: 1}}}
	for name, c := range map[string]struct {
		rec  workerRecord
		want job.Extra
	}{
		"nothing":               {workerRecord{}, job.Extra{}},
		"waiting":               {workerRecord{usage: one, seq: 4}, job.Extra{Seq: 5, Usage: one}},
		"held":                  {workerRecord{held: two, seq: 4}, job.Extra{Seq: 5, Usage: job.Usage{TotalTokens: 2}}},
		"refused":               {workerRecord{sent: &workerSent{results: two, extra: job.Extra{Seq: 4, Usage: one}}, seq: 4}, job.Extra{Seq: 5, Usage: job.Usage{TotalTokens: 3}}},
		"unsure":                {workerRecord{sent: &workerSent{results: two, extra: job.Extra{Seq: 4, Usage: one}, unsure: true}, usage: one, seq: 4}, job.Extra{Seq: 4, Usage: one}},
		"unsure, without extra": {workerRecord{sent: &workerSent{results: two, unsure: true}, usage: one, seq: 4}, job.Extra{Seq: 5, Usage: one}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newWorkerRun(NewWorker(nil, nil, WorkerOptions{}), job.Attempt{})
			r.rec = c.rec
			require.Equal(t, c.want, r.lastExtra())
		})
	}
}

func TestWorker_Handle_refusalsOfBegin(t *testing.T) {
	unknown := errors.New("script failed")
	for _, c := range []struct {
		refusal error
		want    error
	}{
		{job.ErrBusy, nil}, {job.ErrExhausted, nil}, {job.ErrNotFound, nil}, {job.ErrClaimLost, nil},
		{&job.StateError{Status: job.Success}, nil}, {&job.StateError{Status: job.Failed, Code: job.CodeCanceled}, nil},
		{job.ErrSchema, job.ErrSchema}, {unknown, unknown},
	} {
		t.Run(c.refusal.Error(), func(t *testing.T) {
			store := &workerFake{refuse: func(string) error { return c.refusal }}
			llm := &workerScript{}
			err := NewWorker(store, llm, WorkerOptions{Logger: slog.New(slog.DiscardHandler)}).Handle(t.Context(), workerFakeEvent(t))
			if c.want == nil {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, c.want)
			}
			require.Equal(t, map[string]int{"begin": 1}, store.moves, "nothing is written")
			require.Zero(t, llm.count())
		})
	}
}

// Every stop answer of record and finish ends the run with nil; only OVERDUE is
// followed by a fail.
func TestWorker_Handle_stopAnswers(t *testing.T) {
	for _, move := range []string{"record", "renew", "finish"} {
		for _, refusal := range []error{job.ErrClaimLost, job.ErrStale, job.ErrNotFound, &job.StateError{Status: job.Success}, job.ErrOverdue} {
			t.Run(move+" "+refusal.Error(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := &workerFake{
						begun: job.Begun{Comments: []job.Comment{{ID: "c0", Text: "a"}, {ID: "c1", Text: "b"}}, Remaining: time.Hour},
						refuse: func(m string) error {
							if m == move {
								return refusal
							}
							return nil
						},
					}
					llm := &workerScript{answer: func(ctx context.Context, text string) (string, job.Usage, error) {
						if text == "b" && move != "finish" || move == "renew" {
							return workerStall(ctx, text)
						}
						return text, workerCost, nil
					}}
					require.NoError(t, NewWorker(store, llm, WorkerOptions{Logger: slog.New(slog.DiscardHandler)}).Handle(t.Context(), workerFakeEvent(t)))
					require.Equal(t, 1, store.moves[move])
					if errors.Is(refusal, job.ErrOverdue) {
						require.Len(t, store.fails, 1)
						require.Equal(t, job.CodeDeadlineExceeded, store.fails[0].failure.Code)
					} else {
						require.Empty(t, store.fails, "no further write")
					}
				})
			})
		}
	}
}

// What fail answers, when the job has ended or changed hands meanwhile.
func TestWorker_Handle_answersOfFail(t *testing.T) {
	unknown := errors.New("script failed")
	for _, c := range []struct {
		answer  error
		want    error
		outcome WorkerOutcome
		code    job.Code
	}{
		{nil, nil, WorkerFailed, job.CodeLLMFailed},
		{job.ErrOverdue, nil, WorkerFailed, job.CodeDeadlineExceeded},
		{job.ErrStale, nil, WorkerStopped, ""},
		{job.ErrNotFound, nil, WorkerStopped, ""},
		{&job.StateError{Status: job.Failed, Code: job.CodeCanceled}, nil, WorkerStopped, ""},
		{unknown, unknown, WorkerUnsaid, ""},
	} {
		t.Run(fmt.Sprint(c.answer), func(t *testing.T) {
			store := &workerFake{
				begun:  job.Begun{Comments: []job.Comment{{ID: "c0", Text: "a"}}, Remaining: time.Hour},
				refuse: func(move string) error { return map[string]error{"fail": c.answer}[move] },
			}
			llm := &workerScript{answer: func(context.Context, string) (string, job.Usage, error) {
				return "", workerCost, &job.LLMError{}
			}}
			var report WorkerReport
			o := WorkerOptions{Logger: slog.New(slog.DiscardHandler), Observe: func(_ context.Context, r WorkerReport) { report = r }}
			require.ErrorIs(t, NewWorker(store, llm, o).Handle(t.Context(), workerFakeEvent(t)), c.want)
			require.Equal(t, c.outcome, report.Outcome)
			require.Equal(t, c.code, report.Code)
			require.Equal(t, job.Extra{Seq: 1, Usage: workerCost}, store.fails[0].extra)
		})
	}
}

// A model's failure does not outweigh the loss of the job: no fail follows.
func TestWorker_Handle_replacedWhileFailing(t *testing.T) {
	store := &workerFake{
		begun:  job.Begun{Comments: []job.Comment{{ID: "c0", Text: "bad"}, {ID: "c1", Text: "late"}}, Remaining: time.Hour},
		refuse: func(move string) error { return map[string]error{"record": job.ErrStale}[move] },
	}
	asked := make(chan struct{})
	llm := &workerScript{answer: func(ctx context.Context, text string) (string, job.Usage, error) {
		if text == "bad" {
			<-asked
			return "", workerCost, &job.LLMError{}
		}
		close(asked)
		<-ctx.Done()
		return text, workerCost, nil
	}}
	w := NewWorker(store, llm, WorkerOptions{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, w.Handle(t.Context(), workerFakeEvent(t)))
	require.Equal(t, 1, store.moves["record"])
	require.Empty(t, store.fails)
}
