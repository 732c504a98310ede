package rewrite

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"sunhwa/shared/job"
)

// FuzzAnswer feeds the client any status and body, for ever the same. Whatever
// comes: no panic, a bounded number of requests, either a text that validation
// takes or an error of the domain whose detail is short and printable, usage that
// is not negative.
func FuzzAnswer(f *testing.F) {
	for _, r := range []reply{
		ok(polite), ok(""), ok("Here's a rewritten version: x"), answer("x", "length", 1, 1), answer("x", "content_filter", -5, 1<<40),
		refuse(400, "content_filter", "x"), refuse(401, "invalid_api_key", ""), refuse(429, "insufficient_quota", ""), refuse(503, harsh, apiKey),
		{status: 200}, {status: 200, body: `{"choices":[]}`}, {status: 200, body: `{"error":"x"}`}, {status: 200, body: `{"error":{"code":[1]}}`},
		{status: 200, body: `{"choices":[{"finish_reason":"stop","message":{"content":[{"type":"text","text":"x"}]}}]}`},
		{status: 200, body: `{"choices":[{"finish_reason":"stop","message":{"content":"<think>"}}],"usage":{"prompt_tokens":1e999}}`},
		{status: 204}, {status: 302}, {status: 400, body: `{"error":{"code":"x"}}`}, {status: 500, body: "<html>"}, {status: 200, body: "null"},
	} {
		f.Add(r.status, []byte(r.body), harsh, "3")
	}
	f.Add(429, []byte(`{"error":{"message":"m","code":4.5e3}}`), "😡", "Sun, 06 Nov 1994 08:49:37 GMT")
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	f.Fuzz(func(t *testing.T, status int, body []byte, text, retry string) {
		status = 200 + (status%400+400)%400
		calls := 0
		s := trip{func(req *http.Request) (*http.Response, error) {
			calls++
			return &http.Response{
				StatusCode: status, Request: req, Header: http.Header{"Retry-After": {retry}},
				Body: io.NopCloser(strings.NewReader(string(body))),
			}, nil
		}}
		c := New(Options{
			BaseURL: "http://llm.test/v1", MaxRetries: 2, Transport: &s, Logger: quiet,
			Key: func(context.Context) (string, error) { return apiKey, nil },
			Sleep: func(_ context.Context, d time.Duration) error {
				if d < 0 || d > 25*time.Hour {
					t.Fatalf("waits %s", d)
				}
				return nil
			},
		})
		got, usage, err := c.Rewrite(t.Context(), spec, text)
		if calls < 1 || calls > 4 || usage.Calls != int64(calls) {
			t.Fatalf("%d requests, %d counted", calls, usage.Calls)
		}
		if usage.PromptTokens < 0 || usage.CompletionTokens < 0 || usage.TotalTokens < 0 {
			t.Fatalf("usage %+v", usage)
		}
		if err == nil {
			if reason := Validate(text, got); reason != "" || strings.TrimSpace(got) == "" {
				t.Fatalf("took %q: %s", got, reason)
			}
			return
		}
		var e *job.LLMError
		if !errors.As(err, &e) || got != "" {
			t.Fatalf("%v, %q", err, got)
		}
		if len(e.Detail) > 200 || strings.Trim(e.Detail, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-= ") != "" {
			t.Fatalf("detail %q", e.Detail)
		}
		if strings.Contains(e.Detail, "MARKER") {
			t.Fatalf("detail %q", e.Detail)
		}
	})
}
