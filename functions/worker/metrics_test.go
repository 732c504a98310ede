package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sunhwa/shared/handler"
	"sunhwa/shared/job"
	"sunhwa/shared/obs"
)

func TestObserve_countsByOutcome(t *testing.T) {
	for outcome, want := range map[handler.WorkerOutcome]string{
		handler.WorkerSucceeded: "JobsSucceeded", handler.WorkerFailed: "JobsFailed",
		handler.WorkerIdle: "", handler.WorkerStopped: "", handler.WorkerUnsaid: "",
	} {
		var b bytes.Buffer
		observe(obs.NewMetrics(&b, "worker", nil))(t.Context(), handler.WorkerReport{
			Outcome: outcome, Code: job.CodeLLMFailed, Duration: time.Second, Usage: job.Usage{Calls: 7}, Retries: 2,
		})
		for _, name := range []string{"JobsSucceeded", "JobsFailed"} {
			assert.Equal(t, name == want, bytes.Contains(b.Bytes(), []byte(`"`+name+`"`)), "%s: %s", outcome, name)
		}
		assert.Contains(t, b.String(), `"LLMCalls":7`)
		assert.Contains(t, b.String(), `"LLMRetries":2`)
		assert.Contains(t, b.String(), `"Outcome":"`+string(outcome)+`"`)
		assert.Equal(t, outcome == handler.WorkerFailed, bytes.Contains(b.Bytes(), []byte(`"Code":"LLM_FAILED"`)))
	}
}
