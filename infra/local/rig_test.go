package local_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sunhwa/infra/local"
	"sunhwa/infra/local/client"
	"sunhwa/infra/local/invoke"
	"sunhwa/shared/config"
	"sunhwa/shared/job"
)

// deadlock is how long a test waits for an event that must come.
const deadlock = 5 * time.Minute

// apiKey is what the model of the tests is called with; no log may hold it.
const apiKey = "sk-KEY-MARKER-4711"

// softened is what the model of the tests makes of a text.
func softened(text string) string { return text + " 🙂" }

// model is an OpenAI-compatible server that answers at once.
type model struct {
	*httptest.Server
	calls atomic.Int64
	// fail, when set, decides the status of a call by its comment; 0 answers it.
	fail func(text string) int
	// hold, when set, keeps every call until it is closed.
	hold chan struct{}
}

func newModel(t *testing.T) *model {
	t.Helper()
	m := &model{}
	m.Server = httptest.NewServer(http.HandlerFunc(m.serve))
	t.Cleanup(m.Close)
	return m
}

func (m *model) serve(w http.ResponseWriter, r *http.Request) {
	m.calls.Add(1)
	var in struct {
		Model    string `json:"model"`
		Messages []struct {
			Content string `json:"content"`
		} `json:"messages"`
	}
	if json.NewDecoder(r.Body).Decode(&in) != nil || r.Header.Get("Authorization") != "Bearer "+apiKey || in.Model != "test" {
		http.Error(w, "not the request that was expected", http.StatusBadRequest)
		return
	}
	text := in.Messages[len(in.Messages)-1].Content
	if m.hold != nil {
		select {
		case <-m.hold:
		case <-r.Context().Done():
			return
		}
	}
	if m.fail != nil {
		if status := m.fail(text); status != 0 {
			w.WriteHeader(status)
			// As real ones do: the error's text carries what was sent.
			_, _ = fmt.Fprintf(w, `{"error":{"message":%q,"type":"invalid_request_error","code":"bad"}}`, text+" "+apiKey)
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"id": "x", "object": "chat.completion", "model": in.Model,
		"choices": []any{map[string]any{"index": 0, "finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": softened(text)}}},
		"usage":   map[string]any{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
	})
}

// logs is a log that can be searched while it is written.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// settings loads the configuration of a stack with everything embedded, on a
// free port, its model m.
func settings(t *testing.T, m *model, more map[string]string) *config.Local {
	t.Helper()
	env := map[string]string{
		"HTTP_ADDR": "127.0.0.1:0", "LLM_BASE_URL": m.URL + "/v1", "LLM_API_KEY": apiKey, "LLM_MODEL": "test",
		"LOCAL_INVOKE_RETRY_DELAYS": "1ms,1ms",
	}
	maps.Copy(env, more)
	cfg, err := config.Load[config.Local](env)
	require.NoError(t, err)
	return cfg
}

type wrap = func(name string, f invoke.Function) invoke.Function

func up(t *testing.T, cfg *config.Local, w io.Writer, wrap wrap) (*local.Stack, *client.Client) {
	t.Helper()
	if w == nil {
		w = io.Discard
	}
	log := slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s, err := local.Start(t.Context(), local.Options{Config: cfg, Logger: log, Wrap: wrap})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), deadlock)
		defer cancel()
		_ = s.Close(ctx) // a test that looks at it closes the stack itself
	})
	return s, client.New(s.URL())
}

// ended waits for the job's end.
func ended(t *testing.T, c *client.Client, id job.ID) client.Job {
	t.Helper()
	var j client.Job
	require.Eventually(t, func() bool {
		var err error
		j, _, err = c.Job(t.Context(), id)
		return err == nil && j.Status.Terminal()
	}, deadlock, 20*time.Millisecond)
	return j
}

func numbered(n int) []job.Comment {
	cs := make([]job.Comment, n)
	for i := range cs {
		cs[i] = job.Comment{ID: fmt.Sprintf("c%d", i), Text: fmt.Sprintf("댓글 %d: this is \"terrible\"", i)}
	}
	return cs
}

func refused(t *testing.T, err error, status int, code string) {
	t.Helper()
	var r *client.Refusal
	require.ErrorAs(t, err, &r)
	require.Equal(t, status, r.Status, r.Error())
	require.Equal(t, code, r.Code)
}

func counting(name string, n *atomic.Int32) wrap {
	return func(of string, f invoke.Function) invoke.Function {
		if of != name {
			return f
		}
		return function(func(ctx context.Context, p []byte) ([]byte, error) {
			n.Add(1)
			return f.Invoke(ctx, p)
		})
	}
}

type function func(context.Context, []byte) ([]byte, error)

func (f function) Invoke(ctx context.Context, p []byte) ([]byte, error) { return f(ctx, p) }

// failing makes the worker fail its first n deliveries.
func failing(n int32, seen *atomic.Int32) wrap {
	return func(name string, f invoke.Function) invoke.Function {
		if name != "worker" {
			return f
		}
		return function(func(ctx context.Context, p []byte) ([]byte, error) {
			if seen.Add(1) <= n {
				return nil, errors.New("killed")
			}
			return f.Invoke(ctx, p)
		})
	}
}
