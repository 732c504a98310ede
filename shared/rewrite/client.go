// Package rewrite asks a language model to rewrite one comment politely, over any
// OpenAI-compatible API, and decides which answers are results.
//
// A model's error text may carry the comment or the key, so no error and no log
// line of this package holds any of it: only status, code and type, and those
// only when they look like codes.
package rewrite

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"sunhwa/shared/job"
	"sunhwa/shared/rewrite/prompt"

	openai "github.com/sashabaranov/go-openai"
)

// Options are what a Client needs.
type Options struct {
	BaseURL string // of the API, with its version: https://api.openai.com/v1
	// Key returns the API key to send; nil or an empty key sends none. It is
	// called for every Rewrite, side by side: it should cache.
	Key func(ctx context.Context) (string, error)
	// RefreshKey returns the key to use after the API refused one with 401, for
	// it may have been rotated. It is called at most once a Rewrite, side by side;
	// refused lets it fetch once for many. May be nil.
	RefreshKey func(ctx context.Context, refused string) (string, error)
	Timeout    time.Duration // one call's own limit; 0 is 60 s
	MaxRetries int           // bounds the repeats after transient failures of one Rewrite
	Logger     *slog.Logger  // nil is slog.Default()

	// What follows has working defaults; tests replace it.

	Transport http.RoundTripper                                // nil is a pool of the Client's own
	Now       func() time.Time                                 // nil is time.Now
	Sleep     func(ctx context.Context, d time.Duration) error // returns ctx's error when it ends first
	Jitter    func(limit time.Duration) time.Duration          // a random duration in [0, limit)
}

// Client rewrites comments. It is safe for use side by side; all calls share one
// pool of connections.
type Client struct {
	o    Options
	http *http.Client
}

// New returns a Client. It does no I/O.
func New(o Options) *Client {
	if o.Timeout <= 0 {
		o.Timeout = 60 * time.Second
	}
	if o.Key == nil {
		o.Key = func(context.Context) (string, error) { return "", nil }
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if o.Jitter == nil {
		o.Jitter = jitter
	}
	if o.Transport == nil {
		o.Transport = newTransport()
	}
	return &Client{o: o, http: &http.Client{
		Transport: o.Transport,
		// A redirected POST would carry the comment to a host nobody configured.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Rewrite returns text rewritten politely under spec, and what that cost. It
// repeats transient failures inside ctx's deadline.
//
// The usage is right also when there is an error: Calls counts every request
// sent, the tokens are those of every answer that reported them.
//
// Errors: *job.LLMError (an ErrLLM) when the model refused for good, gave no
// valid answer twice, or every retry is used; job.ErrUnknownPrompt when this
// build does not hold spec's prompt or understand its options; ctx's own error
// when ctx ended.
func (c *Client) Rewrite(ctx context.Context, spec job.Spec, text string) (string, job.Usage, error) {
	r, err := c.newRun(spec, text)
	if err != nil {
		return "", job.Usage{}, err
	}
	for {
		if err := ctx.Err(); err != nil {
			return "", r.usage, fmt.Errorf("rewrite: ask the model: %w", err)
		}
		polite, f := r.attempt(ctx)
		if f == nil {
			return polite, r.usage, nil
		}
		wait, again := r.again(ctx, f)
		if err := ctx.Err(); err != nil {
			return "", r.usage, fmt.Errorf("rewrite: ask the model: %w", err)
		}
		attrs := []any{"status", f.status, "code", f.code, "type", f.kind, "call", r.usage.Calls}
		if !again {
			c.o.Logger.WarnContext(ctx, "llm call failed for good", attrs...)
			return "", r.usage, &job.LLMError{Detail: f.detail()}
		}
		c.o.Logger.InfoContext(ctx, "llm call failed, asking again", append(attrs, "wait_ms", wait.Milliseconds())...)
		if wait > 0 {
			if err := c.o.Sleep(ctx, wait); err != nil {
				return "", r.usage, fmt.Errorf("rewrite: wait to ask again: %w", err)
			}
		}
	}
}

// run is one Rewrite: the request it repeats and the budgets it has used.
type run struct {
	c       *Client
	request openai.ChatCompletionRequest
	options prompt.Options
	text    string

	key       string
	haveKey   bool
	refreshed bool // RefreshKey was asked
	transient int  // repeats after transient failures, time-outs among them
	timeouts  int  // repeats after a call's own time-out
	invalid   int  // repeats after an answer that was no result
	usage     job.Usage
}

func (c *Client) newRun(spec job.Spec, text string) (*run, error) {
	o, err := prompt.Decode(spec.Options)
	if err != nil {
		return nil, fmt.Errorf("rewrite: %w: %w", job.ErrUnknownPrompt, err)
	}
	system, ok := prompt.SystemFor(spec.PromptVersion, o)
	if !ok {
		return nil, fmt.Errorf("rewrite: %w", job.ErrUnknownPrompt)
	}
	r := &run{c: c, options: o, text: text}
	r.request = openai.ChatCompletionRequest{
		Model: spec.Model,
		Messages: []openai.ChatCompletionMessage{
			{Role: openai.ChatMessageRoleSystem, Content: system},
			// The comment is a message of its own and nothing else, so that there is
			// no delimiter to close and no instruction to continue.
			{Role: openai.ChatMessageRoleUser, Content: text},
		},
	}
	if o.Temperature != nil {
		r.request.Temperature = temperature(*o.Temperature)
	}
	if o.MaxTokens != nil {
		r.request.MaxTokens = *o.MaxTokens
	}
	if o.MaxCompletionTokens != nil {
		r.request.MaxCompletionTokens = *o.MaxCompletionTokens
	}
	if o.ResponseFormat != "" {
		r.request.ResponseFormat = responseFormat(o.ResponseFormat)
	}
	return r, nil
}

// attempt sends the request once. It returns the polite text, or why there is
// none.
func (r *run) attempt(ctx context.Context) (string, *failure) {
	if !r.haveKey {
		key, err := r.c.o.Key(ctx)
		if err != nil {
			return "", &failure{class: transient, code: "key_unavailable"}
		}
		r.key, r.haveKey = strings.TrimSpace(key), true
	}
	if strings.ContainsFunc(r.key, func(c rune) bool { return c < '!' || c > '~' }) {
		return "", &failure{class: permanent, code: "key_malformed"} // no header can carry it
	}
	callCtx, cancel := context.WithTimeout(ctx, r.c.o.Timeout)
	defer cancel()

	w := &wire{http: r.c.http}
	config := openai.DefaultConfig(r.key)
	config.BaseURL = r.c.o.BaseURL
	config.HTTPClient = w
	resp, err := openai.NewClientWithConfig(config).CreateChatCompletion(callCtx, r.request)
	if w.sent.Load() {
		r.usage.Calls++
	}
	r.usage = r.usage.Plus(reportedTokens(w.body))
	polite, f := r.judge(callCtx, w, resp, err)
	if f != nil {
		f.retryAfter = retryAfter(w.header, r.c.o.Now())
		if f.vendor {
			f.code, f.kind = r.safe(f.code), r.safe(f.kind)
		}
	}
	return polite, f
}

// again decides whether another request is sent after f, and how long to wait
// first.
func (r *run) again(ctx context.Context, f *failure) (wait time.Duration, again bool) {
	switch f.class {
	case unauthorized:
		return 0, r.refreshKey(ctx)
	case invalid:
		r.invalid++
		return 0, r.invalid <= 1
	case timedOut:
		r.timeouts++
		if r.timeouts > 1 {
			return 0, false
		}
	case transient:
	default:
		return 0, false
	}
	if r.transient >= r.c.o.MaxRetries {
		return 0, false
	}
	wait = f.retryAfter + r.c.o.Jitter(backoff(r.transient))
	r.transient++
	return r.capped(ctx, wait), true
}

// capped shortens a wait that would use up what is left until ctx's deadline, so
// that one more call is made: it may succeed, waiting for the deadline cannot. A
// tenth of what is left is kept for that call, one time-out at most.
func (r *run) capped(ctx context.Context, wait time.Duration) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return wait
	}
	left := deadline.Sub(r.c.o.Now())
	return max(0, min(wait, left-min(r.c.o.Timeout, left/10)))
}

// refreshKey asks for another key, once, and reports whether there is one worth
// trying.
func (r *run) refreshKey(ctx context.Context) bool {
	if r.refreshed || r.c.o.RefreshKey == nil {
		return false
	}
	r.refreshed = true
	key, err := r.c.o.RefreshKey(ctx, r.key)
	key = strings.TrimSpace(key)
	if err != nil || key == r.key {
		return false
	}
	r.key = key
	return true
}

// judge turns what came back into a result or a failure.
func (r *run) judge(ctx context.Context, w *wire, resp openai.ChatCompletionResponse, err error) (string, *failure) {
	if err != nil {
		return "", classifyError(ctx, w, err)
	}
	choice, f := classifyAnswer(w, resp)
	if f != nil {
		return "", f
	}
	polite, ok := resultText(choice.Message, r.options, r.text)
	if !ok {
		return "", &failure{class: invalid, status: w.status, code: "answer_format"}
	}
	if reason := Validate(r.text, polite); reason != "" {
		return "", &failure{class: invalid, status: w.status, code: reason}
	}
	return polite, nil
}
