package main

import (
	"context"

	"sunhwa/shared/handler"
	"sunhwa/shared/obs"
)

// observe returns what counts each invocation's outcome and cost. It flushes:
// the report is the last thing an invocation does.
func observe(m *obs.Metrics) func(context.Context, handler.WorkerReport) {
	return func(_ context.Context, r handler.WorkerReport) {
		m.Count("WorkerRuns", 1, obs.Dimension{Name: "Outcome", Value: string(r.Outcome)})
		switch r.Outcome {
		case handler.WorkerSucceeded:
			m.Count("JobsSucceeded", 1)
			m.Took("WorkerTime", r.Duration)
		case handler.WorkerFailed:
			m.Count("JobsFailed", 1, obs.Dimension{Name: "Code", Value: string(r.Code)})
			m.Took("WorkerTime", r.Duration)
		case handler.WorkerIdle, handler.WorkerStopped, handler.WorkerUnsaid:
		}
		m.Count("LLMCalls", r.Usage.Calls)
		m.Count("LLMRetries", r.Retries)
		m.Count("MemoHits", r.Usage.MemoHits)
		m.Count("PromptTokens", r.Usage.PromptTokens)
		m.Count("CompletionTokens", r.Usage.CompletionTokens)
		m.Flush()
	}
}
