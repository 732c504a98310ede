// Package client calls Sunhwa's HTTP API as any program would: plain HTTP and
// JSON, pages followed to their end.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"sunhwa/shared/job"
)

// Client calls one API. The zero value of HTTP waits 35 s for an answer, longer
// than an API Gateway does.
type Client struct {
	Base string // without a slash at its end
	HTTP http.Client
	// Tenant, when not empty, goes along as X-Sunhwa-Tenant, which only a local
	// stack with LOCAL_TENANT_HEADER=on looks at.
	Tenant string
}

// New returns a Client of the API at base.
func New(base string) *Client {
	return &Client{Base: base, HTTP: http.Client{Timeout: 35 * time.Second}}
}

// Answer is what came back from one call.
type Answer struct {
	Request string // method and path
	Status  int
	Header  http.Header
	Body    []byte
	Took    time.Duration
}

// Refusal is an answer of 400 and more, with what its problem says.
type Refusal struct {
	*Answer
	Code    string // of the problem; empty in the gateway's own answers
	Detail  string
	Pointed []Pointed
}

// Pointed is one fault of a request.
type Pointed struct {
	Pointer string `json:"pointer"`
	Detail  string `json:"detail"`
}

func (r *Refusal) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s answered %d", r.Request, r.Status)
	for _, s := range []string{r.Code, r.Detail} {
		if s != "" {
			b.WriteString(" " + s)
		}
	}
	for _, p := range r.Pointed {
		fmt.Fprintf(&b, "\n  %s: %s", p.Pointer, p.Detail)
	}
	return b.String()
}

// Call sends one request, in as JSON unless it is nil, and decodes the answer
// into out unless that is nil. An answer of 400 and more is a *Refusal.
func (c *Client) Call(ctx context.Context, method, path string, in, out any) (*Answer, error) {
	var body io.Reader
	if in != nil {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false) // escaped, a text could pass the API's limit of bytes
		if err := e.Encode(in); err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
		body = &b
	}
	r, err := http.NewRequestWithContext(ctx, method, c.Base+path, body)
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.Tenant != "" {
		r.Header.Set("X-Sunhwa-Tenant", c.Tenant)
	}
	began := time.Now()
	resp, err := c.HTTP.Do(r)
	if err != nil {
		return nil, fmt.Errorf("call the API: %w", err)
	}
	defer resp.Body.Close()
	a := &Answer{Request: method + " " + path, Status: resp.StatusCode, Header: resp.Header}
	if a.Body, err = io.ReadAll(resp.Body); err != nil {
		return nil, fmt.Errorf("%s: read the answer: %w", a.Request, err)
	}
	a.Took = time.Since(began)
	if a.Status >= http.StatusBadRequest {
		return a, refusal(a)
	}
	if out != nil {
		if err := json.Unmarshal(a.Body, out); err != nil {
			return a, fmt.Errorf("%s: decode the answer: %w", a.Request, err)
		}
	}
	return a, nil
}

func refusal(a *Answer) *Refusal {
	var p struct {
		Code    string    `json:"code"`
		Detail  string    `json:"detail"`
		Message string    `json:"message"` // of the gateway
		Errors  []Pointed `json:"errors"`
	}
	r := &Refusal{Answer: a}
	if json.Unmarshal(a.Body, &p) == nil {
		r.Code, r.Detail, r.Pointed = p.Code, p.Detail+p.Message, p.Errors
	}
	return r
}

// all reads a list page by page; next returns the cursor of the following page.
func all[V any](ctx context.Context, c *Client, path string, next func(V) *string) (pages []V, answers []*Answer, err error) {
	p := path
	for {
		var v V
		a, err := c.Call(ctx, http.MethodGet, p, nil, &v)
		if err != nil {
			return pages, answers, err
		}
		pages, answers = append(pages, v), append(answers, a)
		cursor := next(v)
		if cursor == nil {
			return pages, answers, nil
		}
		following := path + "?cursor=" + url.QueryEscape(*cursor)
		if following == p {
			return pages, answers, fmt.Errorf("GET %s: the cursor does not move", path)
		}
		p = following
	}
}

func targetPath(id string) string { return "/targets/" + url.PathEscape(id) }

func jobPath(id job.ID) string { return "/jobs/" + url.PathEscape(string(id)) }
