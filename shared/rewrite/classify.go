package rewrite

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"sunhwa/shared/job"

	openai "github.com/sashabaranov/go-openai"
)

// class says what may be done after a failure.
type class int

const (
	permanent    class = iota // nothing
	transient                 // ask again after a pause, MaxRetries times
	timedOut                  // the call's own time-out: as transient, but once
	invalid                   // an answer that is no result: ask once more
	unauthorized              // 401: ask again with a refreshed key, if there is another
)

// failure is why one request gave no result.
type failure struct {
	class      class
	status     int // 0 when there was no answer
	code, kind string
	vendor     bool // code and kind are the server's: run.safe decides whether they are shown
	retryAfter time.Duration
}

// detail is what may be told: at most 200 bytes.
func (f *failure) detail() string {
	var parts []string
	if f.status != 0 {
		parts = append(parts, "status="+strconv.Itoa(f.status))
	}
	if f.code != "" {
		parts = append(parts, "code="+f.code)
	}
	if f.kind != "" {
		parts = append(parts, "type="+f.kind)
	}
	return strings.Join(parts, " ")
}

// classifyError judges a call that go-openai ended with an error.
func classifyError(ctx context.Context, w *wire, err error) *failure {
	// RequestError first: an error object without a message unwraps to an APIError
	// whose status is 0, and only the RequestError has the true one.
	if re := (*openai.RequestError)(nil); errors.As(err, &re) {
		code, kind := errorObject(re.Body)
		return classifyStatus(re.HTTPStatusCode, code, kind)
	}
	if ae := (*openai.APIError)(nil); errors.As(err, &ae) {
		code, kind := errorObject(w.body)
		return classifyStatus(ae.HTTPStatusCode, code, kind)
	}
	switch {
	case ctx.Err() != nil: // the run looks at its own context first
		return &failure{class: timedOut, status: w.status, code: "timeout"}
	case !w.tried:
		// The library refuses some requests itself (ErrO1MaxTokensDeprecated,
		// ErrReasoningSamplingUnsupported and kin), and a base URL may be none.
		return &failure{class: permanent, code: "request_refused_by_client"}
	case errors.Is(w.err, errTooLarge):
		return &failure{class: invalid, status: w.status, code: "answer_too_large"}
	case w.status == 0:
		return &failure{class: transient, code: connectionCode(w.err)}
	case w.status >= 300: // a redirect: the base URL is wrong
		return classifyStatus(w.status, "", "")
	default: // 2xx whose body is empty, cut off or no JSON
		return &failure{class: transient, status: w.status, code: "body_unreadable"}
	}
}

const codeContentFilter = "content_filter"

func isFilter(code, kind string) bool {
	return code == codeContentFilter || kind == codeContentFilter || code == "content_policy_violation"
}

func isQuota(code, kind string) bool {
	return code == "insufficient_quota" || kind == "insufficient_quota"
}

// classifyStatus judges an HTTP status that is no success, with the code and type
// of its error object.
func classifyStatus(status int, code, kind string) *failure {
	f := &failure{class: permanent, status: status, code: code, kind: kind, vendor: true}
	switch {
	case isFilter(code, kind):
	case status == http.StatusUnauthorized:
		f.class = unauthorized
	case status == http.StatusTooManyRequests:
		// Nobody pays the bill while we wait.
		if !isQuota(code, kind) {
			f.class = transient
		}
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status >= 500:
		f.class = transient
	}
	return f
}

// classifyAnswer judges a 2xx that decoded. Only a choice that ended by itself
// ("stop") goes on to validation.
func classifyAnswer(w *wire, resp openai.ChatCompletionResponse) (openai.ChatCompletionChoice, *failure) {
	none := openai.ChatCompletionChoice{}
	if w.status >= 300 {
		return none, classifyStatus(w.status, "", "")
	}
	if len(resp.Choices) == 0 {
		// An error object in a 200 leaves no choice either.
		code, kind := errorObject(w.body)
		switch {
		case code == "" && kind == "":
			return none, &failure{class: transient, status: w.status, code: "no_choices"}
		case isFilter(code, kind), isQuota(code, kind):
			return none, &failure{class: permanent, status: w.status, code: code, kind: kind, vendor: true}
		}
		return none, &failure{class: transient, status: w.status, code: code, kind: kind, vendor: true}
	}
	choice := resp.Choices[0]
	switch {
	case choice.FinishReason == openai.FinishReasonContentFilter:
		return none, &failure{class: permanent, status: w.status, code: codeContentFilter}
	case strings.TrimSpace(choice.Message.Refusal) != "":
		return none, &failure{class: permanent, status: w.status, code: "refusal"}
	case choice.FinishReason == openai.FinishReasonLength:
		return none, &failure{class: invalid, status: w.status, code: "answer_cut_off"}
	case choice.FinishReason != openai.FinishReasonStop:
		return none, &failure{class: invalid, status: w.status, code: "finish_reason_not_stop"}
	}
	return choice, nil
}

// errorObject reads code and type of {"error":{…}}, whatever kinds of values they
// are. Servers differ: a code may be a number, an error a bare string.
func errorObject(body []byte) (code, kind string) {
	var envelope struct {
		Error json.RawMessage `json:"error"`
	}
	if decodeFirst(body, &envelope) != nil || len(envelope.Error) == 0 || string(envelope.Error) == "null" {
		return "", ""
	}
	var object struct {
		Code  json.RawMessage `json:"code"`
		Type  json.RawMessage `json:"type"`
		Inner struct {
			Code string `json:"code"`
		} `json:"innererror"`
	}
	// A member of an unexpected kind leaves the others readable.
	_ = json.Unmarshal(envelope.Error, &object)
	if object.Inner.Code == "ResponsibleAIPolicyViolation" {
		return codeContentFilter, scalar(object.Type) // Azure's name for it
	}
	code, kind = scalar(object.Code), scalar(object.Type)
	if code == "" && kind == "" {
		code = "error_object"
	}
	return code, kind
}

// decodeFirst reads the first JSON value of body and ignores what follows, as
// go-openai does with answers.
func decodeFirst(body []byte, v any) error {
	return json.NewDecoder(bytes.NewReader(body)).Decode(v)
}

// scalar returns a JSON string's value or a number as it is written; anything
// else is "".
func scalar(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var n json.Number
	if json.Unmarshal(raw, &n) == nil {
		return n.String()
	}
	return ""
}

// connectionCode names what kind of connection error err is. Its text is not
// used: net/http quotes the server's bytes in some of them.
func connectionCode(err error) string {
	var dns *net.DNSError
	var op *net.OpError
	var cert *tls.CertificateVerificationError
	switch {
	case errors.As(err, &dns):
		return "connection_dns"
	case errors.As(err, &cert):
		return "connection_tls"
	case errors.As(err, &op) && op.Op == "dial":
		return "connection_dial"
	}
	return "connection"
}

// reportedTokens reads the usage of an answer, a discarded one's too, whatever
// else is in it. A count below 0 or beyond any model's context is nonsense and
// bounded; a missing total is made up from its parts.
func reportedTokens(body []byte) job.Usage {
	var answer struct {
		Usage struct {
			Prompt     float64 `json:"prompt_tokens"`
			Completion float64 `json:"completion_tokens"`
			Total      float64 `json:"total_tokens"`
		} `json:"usage"`
	}
	var kind *json.UnmarshalTypeError
	if err := decodeFirst(body, &answer); err != nil && !errors.As(err, &kind) {
		return job.Usage{}
	}
	bound := func(n float64) int64 { return int64(max(0, min(n, 1e8))) }
	t := job.Usage{
		PromptTokens:     bound(answer.Usage.Prompt),
		CompletionTokens: bound(answer.Usage.Completion),
		TotalTokens:      bound(answer.Usage.Total),
	}
	if t.TotalTokens == 0 {
		t.TotalTokens = t.PromptTokens + t.CompletionTokens
	}
	return t
}
