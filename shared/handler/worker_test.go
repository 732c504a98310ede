package handler

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sunhwa/shared/job"
	"sunhwa/shared/jobstore"
)

func TestWorker_Handle_success(t *testing.T) {
	g := newWorkerRig(t, jobstore.Options{})
	var texts []string
	for i := range 40 {
		texts = append(texts, fmt.Sprintf("text %d", i))
	}
	ref := g.start(false, texts...)
	llm := &workerScript{}
	o := g.options()
	var report WorkerReport
	o.Observe = func(_ context.Context, r WorkerReport) { report = r }
	require.NoError(t, NewWorker(g.store, llm, o).Handle(t.Context(), ref.Event()))

	j, rows, err := g.store.Results(t.Context(), ref.ID)
	require.NoError(t, err)
	require.Len(t, rows, 40)
	for i, row := range rows {
		require.Equal(t, fmt.Sprintf("c%d", i), row.ID)
		require.Equal(t, workerPolite(texts[i]), row.After)
	}
	require.Equal(t, job.Usage{PromptTokens: 240, CompletionTokens: 160, TotalTokens: 400, Calls: 40}, j.Usage)
	require.LessOrEqual(t, llm.most, 4)
	require.Equal(t, WorkerSucceeded, report.Outcome)
	require.Equal(t, j.Usage, report.Usage)
	require.Equal(t, 1, report.Attempt)
}

func TestWorker_Handle_reportsRetries(t *testing.T) {
	g := newWorkerRig(t, jobstore.Options{})
	ref := g.start(false, "a", "b")
	llm := &workerScript{answer: func(_ context.Context, text string) (string, job.Usage, error) {
		calls := map[string]int64{"a": 1, "b": 3}[text]
		return workerPolite(text), job.Usage{Calls: calls}, nil
	}}
	o := g.options()
	var report WorkerReport
	o.Observe = func(_ context.Context, r WorkerReport) { report = r }
	require.NoError(t, NewWorker(g.store, llm, o).Handle(t.Context(), ref.Event()))
	require.Equal(t, int64(2), report.Retries)
	require.Equal(t, int64(4), report.Usage.Calls)
}

func TestWorker_Handle_sideBySide(t *testing.T) {
	g := newWorkerRig(t, jobstore.Options{})
	ref := g.start(false, "a", "b", "c", "d", "e")
	var waiting sync.WaitGroup
	waiting.Add(4)
	var once [5]sync.Once
	llm := &workerScript{}
	llm.answer = func(ctx context.Context, text string) (string, job.Usage, error) {
		if i := strings.Index("abcd", text); i >= 0 { // none of the first four answers before all four are asked
			once[i].Do(waiting.Done)
			waiting.Wait()
		}
		return workerPolite(text), workerCost, nil
	}
	require.NoError(t, NewWorker(g.store, llm, g.options()).Handle(t.Context(), ref.Event()))
	require.Equal(t, job.Success, g.read(ref).Status)
	require.Equal(t, 4, llm.most)
}

func TestWorker_Handle_memo(t *testing.T) {
	g := newWorkerRig(t, jobstore.Options{})
	llm := &workerScript{}
	w := NewWorker(g.store, llm, g.options())

	first := g.start(false, "a", "b", "a", "a")
	require.NoError(t, w.Handle(t.Context(), first.Event()))
	require.Equal(t, map[string]int{"a": 1, "b": 1}, llm.by(), "the same text is paid once in a job")
	require.Equal(t, job.Usage{PromptTokens: 12, CompletionTokens: 8, TotalTokens: 20, Calls: 2, MemoHits: 2}, g.read(first).Usage)
	_, rows, err := g.store.Results(t.Context(), first.ID)
	require.NoError(t, err)
	require.Len(t, rows, 4)
	require.Equal(t, rows[0].After, rows[3].After)

	second := g.start(false, "b", "a", "c")
	require.NoError(t, w.Handle(t.Context(), second.Event()))
	require.Equal(t, map[string]int{"a": 1, "b": 1, "c": 1}, llm.by(), "what an earlier job paid is not paid again")
	require.Equal(t, int64(1), g.read(second).Usage.Calls)
	require.Equal(t, int64(2), g.read(second).Usage.MemoHits)

	third := g.start(true, "a", "a")
	require.NoError(t, w.Handle(t.Context(), third.Event()))
	require.Equal(t, map[string]int{"a": 3, "b": 1, "c": 1}, llm.by(), "fresh uses no memo")
	require.Equal(t, int64(0), g.read(third).Usage.MemoHits)
}

func TestWorker_Handle_duplicatesAtOnce(t *testing.T) {
	g := newWorkerRig(t, jobstore.Options{})
	ref := g.start(false, "a", "b", "c", "d", "e", "f")
	llm := &workerScript{}
	w := NewWorker(g.store, llm, g.options())
	var all sync.WaitGroup
	errs := make([]error, 10)
	for i := range errs {
		all.Go(func() { errs[i] = w.Handle(context.Background(), ref.Event()) })
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
	require.Equal(t, job.Success, g.read(ref).Status)
	require.Equal(t, 1, g.read(ref).Attempt)
	require.Equal(t, map[string]int{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1}, llm.by(), "one of the deliveries pays")
}

func TestWorker_Handle_resumesAfterCrash(t *testing.T) {
	g := newWorkerRig(t, jobstore.Options{})
	ref := g.start(false, "a", "b", "a")
	old := job.Attempt{Ref: ref, Token: "crashed", Lease: rigLease}
	b, err := g.store.Begin(t.Context(), old)
	require.NoError(t, err)
	_, err = g.store.Record(t.Context(), old, []job.Result{
		{Index: 0, Text: workerPolite("a"), MemoKey: b.Spec.MemoKey(b.Comments[0].Text), Usage: workerCost},
	}, job.Extra{})
	require.NoError(t, err)
	g.redis.FastForward(rigLease)

	llm := &workerScript{}
	require.NoError(t, NewWorker(g.store, llm, g.options()).Handle(t.Context(), ref.Event()))
	require.Equal(t, map[string]int{"b": 1}, llm.by(), "what is recorded is not paid again")
	require.Equal(t, job.Success, g.read(ref).Status)
	require.Equal(t, int64(2), g.read(ref).Usage.Calls)
}

func TestWorker_Handle_permanentFailure(t *testing.T) {
	g := newWorkerRig(t, jobstore.Options{})
	ref := g.start(false, "good", "bad", "slow 1", "slow 2", "never asked")
	recorded := make(chan struct{})
	store := &workerFaulty{workerStore: g.store, after: func(move string) error {
		if move == "record" {
			select {
			case <-recorded:
			default:
				close(recorded)
			}
		}
		return nil
	}}
	var slow sync.WaitGroup
	slow.Add(2)
	llm := &workerScript{}
	llm.answer = func(ctx context.Context, text string) (string, job.Usage, error) {
		switch {
		case text == "good":
			return workerPolite(text), workerCost, nil
		case text == "bad":
			<-recorded
			slow.Wait()
			return "", job.Usage{TotalTokens: 3, PromptTokens: 3, Calls: 2}, fmt.Errorf("wrapped: %w", &job.LLMError{Detail: "status=400 code=content_filter"})
		case strings.HasPrefix(text, "slow"):
			slow.Done()
			<-ctx.Done()
			return "", job.Usage{Calls: 1}, fmt.Errorf("ask: %w", ctx.Err())
		}
		// A caller is free once "good" has answered; it waits here like the others.
		<-ctx.Done()
		return "", job.Usage{}, ctx.Err()
	}
	require.NoError(t, NewWorker(store, llm, g.options()).Handle(t.Context(), ref.Event()))
	j := g.requireFailed(ref, job.CodeLLMFailed)
	require.Equal(t, "c1", j.Failure.CommentID)
	require.Equal(t, "status=400 code=content_filter", j.Failure.Detail)
	require.Equal(t, job.Usage{PromptTokens: 9, CompletionTokens: 4, TotalTokens: 13, Calls: 5}, j.Usage,
		"the failed call's and the siblings' usage is counted")

	llm.answer = nil
	again := g.start(false, "good", "better")
	require.NoError(t, NewWorker(g.store, llm, g.options()).Handle(t.Context(), again.Event()))
	require.Equal(t, 1, llm.by()["good"], "an answer of the failed job is not paid twice")
}

func TestWorker_Handle_failureKeepsAnswersThatCame(t *testing.T) {
	g := newWorkerRig(t, jobstore.Options{})
	ref := g.start(false, "bad", "late")
	llm := &workerScript{}
	asked := make(chan struct{})
	llm.answer = func(ctx context.Context, text string) (string, job.Usage, error) {
		if text == "bad" {
			<-asked
			return "", job.Usage{Calls: 1}, &job.LLMError{}
		}
		close(asked)
		<-ctx.Done() // the answer was on its way when the sibling failed
		return workerPolite(text), workerCost, nil
	}
	require.NoError(t, NewWorker(g.store, llm, g.options()).Handle(t.Context(), ref.Event()))
	j := g.requireFailed(ref, job.CodeLLMFailed)
	require.Equal(t, 1, j.Done)
	require.Equal(t, int64(2), j.Usage.Calls)

	llm.answer = nil
	again := g.start(false, "late")
	require.NoError(t, NewWorker(g.store, llm, g.options()).Handle(t.Context(), again.Event()))
	require.Equal(t, 1, llm.by()["late"])
}

func TestWorker_Handle_internal(t *testing.T) {
	for name, answer := range map[string]func() error{
		"unknown prompt":   func() error { return fmt.Errorf("no: %w", job.ErrUnknownPrompt) },
		"unexpected error": func() error { return errors.New("quotes " + workerMarker) },
		"panic":            func() error { panic("quotes " + workerMarker) },
		"runtime panic":    func() error { var m map[string]int; m["x"] = 1; return nil },
	} {
		t.Run(name, func(t *testing.T) {
			g := newWorkerRig(t, jobstore.Options{})
			ref := g.start(false, "a", "b", "c")
			llm := &workerScript{answer: func(ctx context.Context, text string) (string, job.Usage, error) {
				if text == "b" {
					return "", job.Usage{}, answer()
				}
				<-ctx.Done()
				return "", job.Usage{}, ctx.Err()
			}}
			require.NoError(t, NewWorker(g.store, llm, g.options()).Handle(t.Context(), ref.Event()))
			require.Equal(t, "c1", g.requireFailed(ref, job.CodeInternal).Failure.CommentID)
		})
	}
}

func TestWorker_Handle_panicInStore(t *testing.T) {
	g := newWorkerRig(t, jobstore.Options{})
	ref := g.start(false, "a", "b", "c")
	store := &workerFaulty{workerStore: g.store, before: func(move string) error {
		if move == "record" {
			panic("record")
		}
		return nil
	}}
	llm := &workerScript{answer: func(ctx context.Context, text string) (string, job.Usage, error) {
		if text != "a" {
			<-ctx.Done()
			return "", job.Usage{}, ctx.Err()
		}
		return workerPolite(text), workerCost, nil
	}}
	require.NoError(t, NewWorker(store, llm, g.options()).Handle(t.Context(), ref.Event()))
	g.requireFailed(ref, job.CodeInternal)
}

func TestWorker_Handle_stalledModelUntilDeadline(t *testing.T) {
	g := newWorkerRig(t, jobstore.Options{})
	ref := g.start(false, "a", "b")
	stalled := make(chan struct{}, 2)
	llm := &workerScript{answer: func(ctx context.Context, text string) (string, job.Usage, error) {
		stalled <- struct{}{}
		<-ctx.Done()
		return workerPolite(text), workerCost, nil // comes too late
	}}
	done := make(chan error, 1)
	go func() { done <- NewWorker(g.store, llm, g.options()).Handle(context.Background(), ref.Event()) }()
	<-stalled
	<-stalled
	g.redis.FastForward(rigDeadline)
	require.NoError(t, <-done)
	j := g.requireFailed(ref, job.CodeDeadlineExceeded)
	require.Zero(t, j.Done)
	require.Equal(t, int64(2), j.Usage.Calls, "late answers are no results, but they were paid")
}

func TestWorker_Handle_overdueAtBegin(t *testing.T) {
	g := newWorkerRig(t, jobstore.Options{})
	ref := g.start(false, "a")
	g.redis.FastForward(rigDeadline + time.Second)
	llm := &workerScript{}
	require.NoError(t, NewWorker(g.store, llm, g.options()).Handle(t.Context(), ref.Event()))
	require.Zero(t, llm.count())
	shown, err := g.redis.HKeys("{" + ref.ID.Shard() + "}:job:" + string(ref.ID))
	require.NoError(t, err)
	require.Contains(t, shown, "error", "written by the worker, before anybody reads")
	g.requireFailed(ref, job.CodeDeadlineExceeded)
}

func TestWorker_Handle_budget(t *testing.T) {
	g := newWorkerRig(t, jobstore.Options{})
	o := g.options()
	o.Concurrency, o.MaxJobTokens = 1, 25
	ref := g.start(false, "a", "b", "c", "d", "e", "f", "g", "h")
	var w *Worker
	llm := &workerScript{}
	// One call at a time, each waiting until the one before is recorded.
	var recorded atomic.Int64
	store := &workerFaulty{workerStore: g.store, after: func(move string) error {
		if move == "record" {
			recorded.Add(1)
		}
		return nil
	}}
	var asked int64
	llm.answer = func(ctx context.Context, text string) (string, job.Usage, error) {
		before := asked
		asked++
		for recorded.Load() < before && ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-time.After(time.Millisecond):
			}
		}
		if err := ctx.Err(); err != nil {
			return "", job.Usage{}, err
		}
		return workerPolite(text), workerCost, nil
	}
	w = NewWorker(store, llm, o)
	require.NoError(t, w.Handle(t.Context(), ref.Event()))
	j := g.requireFailed(ref, job.CodeBudgetExceeded)
	require.GreaterOrEqual(t, j.Usage.TotalTokens, int64(30))
	require.Less(t, llm.count(), 8, "calls stop once the budget is used")
}

func TestWorker_Handle_budgetUsedBeforeBegin(t *testing.T) {
	g := newWorkerRig(t, jobstore.Options{})
	ref := g.start(false, "a", "b")
	old := job.Attempt{Ref: ref, Token: "crashed", Lease: rigLease}
	_, err := g.store.Begin(t.Context(), old)
	require.NoError(t, err)
	_, err = g.store.Record(t.Context(), old, nil, job.Extra{Seq: 1, Usage: job.Usage{TotalTokens: 26}})
	require.NoError(t, err)
	g.redis.FastForward(rigLease)
	o := g.options()
	o.MaxJobTokens = 25
	llm := &workerScript{}
	require.NoError(t, NewWorker(g.store, llm, o).Handle(t.Context(), ref.Event()))
	g.requireFailed(ref, job.CodeBudgetExceeded)
	require.Zero(t, llm.count())
}

func TestWorker_Handle_replacedAttemptChangesNothing(t *testing.T) {
	g := newWorkerRig(t, jobstore.Options{})
	ref := g.start(false, "a", "b")
	o := g.options()
	o.After = workerNever // the old worker is frozen: it does not renew
	calling, release := make(chan struct{}, 2), make(chan struct{})
	llm := &workerScript{answer: func(ctx context.Context, text string) (string, job.Usage, error) {
		calling <- struct{}{}
		if text == "a" {
			<-release
			return workerPolite(text), workerCost, nil
		}
		<-ctx.Done() // the stop answer cancels this call
		return "", workerCost, ctx.Err()
	}}
	var report WorkerReport
	o.Observe = func(_ context.Context, r WorkerReport) { report = r }
	done := make(chan error, 1)
	go func() { done <- NewWorker(g.store, llm, o).Handle(context.Background(), ref.Event()) }()
	<-calling
	<-calling
	g.redis.FastForward(rigLease + time.Millisecond)
	_, err := g.store.Begin(t.Context(), job.Attempt{Ref: ref, Token: "new owner", Lease: rigLease})
	require.NoError(t, err)
	before := g.redis.Dump()
	close(release)
	require.NoError(t, <-done)
	require.Equal(t, before, g.redis.Dump())
	require.Equal(t, WorkerStopped, report.Outcome)
	require.Equal(t, job.Running, g.read(ref).Status)
}

func TestWorker_Handle_canceledJobStops(t *testing.T) {
	g := newWorkerRig(t, jobstore.Options{})
	ref := g.start(false, "a")
	calling := make(chan struct{})
	llm := &workerScript{answer: func(ctx context.Context, _ string) (string, job.Usage, error) {
		close(calling)
		<-ctx.Done()
		return "", job.Usage{}, ctx.Err()
	}}
	done := make(chan error, 1)
	go func() { done <- NewWorker(g.store, llm, g.options()).Handle(context.Background(), ref.Event()) }()
	<-calling
	require.NoError(t, g.store.Fail(t.Context(), ref, job.GuardCancel, "", job.Failure{Code: job.CodeCanceled}, job.Extra{}))
	require.NoError(t, <-done)
	g.requireFailed(ref, job.CodeCanceled)
}

func TestWorker_Handle_malformedEvent(t *testing.T) {
	g := newWorkerRig(t, jobstore.Options{})
	w := NewWorker(g.store, &workerScript{}, g.options())
	for _, ev := range []job.Event{{}, {JobID: "nonsense"}, {JobID: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Tenant: "t", TargetID: "x"}} {
		require.ErrorIs(t, w.Handle(t.Context(), ev), job.ErrNotFound)
	}
}
