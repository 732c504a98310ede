package llm

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// Step is one scripted answer. A Step that says nothing of an answer (no Status,
// Body or Abort) rewrites as usual, after its Hold.
type Step struct {
	Match      string          // only for comments that contain it; empty: any
	Times      int             // how many calls it answers; 0 is one, below 0 for ever
	Status     int             // 0 with a Body or Abort is 200
	Header     http.Header     // added to the answer
	RetryAfter string          // the Retry-After header, as it is
	Body       string          // the answer's body, as it is
	Abort      bool            // end the connection after Body, which is announced as longer
	Hold       <-chan struct{} // the call is held until this is closed
}

func (t Step) rewrites() bool { return t.Status == 0 && t.Body == "" && !t.Abort }

func (t Step) write(w http.ResponseWriter) {
	if t.Abort && t.Body == "" {
		panic(http.ErrAbortHandler) // ends the connection, and net/http logs nothing
	}
	for name, values := range t.Header {
		for _, v := range values {
			w.Header().Add(name, v)
		}
	}
	if t.RetryAfter != "" {
		w.Header().Set("Retry-After", t.RetryAfter)
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	if t.Abort {
		w.Header().Set("Content-Length", strconv.Itoa(len(t.Body)+1))
	}
	if t.Status != 0 {
		w.WriteHeader(t.Status)
	}
	_, _ = io.WriteString(w, t.Body) // the caller has gone when this fails
	if t.Abort {
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// Script appends steps. Each call takes the first step left that matches its
// comment; a call that none matches is answered by the rules.
func (s *Server) Script(steps ...Step) { s.script.add(steps) }

// Calls returns how many chat-completions calls have come whose comment contains
// match; an empty match counts all.
func (s *Server) Calls(match string) int { return s.script.count(match) }

// script is the steps that are left and the comments that have come.
type script struct {
	mu    sync.Mutex
	steps []Step
	texts []string
}

func (s *script) add(steps []Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range steps {
		if t.Times == 0 {
			t.Times = 1
		}
		s.steps = append(s.steps, t)
	}
}

func (s *script) next(text string) (Step, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.texts = append(s.texts, text)
	for i := range s.steps {
		t := &s.steps[i]
		if t.Times == 0 || !strings.Contains(text, t.Match) {
			continue
		}
		if t.Times > 0 {
			t.Times--
		}
		return *t, true
	}
	return Step{}, false
}

func (s *script) count(match string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, t := range s.texts {
		if strings.Contains(t, match) {
			n++
		}
	}
	return n
}
