package handler

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"sunhwa/shared/job"
)

// workerAnswers returns one result for each comment of t; the first has paid
// usage.
func workerAnswers(t workerTask, text string, usage job.Usage) []job.Result {
	out := make([]job.Result, len(t.indexes))
	for n, i := range t.indexes {
		out[n] = job.Result{Index: i, Text: text, MemoKey: t.key, Usage: usage}
		usage = job.Usage{MemoHits: 1}
	}
	return out
}

// caller makes one model call after another until none is left or calls ends. It
// starts none while the gate is shut: the store unavailable, or the lease in doubt.
func (r *workerRun) caller() {
	defer r.inbox.leave()
	for r.gate.pass(r.calls) {
		n := int(r.next.Add(1)) - 1
		if n >= len(r.tasks) {
			return
		}
		r.call(r.tasks[n])
	}
}

// call makes one model call. An answer that came is kept whatever has happened
// meanwhile; a call that was cut off leaves its usage only.
func (r *workerRun) call(t workerTask) {
	comment := r.begun.Comments[t.indexes[0]]
	defer func() {
		if p := recover(); p != nil {
			r.logPanic(p)
			r.halt(workerStop{failure: job.Failure{Code: job.CodeInternal, CommentID: comment.ID}})
		}
	}()
	text, usage, err := r.w.llm.Rewrite(r.calls, r.begun.Spec, comment.Text)
	if err == nil {
		r.answered.Add(1)
		r.inbox.results(workerAnswers(t, text, usage))
		return
	}
	// After the stop below, so that the recorder leaves it to fail.
	defer r.inbox.spent(usage)
	f := job.Failure{CommentID: comment.ID}
	var llm *job.LLMError
	switch {
	case r.calls.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)):
		return
	case errors.Is(err, job.ErrLLM):
		f.Code = job.CodeLLMFailed
		if errors.As(err, &llm) {
			f.Detail = llm.Detail
		}
		r.log.Warn("worker: the model failed a comment", "detail", f.Detail)
	case errors.Is(err, job.ErrUnknownPrompt):
		f.Code = job.CodeInternal
		r.log.Error("worker: unknown prompt version", "promptVersion", r.begun.Spec.PromptVersion)
	default:
		// Not an error a rewriter may return; its text may hold anything.
		f.Code = job.CodeInternal
		r.log.Error("worker: unexpected error of the rewriter", "type", fmt.Sprintf("%T", err))
	}
	r.halt(workerStop{failure: f})
}

// logPanic logs where a panic was. Its value is logged only when the runtime made
// it: any other may hold a comment's text.
func (r *workerRun) logPanic(p any) {
	what := fmt.Sprintf("%T", p)
	if e, ok := p.(runtime.Error); ok {
		what = e.Error()
	}
	r.log.Error("worker: panic", "panic", what, "stack", string(debug.Stack()))
}
