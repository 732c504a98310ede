package rewrite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sunhwa/shared/job"
	"sunhwa/shared/rewrite/prompt"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	harsh  = "This course is a MARKERcomment waste of time."
	polite = "This course did not make good use of the time."
	apiKey = "sk-MARKERkey-0123456789"
)

// reply is one answer of a scripted server. Cut sends the body but announces more
// of it; drop closes the connection without an answer.
type reply struct {
	status int
	header map[string]string
	body   string
	cut    bool
	drop   bool
}

func ok(content string) reply { return answer(content, "stop", 10, 5) }

func answer(content, finish string, in, out int) reply {
	b, _ := json.Marshal(map[string]any{
		"id": "x", "object": "chat.completion", "model": "m",
		"choices": []any{map[string]any{
			"index": 0, "finish_reason": finish,
			"message": map[string]any{"role": "assistant", "content": content},
		}},
		"usage": map[string]any{"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out},
	})
	return reply{status: 200, body: string(b)}
}

func refuse(status int, code, kind string) reply {
	b, _ := json.Marshal(map[string]any{"error": map[string]any{
		"message": "you said: " + harsh + " with " + apiKey, "code": code, "type": kind,
	}})
	return reply{status: status, body: string(b)}
}

// rig is a Client against a server that gives the replies in order and the last
// one for ever; it records requests, waits and the log.
type rig struct {
	t       *testing.T
	mu      sync.Mutex
	replies []reply
	bodies  []map[string]any
	auths   []string
	waits   []time.Duration
	log     bytes.Buffer
	server  *httptest.Server
	o       Options
}

func newRig(t *testing.T, replies ...reply) *rig {
	r := &rig{t: t, replies: replies}
	r.server = httptest.NewServer(r)
	t.Cleanup(r.server.Close)
	r.o = Options{
		BaseURL:    r.server.URL + "/v1",
		Key:        func(context.Context) (string, error) { return apiKey + "\n", nil },
		Timeout:    time.Minute,
		MaxRetries: 5,
		Logger:     slog.New(slog.NewJSONHandler(&r.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Jitter:     func(limit time.Duration) time.Duration { return limit },
		Sleep: func(ctx context.Context, d time.Duration) error {
			r.waits = append(r.waits, d)
			return ctx.Err()
		},
	}
	return r
}

func (r *rig) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var body map[string]any
	raw, _ := io.ReadAll(req.Body)
	assert.NoError(r.t, json.Unmarshal(raw, &body))
	assert.Equal(r.t, "/v1/chat/completions", req.URL.Path)
	rep := r.replies[min(len(r.bodies), len(r.replies)-1)]
	r.bodies = append(r.bodies, body)
	r.auths = append(r.auths, req.Header.Get("Authorization"))
	if rep.drop {
		panic(http.ErrAbortHandler)
	}
	for k, v := range rep.header {
		w.Header().Set(k, v)
	}
	w.Header().Set("Content-Type", "application/json")
	if rep.cut {
		w.Header().Set("Content-Length", strconv.Itoa(len(rep.body)+100))
	}
	w.WriteHeader(rep.status)
	_, _ = io.WriteString(w, rep.body)
	if rep.cut {
		assert.NoError(r.t, http.NewResponseController(w).Flush())
		panic(http.ErrAbortHandler)
	}
}

// sent returns the bodies of all requests so far.
func (r *rig) sent() []map[string]any {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bodies
}

// keys returns the Authorization headers of all requests so far.
func (r *rig) keys() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.auths
}

var spec = job.Spec{Model: "test-model", PromptVersion: prompt.Current, Options: prompt.Options{}.Encode()}

func (r *rig) rewrite() (string, job.Usage, error) {
	r.t.Helper()
	text, usage, err := New(r.o).Rewrite(r.t.Context(), spec, harsh)
	r.noMarker(err)
	return text, usage, err
}

// noMarker checks that neither the comment nor the key is in the error or the log.
func (r *rig) noMarker(err error) {
	r.t.Helper()
	assert.NotContains(r.t, r.log.String(), "MARKER")
	if err != nil {
		assert.NotContains(r.t, err.Error(), "MARKER")
	}
}

func detail(t *testing.T, err error) string {
	t.Helper()
	require.ErrorIs(t, err, job.ErrLLM)
	var e *job.LLMError
	require.ErrorAs(t, err, &e)
	assert.LessOrEqual(t, len(e.Detail), 200)
	return e.Detail
}

func TestClient_Rewrite_sendsTheCommentAsDataAndOnlyWhatIsSet(t *testing.T) {
	r := newRig(t, ok(" "+polite+"\n"))
	text, usage, err := r.rewrite()
	require.NoError(t, err)
	assert.Equal(t, polite, text)
	assert.Equal(t, job.Usage{PromptTokens: 10, CompletionTokens: 5, TotalTokens: 15, Calls: 1}, usage)
	require.Len(t, r.sent(), 1)
	system, _ := prompt.System(prompt.Current)
	assert.Equal(t, map[string]any{
		"model": "test-model", "stream": false,
		"messages": []any{
			map[string]any{"role": "system", "content": system},
			map[string]any{"role": "user", "content": harsh},
		},
	}, r.sent()[0])
	assert.NotContains(t, system, harsh)
	assert.Equal(t, []string{"Bearer " + apiKey}, r.keys())
}

func TestClient_Rewrite_noKeyNoHeader(t *testing.T) {
	r := newRig(t, ok(polite))
	r.o.Key = nil
	_, _, err := r.rewrite()
	require.NoError(t, err)
	assert.Equal(t, []string{""}, r.keys())
}

func TestClient_Rewrite_sendsSetOptions(t *testing.T) {
	ptr := func(n int) *int { return &n }
	temp := func(f float32) *float32 { return &f }
	for _, c := range []struct {
		o    prompt.Options
		want map[string]any
	}{
		{prompt.Options{Temperature: temp(0)}, map[string]any{"temperature": 0.0}},
		{prompt.Options{Temperature: temp(0.5), MaxTokens: ptr(7)}, map[string]any{"temperature": 0.5, "max_tokens": 7.0}},
		{prompt.Options{MaxCompletionTokens: ptr(9), ResponseFormat: "text"},
			map[string]any{"max_completion_tokens": 9.0, "response_format": map[string]any{"type": "text"}}},
	} {
		r := newRig(t, ok(polite))
		s := spec
		s.Options = c.o.Encode()
		// The member's name inside a comment is data and stays as it is.
		text := `set "temperature":1e-45 you idiots, this is a waste`
		_, _, err := New(r.o).Rewrite(t.Context(), s, text)
		require.NoError(t, err)
		got := r.sent()[0]
		assert.Equal(t, text, got["messages"].([]any)[1].(map[string]any)["content"])
		delete(got, "model")
		delete(got, "messages")
		delete(got, "stream")
		assert.Equal(t, c.want, got)
	}
}

func TestClient_Rewrite_jsonFormatsAnswerWithAnObject(t *testing.T) {
	for _, format := range []string{prompt.FormatJSONObject, prompt.FormatJSONSchema} {
		r := newRig(t, ok("no object"), ok(`{"text":" `+polite+`"}`))
		s := spec
		s.Options = prompt.Options{ResponseFormat: format}.Encode()
		text, usage, err := New(r.o).Rewrite(t.Context(), s, harsh)
		require.NoError(t, err)
		assert.Equal(t, polite, text)
		assert.EqualValues(t, 2, usage.Calls)
		sent := r.sent()[0]["response_format"].(map[string]any)
		assert.Equal(t, format, sent["type"])
		assert.Equal(t, format == prompt.FormatJSONSchema, sent["json_schema"] != nil)
		assert.Contains(t, r.sent()[0]["messages"].([]any)[0].(map[string]any)["content"], "JSON")

		r = newRig(t, ok(`{"answer":"x"}`))
		_, _, err = New(r.o).Rewrite(t.Context(), s, harsh)
		assert.Equal(t, "status=200 code=answer_format", detail(t, err))
	}
}

func TestClient_Rewrite_unknownPromptOrOptions(t *testing.T) {
	r := newRig(t, ok(polite))
	for _, s := range []job.Spec{
		{Model: "m", PromptVersion: "v999", Options: "{}"},
		{Model: "m", PromptVersion: prompt.Current, Options: `{"topP":1}`},
	} {
		_, usage, err := New(r.o).Rewrite(t.Context(), s, harsh)
		require.ErrorIs(t, err, job.ErrUnknownPrompt)
		assert.NotErrorIs(t, err, job.ErrLLM)
		assert.Zero(t, usage)
	}
	assert.Empty(t, r.sent())
}

func TestClient_Rewrite_sideBySide(t *testing.T) {
	r := newRig(t, ok(polite))
	c := New(r.o)
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			text, _, err := c.Rewrite(t.Context(), spec, harsh)
			assert.NoError(t, err)
			assert.Equal(t, polite, text)
		})
	}
	wg.Wait()
	assert.Len(t, r.sent(), 32)
}

func TestClient_Rewrite_refreshesAKeyOnce(t *testing.T) {
	denied := refuse(401, "invalid_api_key", "invalid_request_error")
	for _, c := range []struct {
		name    string
		replies []reply
		hook    func(string) (string, error)
		calls   int
		ok      bool
	}{
		{"rotated", []reply{denied, ok(polite)}, func(string) (string, error) { return "sk-new", nil }, 2, true},
		{"still refused", []reply{denied}, func(string) (string, error) { return "sk-new", nil }, 2, false},
		{"same key", []reply{denied, ok(polite)}, func(old string) (string, error) { return old, nil }, 1, false},
		{"hook fails", []reply{denied, ok(polite)}, func(string) (string, error) { return "", errors.New(apiKey) }, 1, false},
		{"no hook", []reply{denied, ok(polite)}, nil, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, c.replies...)
			asked := 0
			if c.hook != nil {
				r.o.RefreshKey = func(_ context.Context, refused string) (string, error) {
					asked++
					assert.Equal(t, apiKey, refused)
					return c.hook(refused)
				}
			}
			_, usage, err := r.rewrite()
			assert.EqualValues(t, c.calls, usage.Calls)
			if c.ok {
				require.NoError(t, err)
				assert.Equal(t, []string{"Bearer " + apiKey, "Bearer sk-new"}, r.keys())
			} else {
				assert.Equal(t, "status=401 code=invalid_api_key type=invalid_request_error", detail(t, err))
			}
			assert.LessOrEqual(t, asked, 1)
			assert.Empty(t, r.waits)
		})
	}
}

func TestClient_Rewrite_keyUnavailableOrMalformed(t *testing.T) {
	r := newRig(t, ok(polite))
	asked := 0
	r.o.Key = func(context.Context) (string, error) {
		if asked++; asked == 1 {
			return "", errors.New(apiKey)
		}
		return apiKey, nil
	}
	_, usage, err := r.rewrite()
	require.NoError(t, err)
	assert.EqualValues(t, 1, usage.Calls)
	assert.Len(t, r.waits, 1)

	r = newRig(t, ok(polite))
	r.o.Key = func(context.Context) (string, error) { return "two\nlines", nil }
	_, usage, err = r.rewrite()
	assert.Equal(t, "code=key_malformed", detail(t, err))
	assert.Zero(t, usage)
}

func TestClient_Rewrite_contextStaysVisible(t *testing.T) {
	r := newRig(t, ok(polite))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, usage, err := New(r.o).Rewrite(ctx, spec, harsh)
	require.ErrorIs(t, err, context.Canceled)
	assert.NotErrorIs(t, err, job.ErrLLM)
	assert.Zero(t, usage)

	// Ended while waiting for the next try: what was paid is still counted.
	r = newRig(t, refuse(503, "", ""))
	ctx, cancel = context.WithCancel(t.Context())
	r.o.Sleep = func(ctx context.Context, _ time.Duration) error { cancel(); return ctx.Err() }
	_, usage, err = New(r.o).Rewrite(ctx, spec, harsh)
	require.ErrorIs(t, err, context.Canceled)
	assert.EqualValues(t, 1, usage.Calls)
}

func TestClient_Rewrite_takesPartsAndDropsThoughts(t *testing.T) {
	parts := strings.Replace(ok("CONTENT").body, `"CONTENT"`, `[{"type":"text","text":"`+polite+`"}]`, 1)
	for _, rep := range []reply{{status: 200, body: parts}, ok("<think>they are angry</think>\n\n" + polite)} {
		text, _, err := newRig(t, rep).rewrite()
		require.NoError(t, err)
		assert.Equal(t, polite, text)
	}
}
