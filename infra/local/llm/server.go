// Package llm is the offline stand-in for a language model: a real HTTP server
// that speaks the chat-completions protocol, so that the client's whole path runs,
// and rewrites by the small tables of rules.go. It is no model and says so: in its
// log, in the model name of every answer, in GET /v1/models. It answers for that
// model alone, so that none of its texts is ever kept as another model's.
package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode"
)

// Model is the one model that is answered for; a request for another is refused
// with 404 model_not_found.
const Model = "sunhwa-stand-in (rules, no model)"

// What a call takes when it is to look like a model's.
const (
	DefaultMinDelay = 100 * time.Millisecond
	DefaultMaxDelay = 400 * time.Millisecond
)

const maxRequest = 1 << 20 // bytes of one request

// Options are what a Server needs. The zero value answers at once.
type Options struct {
	// A call takes a time between these two that depends on its text alone.
	MinDelay, MaxDelay time.Duration
	Logger             *slog.Logger // nil is slog.Default()
}

// Server is the stand-in. It is an http.Handler and may also listen by itself.
type Server struct {
	o      Options
	mux    *http.ServeMux
	closed chan struct{} // ends held and slow calls
	script script

	mu     sync.Mutex
	server *http.Server
	url    string
}

// New returns a Server that does not listen yet.
func New(o Options) *Server {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	s := &Server{o: o, mux: http.NewServeMux(), closed: make(chan struct{})}
	s.mux.HandleFunc("POST /v1/chat/completions", s.complete)
	s.mux.HandleFunc("GET /v1/models", s.models)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusNotFound, "not_found", "this stand-in has POST /v1/chat/completions and GET /v1/models only")
	})
	return s
}

// Start returns a Server that listens on a free port of 127.0.0.1 and takes the
// default time a call.
func Start(log *slog.Logger) (*Server, error) {
	s := New(Options{MinDelay: DefaultMinDelay, MaxDelay: DefaultMaxDelay, Logger: log})
	if err := s.Start("127.0.0.1:0"); err != nil {
		return nil, err
	}
	return s, nil
}

// Start listens on addr, which must be on the loopback interface, and serves until
// Close. It logs that this is no model.
func (s *Server) Start(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("llm stand-in: address: %w", err)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return errors.New("llm stand-in: listens on a loopback address only")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil {
		return errors.New("llm stand-in: started already")
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("llm stand-in: listen: %w", err)
	}
	srv := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	s.server, s.url = srv, "http://"+l.Addr().String()+"/v1"
	go func() {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.o.Logger.Error("llm stand-in stopped", "error", err)
		}
	}()
	s.o.Logger.Info("offline stand-in for a language model: rewrites by a table of rules, no model",
		"model", Model, "url", s.url)
	return nil
}

// URL returns the base URL for a client, with its version, once started.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.url
}

// Close stops the server and ends every call, the held ones too. A repeat does
// nothing.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closed:
		return nil
	default:
		close(s.closed)
	}
	if s.server == nil {
		return nil
	}
	if err := s.server.Close(); err != nil {
		return fmt.Errorf("llm stand-in: close: %w", err)
	}
	return nil
}

// ServeHTTP serves the API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// request is what the stand-in reads of a chat-completions request
// (https://platform.openai.com/docs/api-reference/chat/create).
type request struct {
	Model    string `json:"model"`
	Messages []struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	} `json:"messages"`
	Stream              bool `json:"stream"`
	MaxTokens           int  `json:"max_tokens"`
	MaxCompletionTokens int  `json:"max_completion_tokens"`
	ResponseFormat      struct {
		Type string `json:"type"`
	} `json:"response_format"`
}

func (s *Server) complete(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		refuse(w, http.StatusRequestEntityTooLarge, "request_too_large", "request too large")
		return
	}
	var req request
	if err := json.Unmarshal(body, &req); err != nil {
		refuse(w, http.StatusBadRequest, "invalid_json", "the request is no chat-completions request")
		return
	}
	text, prompt, ok := req.comment()
	switch {
	case req.Model == "":
		refuse(w, http.StatusBadRequest, "missing_model", "model is missing")
		return
	case req.Model != Model:
		refuse(w, http.StatusNotFound, "model_not_found", "this stand-in has no model but "+Model)
		return
	case !ok:
		refuse(w, http.StatusBadRequest, "missing_message", "a user message is missing")
		return
	case req.Stream:
		refuse(w, http.StatusBadRequest, "unsupported_value", "this stand-in does not stream")
		return
	}
	step, scripted := s.script.next(text)
	if !s.wait(r.Context(), s.delay(text), step.Hold) {
		panic(http.ErrAbortHandler) // the caller has gone, or the server is closing: no answer
	}
	if scripted && !step.rewrites() {
		step.write(w)
		return
	}
	reply(w, req.answer(text, prompt))
}

// comment returns the last user message and how many tokens all messages have.
func (q *request) comment() (text string, tokens int, ok bool) {
	for _, m := range q.Messages {
		tokens += countTokens(m.Content)
		if m.Role == "user" {
			text, ok = m.Content, true
		}
	}
	return text, tokens, ok
}

// answer rewrites text into a chat completion.
func (q *request) answer(text string, promptTokens int) map[string]any {
	content, finish := Soften(text), "stop"
	if strings.HasPrefix(q.ResponseFormat.Type, "json") {
		b, _ := json.Marshal(map[string]string{"text": content}) // a string always marshals
		content = string(b)
	}
	n := countTokens(content)
	limit := q.MaxTokens
	if q.MaxCompletionTokens > 0 {
		limit = q.MaxCompletionTokens
	}
	if limit > 0 && n > limit {
		runes := []rune(content)
		content, finish, n = string(runes[:len(runes)*limit/n]), "length", limit
	}
	return map[string]any{
		"id":      fmt.Sprintf("chatcmpl-standin-%016x", textHash(text)),
		"object":  "chat.completion",
		"created": time.Now().Unix(),
		"model":   Model,
		"choices": []any{map[string]any{
			"index": 0, "finish_reason": finish, "logprobs": nil,
			"message": map[string]any{"role": "assistant", "content": content, "refusal": nil},
		}},
		"usage": map[string]any{"prompt_tokens": promptTokens, "completion_tokens": n, "total_tokens": promptTokens + n},
	}
}

// countTokens estimates as models' tokenizers come out: some four Latin letters or
// one other letter a token.
func countTokens(s string) int {
	quarters := 0
	for _, r := range s {
		if r < unicode.MaxASCII {
			quarters++
		} else {
			quarters += 4
		}
	}
	return (quarters + 3) / 4
}

// delay is what a call with text takes.
func (s *Server) delay(text string) time.Duration {
	spread := s.o.MaxDelay - s.o.MinDelay
	if spread <= 0 {
		return s.o.MinDelay
	}
	return s.o.MinDelay + time.Duration(textHash(text)%uint64(spread))
}

// wait waits for d and then for hold, if there is one. It is false when the caller
// went away or the server is closing.
func (s *Server) wait(ctx context.Context, d time.Duration, hold <-chan struct{}) bool {
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return false
		case <-s.closed:
			return false
		}
	}
	if hold == nil {
		return true
	}
	select {
	case <-hold:
		return true
	case <-ctx.Done():
	case <-s.closed:
	}
	return false
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	reply(w, map[string]any{"object": "list", "data": []any{
		map[string]any{"id": Model, "object": "model", "created": 0, "owned_by": "sunhwa"},
	}})
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the caller has gone when this fails
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// The caller has gone when this fails.
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{
		"message": message, "type": "invalid_request_error", "code": code, "param": nil,
	}})
}
