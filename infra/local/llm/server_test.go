package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"sunhwa/shared/job"
	"sunhwa/shared/rewrite"
	"sunhwa/shared/rewrite/prompt"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func started(t *testing.T) *Server {
	t.Helper()
	s := New(Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, s.Start("127.0.0.1:0"))
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

func client(s *Server, retries int) *rewrite.Client {
	return rewrite.New(rewrite.Options{
		BaseURL: s.URL(), MaxRetries: retries, Logger: slog.New(slog.DiscardHandler),
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	})
}

var spec = job.Spec{Model: Model, PromptVersion: prompt.Current, Options: prompt.Options{}.Encode()}

// The whole path: the real client, the protocol, the rules, the validation.
func TestServer_throughTheRealClient(t *testing.T) {
	s := started(t)
	for _, options := range []prompt.Options{{}, {ResponseFormat: prompt.FormatJSONObject}, {ResponseFormat: prompt.FormatJSONSchema}} {
		sp := spec
		sp.Options = options.Encode()
		texts := demoTexts(t)
		if options.ResponseFormat == "" {
			texts = append(texts, harshTexts...)
		}
		for _, text := range texts {
			got, usage, err := client(s, 0).Rewrite(t.Context(), sp, text)
			require.NoError(t, err, text)
			assert.Equal(t, Soften(text), got)
			assert.EqualValues(t, 1, usage.Calls)
			assert.Positive(t, usage.CompletionTokens)
			assert.Equal(t, usage.TotalTokens, usage.PromptTokens+usage.CompletionTokens)
			assert.Greater(t, usage.PromptTokens, usage.CompletionTokens/2)
		}
	}
}

func post(t *testing.T, s *Server, body string) (int, map[string]any) {
	t.Helper()
	rec := httptest.NewRecorder()
	s.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions", strings.NewReader(body)))
	var v map[string]any
	require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &v))
	return rec.Code, v
}

func TestServer_saysWhatItIs(t *testing.T) {
	var log bytes.Buffer
	s := New(Options{Logger: slog.New(slog.NewJSONHandler(&log, nil))})
	require.NoError(t, s.Start("127.0.0.1:0"))
	defer func() { assert.NoError(t, s.Close()) }()
	assert.Contains(t, log.String(), "stand-in")
	assert.Contains(t, log.String(), "no model")

	code, v := post(t, s, `{"model":"`+Model+`","messages":[{"role":"user","content":"Trash."}]}`)
	assert.Equal(t, 200, code)
	assert.Equal(t, "sunhwa-stand-in (rules, no model)", v["model"])

	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+"/models", nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.Contains(t, string(b), Model)
	assert.NotContains(t, log.String(), "Trash")
}

func TestServer_refusesWhatIsNoRequest(t *testing.T) {
	s := New(Options{})
	for body, code := range map[string]string{
		`nonsense`: "invalid_json",
		`{"messages":[{"role":"user","content":"x"}]}`:                                       "missing_model",
		`{"model":"` + Model + `","messages":[{"role":"system","content":"x"}]}`:             "missing_message",
		`{"model":"` + Model + `","stream":true,"messages":[{"role":"user","content":"x"}]}`: "unsupported_value",
	} {
		status, v := post(t, s, body)
		assert.Equal(t, 400, status, body)
		assert.Equal(t, code, v["error"].(map[string]any)["code"], body)
	}
	rec := httptest.NewRecorder()
	s.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/embeddings", nil))
	assert.Equal(t, 404, rec.Code)
}

// A job that is fixed to another model must not be served here: its answers would
// be kept as that model's.
func TestServer_answersForNoOtherModel(t *testing.T) {
	s := started(t)
	code, v := post(t, s, `{"model":"gpt-x","messages":[{"role":"user","content":"Trash."}]}`)
	assert.Equal(t, 404, code)
	e := v["error"].(map[string]any)
	assert.Equal(t, "model_not_found", e["code"])
	assert.Equal(t, "invalid_request_error", e["type"])
	assert.Contains(t, e, "param")
	assert.Contains(t, e["message"], Model)

	other := spec
	other.Model = "gpt-x"
	_, usage, err := client(s, 4).Rewrite(t.Context(), other, "This is garbage.")
	require.ErrorIs(t, err, job.ErrLLM)
	assert.EqualValues(t, 1, usage.Calls, "a repeat would not help")
	assert.ErrorContains(t, err, "model_not_found")
}

// sam local runs the functions on this stand-in.
func TestModel_isWhatSamLocalAsksFor(t *testing.T) {
	b, err := os.ReadFile("../../env.local.json")
	require.NoError(t, err)
	var env map[string]map[string]string
	require.NoError(t, json.Unmarshal(b, &env))
	assert.Equal(t, Model, env["StartFunction"]["LLM_MODEL"])
}

func TestServer_tokenLimitCutsOff(t *testing.T) {
	_, v := post(t, New(Options{}), `{"model":"`+Model+`","max_tokens":5,"messages":[{"role":"user","content":"This report is garbage and nobody reads it."}]}`)
	choice := v["choices"].([]any)[0].(map[string]any)
	assert.Equal(t, "length", choice["finish_reason"])
	assert.EqualValues(t, 5, v["usage"].(map[string]any)["completion_tokens"])
}

func TestServer_delayIsBelievableAndDependsOnTheTextAlone(t *testing.T) {
	s := New(Options{MinDelay: DefaultMinDelay, MaxDelay: DefaultMaxDelay})
	seen := map[time.Duration]bool{}
	for _, text := range harshTexts {
		d := s.delay(text)
		assert.GreaterOrEqual(t, d, 100*time.Millisecond)
		assert.Less(t, d, 400*time.Millisecond)
		assert.Equal(t, d, s.delay(text))
		seen[d] = true
	}
	assert.Greater(t, len(seen), len(harshTexts)/2)
	assert.Zero(t, New(Options{}).delay("x"))
}

func TestServer_scriptedFailures(t *testing.T) {
	s := started(t)
	s.Script(
		Step{Match: "poison", Times: -1, Status: 400, Body: `{"error":{"message":"m","code":"content_filter"}}`},
		Step{Status: 429, RetryAfter: "1", Body: `{"error":{"message":"m","code":"rate_limit_exceeded"}}`},
		Step{Abort: true},
		Step{Status: 200, Body: `{"choices":[{"fin`, Abort: true},
		Step{Status: 503},
	)
	_, usage, err := client(s, 4).Rewrite(t.Context(), spec, "This is garbage.")
	require.NoError(t, err)
	assert.EqualValues(t, 5, usage.Calls)
	for range 2 {
		_, usage, err = client(s, 4).Rewrite(t.Context(), spec, "This is poison garbage.")
		require.ErrorIs(t, err, job.ErrLLM)
		assert.EqualValues(t, 1, usage.Calls)
	}
	assert.Equal(t, 7, s.Calls(""))
	assert.Equal(t, 2, s.Calls("poison"))
}

func TestServer_holdsUntilReleased(t *testing.T) {
	s := started(t)
	hold := make(chan struct{})
	s.Script(Step{Match: "slow", Hold: hold})
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _, err := client(s, 0).Rewrite(t.Context(), spec, "slow garbage")
		assert.NoError(t, err)
	})
	require.Eventually(t, func() bool { return s.Calls("slow") == 1 }, 10*time.Second, time.Millisecond)
	_, _, err := client(s, 0).Rewrite(t.Context(), spec, "other garbage")
	require.NoError(t, err, "others are not held")
	close(hold)
	wg.Wait()
}

func TestServer_Close_endsHeldCalls(t *testing.T) {
	s := started(t)
	s.Script(Step{Hold: make(chan struct{})})
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _, err := client(s, 0).Rewrite(t.Context(), spec, "held garbage")
		assert.ErrorIs(t, err, job.ErrLLM)
	})
	require.Eventually(t, func() bool { return s.Calls("") == 1 }, 10*time.Second, time.Millisecond)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	wg.Wait()
}

func TestServer_Start_loopbackOnly(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "example.com:80", "127.0.0.1"} {
		assert.Error(t, New(Options{}).Start(addr), addr)
	}
	s := started(t)
	assert.Error(t, s.Start("127.0.0.1:0"))
}
