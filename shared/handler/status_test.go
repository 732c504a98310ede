package handler

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/shared/job"
)

const (
	readRoute    = "GET /jobs/{jobId}"
	resultsRoute = "GET /jobs/{jobId}/results"
	cancelRoute  = "DELETE /jobs/{jobId}"
	latestRoute  = "GET /targets/{targetId}/jobs/latest"
)

func withJob(id job.ID) eventOption { return withPath("jobId", string(id)) }

func TestStatus_read_shapes(t *testing.T) {
	w := newWorld(t, "")
	running := w.started("t")
	response := w.call(readRoute, withJob(running))
	require.Equal(t, 200, response.StatusCode)
	want := fmt.Sprintf(`{"jobId":"%s","targetId":"t","status":"RUNNING","progress":{"total":2,"done":0},`+
		`"createdAt":"2030-01-02T03:04:05.678Z","deadlineAt":"2030-01-02T03:14:05.678Z","finishedAt":null,"error":null,`+
		`"usage":{"promptTokens":0,"completionTokens":0,"totalTokens":0,"calls":0,"memoHits":0},"appliedAt":null}`, running)
	assert.Equal(t, want, response.Body)
	assert.Equal(t, "2", response.Headers["Retry-After"])
	assert.Equal(t, "no-store", response.Headers["Cache-Control"])
	assert.Equal(t, want, w.call(latestRoute, withPath("targetId", "t")).Body)
	assert.Equal(t, want, w.call(readRoute, withPath("jobId", strings.ToLower(string(running)))).Body, "either case")

	w.finish(running)
	require.NoError(t, w.store.Applied(context.Background(), running, testNow))
	response = w.call(readRoute, withJob(running))
	assert.Equal(t, fmt.Sprintf(`{"jobId":"%s","targetId":"t","status":"SUCCESS","progress":{"total":2,"done":2},`+
		`"createdAt":"2030-01-02T03:04:05.678Z","deadlineAt":"2030-01-02T03:14:05.678Z","finishedAt":"2030-01-02T03:04:05.678Z","error":null,`+
		`"usage":{"promptTokens":20,"completionTokens":10,"totalTokens":30,"calls":2,"memoHits":0},"appliedAt":"2030-01-02T03:04:05.678Z"}`, running), response.Body)
	assert.NotContains(t, response.Headers, "Retry-After")

	failed := w.started("t")
	w.fail(failed, job.Failure{Code: job.CodeLLMFailed, Detail: "status=400 code=x type=y", CommentID: "b"})
	body := w.call(readRoute, withJob(failed)).Body
	assert.Equal(t, map[string]any{
		"code": "LLM_FAILED", "message": job.CodeLLMFailed.Message() + " (status=400 code=x type=y)", "commentId": "b",
	}, member(t, body, "error"))
	failed = w.started("t")
	w.fail(failed, job.Failure{Code: job.CodeInternal})
	assert.Equal(t, map[string]any{"code": "INTERNAL", "message": job.CodeInternal.Message(), "commentId": nil},
		member(t, w.call(readRoute, withJob(failed)).Body, "error"))
}

func TestStatus_deadlineIsApplied(t *testing.T) {
	w := newWorld(t, "")
	id := w.started("t")
	w.redis.FastForward(10 * time.Minute)
	p := requireProblem(t, w.call(resultsRoute, withJob(id)), 409, codeJobFailed)
	assert.Equal(t, job.Failed, p.JobStatus)
	body := w.call(latestRoute, withPath("targetId", "t")).Body
	assert.Equal(t, "FAILED", member(t, body, "status"))
	assert.Equal(t, "DEADLINE_EXCEEDED", member(t, body, "error").(map[string]any)["code"])
	p = requireProblem(t, w.call(cancelRoute, withJob(id)), 409, codeJobFinished)
	assert.Equal(t, job.Failed, p.JobStatus)
}

func TestStatus_notFound(t *testing.T) {
	w := newWorld(t, "")
	unknown := idAt(t, testNow, plainTarget)
	for _, route := range []string{readRoute, resultsRoute, cancelRoute, "POST /jobs/{jobId}/apply"} {
		for _, id := range []string{string(unknown), "", "x", "..", strings.Repeat("Z", 26), strings.Repeat("0", 27), "01JZZZZZZZZZZZZZZZZZZZZZZ한"} {
			p := requireProblem(t, w.call(route, withPath("jobId", id)), 404, codeNotFound)
			assert.Empty(t, p.Errors)
		}
	}
	requireProblem(t, w.call(latestRoute, withPath("targetId", "t")), 404, codeNotFound)
	p := requireProblem(t, w.call(latestRoute, withPath("targetId", "a b")), 400, codeInvalid)
	assert.Equal(t, []string{"#/targetId"}, pointers(p))
}

// TestTenant_anotherTenantsJob is 404 on every route, in every state.
func TestTenant_anotherTenantsJob(t *testing.T) {
	w := newWorld(t, "tenant")
	mine := withTenant("a")
	running := w.started("running", mine)
	done := w.started("done", mine)
	w.finish(done)
	gone := w.started("gone", mine)
	w.finish(gone)
	w.redis.Del(fmt.Sprintf("{%s}:in:%s", gone.Shard(), gone))
	failed := w.started("failed", mine)
	w.fail(failed, job.Failure{Code: job.CodeLLMFailed})
	published := w.started("published", mine)
	w.finish(published)
	require.Equal(t, 200, w.call("POST /jobs/{jobId}/apply", withJob(published), mine).StatusCode)
	before := w.redis.Dump()
	for _, stranger := range []string{"b", "A", "a ", "default"} {
		for _, id := range []job.ID{running, done, gone, failed, published} {
			for _, route := range []string{readRoute, resultsRoute, cancelRoute, "POST /jobs/{jobId}/apply"} {
				requireProblem(t, w.call(route, withJob(id), withTenant(stranger)), 404, codeNotFound)
			}
		}
		for _, target := range []string{"running", "done", "gone", "failed", "published"} {
			requireProblem(t, w.call(latestRoute, withPath("targetId", target), withTenant(stranger)), 404, codeNotFound)
			requireProblem(t, w.call("GET /targets/{targetId}/comments", withPath("targetId", target), withTenant(stranger)), 404, codeNotFound)
		}
		assert.Equal(t, 204, w.call("DELETE /targets/{targetId}/comments", withPath("targetId", "published"), withTenant(stranger)).StatusCode)
	}
	assert.Equal(t, before, w.redis.Dump(), "strangers change nothing")
	assert.Equal(t, 200, w.call("GET /targets/{targetId}/comments", withPath("targetId", "published"), mine).StatusCode)
	requireProblem(t, w.call(resultsRoute, withJob(gone), mine), 410, codeGone)
}

func TestStatus_results(t *testing.T) {
	w := newWorld(t, "")
	id := w.started("t")
	p := requireProblem(t, w.call(resultsRoute, withJob(id)), 409, codeJobRunning)
	assert.Equal(t, job.Running, p.JobStatus)
	w.finish(id)
	response := w.call(resultsRoute, withJob(id), withCursor(""))
	require.Equal(t, 200, response.StatusCode)
	assert.Equal(t, fmt.Sprintf(`{"jobId":"%s","results":[{"id":"a","before":"one %s","after":"polite <a>"},{"id":"b","before":"two %s","after":"polite <b>"}],"nextCursor":null}`, id, marker, marker), response.Body)

	w.status.page = envelopeBytes + 1 // one row a page
	var rows []string
	cursor := ""
	for range 2 {
		body := w.call(resultsRoute, withJob(id), withCursor(cursor)).Body
		var page struct {
			Results    []job.Rewritten
			NextCursor *string
		}
		require.NoError(t, json.Unmarshal([]byte(body), &page))
		require.Len(t, page.Results, 1)
		rows = append(rows, page.Results[0].ID)
		if page.NextCursor != nil {
			cursor = *page.NextCursor
		} else {
			cursor = "end"
		}
	}
	assert.Equal(t, []string{"a", "b"}, rows)
	assert.Equal(t, "end", cursor)
	for _, bad := range []string{"x", "0", "cm93OjE=", encodeCursor(2), encodeCursor(99), encodeCursor(0), encodeCursor(-1), encodeCursor(1) + "," + encodeCursor(1), "cm93OisxMA", "한"} {
		p := requireProblem(t, w.call(resultsRoute, withJob(id), withCursor(bad)), 400, codeInvalid)
		assert.Equal(t, []string{"#/cursor"}, pointers(p), bad)
	}
	newer := w.started("t")
	w.finish(newer)
	requireProblem(t, w.call(resultsRoute, withJob(id)), 410, codeGone)
}

func TestStatus_cancel(t *testing.T) {
	w := newWorld(t, "")
	id := w.started("t")
	for range 2 {
		response := w.call(cancelRoute, withJob(id))
		require.Equal(t, 200, response.StatusCode, response.Body)
		assert.Equal(t, "FAILED", member(t, response.Body, "status"))
		assert.Equal(t, "CANCELED", member(t, response.Body, "error").(map[string]any)["code"])
	}
	done := w.started("t")
	w.finish(done)
	p := requireProblem(t, w.call(cancelRoute, withJob(done)), 409, codeJobFinished)
	assert.Equal(t, job.Success, p.JobStatus)
	failed := w.started("t")
	w.fail(failed, job.Failure{Code: job.CodeLLMFailed})
	p = requireProblem(t, w.call(cancelRoute, withJob(failed)), 409, codeJobFinished)
	assert.Equal(t, job.Failed, p.JobStatus)
	overdue := w.started("t")
	w.redis.FastForward(10 * time.Minute)
	requireProblem(t, w.call(cancelRoute, withJob(overdue)), 409, codeJobFinished)
}

// TestStatus_cancel_endedInBetween: the job ends between read and fail, and the
// answer says how.
func TestStatus_cancel_endedInBetween(t *testing.T) {
	for name, end := range map[string]func(*world, job.ID){
		"finished": func(w *world, id job.ID) { w.finish(id) },
		"failed":   func(w *world, id job.ID) { w.fail(id, job.Failure{Code: job.CodeLLMFailed}) },
		"overdue":  func(w *world, _ job.ID) { w.redis.FastForward(10 * time.Minute) },
		"canceled": func(w *world, id job.ID) { w.fail(id, job.Failure{Code: job.CodeCanceled}) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "")
			id := w.started("t")
			h := NewStatus(&beforeFail{jobs: w.store, do: func() { end(w, id) }}, StatusOptions{})
			response := handleOf(t, h, eventOf(t, cancelRoute, withJob(id)))
			if name == "canceled" {
				assert.Equal(t, 200, response.StatusCode)
				return
			}
			requireProblem(t, response, 409, codeJobFinished)
		})
	}
}

type beforeFail struct {
	jobs
	do func()
}

func (b *beforeFail) Fail(ctx context.Context, r job.Ref, g job.Guard, token string, f job.Failure, e job.Extra) error {
	b.do()
	return b.jobs.Fail(ctx, r, g, token, f, e)
}

func TestStatus_redisSilentOrUnreachable(t *testing.T) {
	id := idAt(t, testNow, plainTarget)
	h := NewStatus(silentStore{}, StatusOptions{})
	assert.Less(t, h.redis, 5*time.Second)
	h.redis = time.Millisecond
	w := newWorld(t, "")
	w.redis.Close()
	for _, route := range []string{readRoute, resultsRoute, cancelRoute} {
		requireProblem(t, handleOf(t, h, eventOf(t, route, withJob(id))), 503, codeUnavailable)
		requireProblem(t, w.call(route, withJob(id)), 503, codeUnavailable)
	}
	requireProblem(t, handleOf(t, h, eventOf(t, latestRoute, withPath("targetId", "t"))), 503, codeUnavailable)
}

func TestResultsPage_size(t *testing.T) {
	rows := make([]job.Rewritten, 1000)
	for i := range rows {
		rows[i] = job.Rewritten{ID: fmt.Sprint(i), Before: strings.Repeat(`가"<\`, 250), After: strings.Repeat("\x01\u2028", 500)}
	}
	seen, pages := 0, 0
	for from := 0; from < len(rows); pages++ {
		page, next, err := resultsPage(rows, from, pageBytes)
		require.NoError(t, err)
		raw, err := encode(resultsView{JobID: idAt(t, testNow, plainTarget), Results: page, NextCursor: orNull(encodeCursor(next))})
		require.NoError(t, err)
		require.LessOrEqual(t, len(raw), pageBytes)
		again, err := encode(string(raw)) // as Lambda encodes it once more
		require.NoError(t, err)
		require.Less(t, len(again), 6_291_556)
		require.NotContains(t, string(raw), `\u003c`, "no HTML escaping")
		require.Greater(t, next, from)
		seen, from = seen+len(page), next
	}
	assert.Equal(t, len(rows), seen)
	assert.Greater(t, pages, 1)
	page, next, err := resultsPage(rows, 0, 10)
	require.NoError(t, err)
	assert.Len(t, page, 1, "at least one row, whatever its size")
	assert.Equal(t, 1, next)
}
