package rewrite

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"sunhwa/shared/rewrite/prompt"

	openai "github.com/sashabaranov/go-openai"
)

var (
	errTooLarge = errors.New("rewrite: answer too large")
	errBaseURL  = errors.New("rewrite: base URL is not http or https")
)

const (
	// maxAnswer bounds one response body in bytes. The longest comment allowed by
	// default is 2,000 characters; its rewrite with all the JSON around it stays
	// far below.
	maxAnswer = 1 << 20
	// poolSize is how many idle connections are kept; LLM_CONCURRENCY is 16 unless
	// configured.
	poolSize = 32
)

// newTransport returns the pool all calls of a Client share. Idle connections go
// early because a Lambda that was frozen wakes with dead ones; HTTP/2 connections
// are pinged for the same reason.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:   5 * time.Second,
		ForceAttemptHTTP2:     true,
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 5 * time.Second},
		MaxIdleConns:          poolSize,
		MaxIdleConnsPerHost:   poolSize,
		IdleConnTimeout:       45 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
}

// wire is what go-openai sends one request through. It remembers what the
// library's errors do not tell: whether anything was sent, the true status, the
// headers, and the body (bounded).
type wire struct {
	http   *http.Client
	tried  bool        // the library let the request through
	sent   atomic.Bool // its headers went out; a connection that was refused sent nothing
	status int         // 0 when there was no answer
	header http.Header
	body   []byte
	err    error // of sending, or of reading the body
}

// Do sends req and reads the whole answer. An answer that ends early is handed on
// as far as it came: its status stays known, and a body cut inside its JSON does
// not decode.
func (w *wire) Do(req *http.Request) (*http.Response, error) {
	if (req.URL.Scheme != "http" && req.URL.Scheme != "https") || req.URL.Host == "" {
		return nil, errBaseURL
	}
	if err := exactZero(req); err != nil {
		return nil, err
	}
	w.tried = true
	// The hook may run on the transport's own goroutine, hence the atomic.
	trace := &httptrace.ClientTrace{WroteHeaders: func() { w.sent.Store(true) }}
	resp, err := w.http.Do(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	if err != nil {
		w.err = err
		return nil, err
	}
	w.sent.Store(true)
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	_ = resp.Body.Close() // the body is read; its close tells nothing more
	if len(body) > maxAnswer {
		body, err = body[:maxAnswer], errTooLarge
	}
	w.status, w.header, w.body, w.err = resp.StatusCode, resp.Header, body, err
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// go-openai drops a temperature of 0, which is the provider's default then and not
// 0. The smallest number it does send stands in for it inside the library, and the
// request is mended here, since some servers divide by what they are given.
const tinyTemperature = math.SmallestNonzeroFloat32

// temperature returns what to hand to go-openai so that t is sent.
func temperature(t float32) float32 {
	if t == 0 {
		return tinyTemperature
	}
	return t
}

// exactZero replaces the stand-in by 0. Inside a JSON string a quotation mark is
// escaped, so the member's name cannot be matched in a comment.
func exactZero(req *http.Request) error {
	if req.Body == nil {
		return nil
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return err
	}
	body = bytes.Replace(body, []byte(`"temperature":1e-45`), []byte(`"temperature":0`), 1)
	req.Body = io.NopCloser(bytes.NewReader(body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.ContentLength = int64(len(body))
	return nil
}

// answerSchema is the object that JSON formats answer with.
const answerSchema = `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`

func responseFormat(f string) *openai.ChatCompletionResponseFormat {
	rf := &openai.ChatCompletionResponseFormat{Type: openai.ChatCompletionResponseFormatType(f)}
	if f == prompt.FormatJSONSchema {
		rf.JSONSchema = &openai.ChatCompletionResponseFormatJSONSchema{
			Name: "rewrite", Schema: json.RawMessage(answerSchema), Strict: true,
		}
	}
	return rf
}

// resultText takes the polite text out of a message. It is false when a JSON
// format was asked for and the message is not that object.
func resultText(m openai.ChatCompletionMessage, o prompt.Options, input string) (string, bool) {
	content := m.Content
	for _, part := range m.MultiContent {
		content += part.Text
	}
	// Some servers leave a reasoning model's thoughts in front of its answer.
	if !strings.Contains(input, "<think>") {
		if head := strings.TrimSpace(content); strings.HasPrefix(head, "<think>") {
			if _, rest, ok := strings.Cut(head, "</think>"); ok {
				content = rest
			}
		}
	}
	if o.JSON() {
		var answer struct {
			Text *string `json:"text"`
		}
		if err := json.Unmarshal([]byte(content), &answer); err != nil || answer.Text == nil {
			return "", false
		}
		content = *answer.Text
	}
	return strings.TrimSpace(content), true
}

// retryAfter reads how long the server asks to wait: Retry-After in seconds or as
// a date (https://www.rfc-editor.org/rfc/rfc9110#field.retry-after), or
// retry-after-ms, which OpenAI and Azure send as well. It is 0 when nothing
// sensible is there, and a day at most.
func retryAfter(h http.Header, now time.Time) time.Duration {
	const most = 24 * time.Hour
	var d time.Duration
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		d = time.Duration(min(ms, float64(most.Milliseconds())) * float64(time.Millisecond))
	} else if v := strings.TrimSpace(h.Get("Retry-After")); v != "" {
		if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 {
			d = time.Duration(min(s, most.Seconds()) * float64(time.Second))
		} else if at, err := http.ParseTime(v); err == nil {
			d = at.Sub(now)
		}
	}
	return max(0, min(d, most))
}

var _ openai.HTTPDoer = (*wire)(nil)
