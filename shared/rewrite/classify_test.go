package rewrite

import (
	"strings"
	"testing"

	"sunhwa/shared/job"
	"sunhwa/shared/rewrite/prompt"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every class of answer, against the real client: how many requests are sent when
// the answer never changes, and what is told.
func TestClient_Rewrite_classes(t *testing.T) {
	const retries = 5
	const once, twice, all = 1, 2, 1 + retries
	noChoice := `{"id":"x","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":0,"total_tokens":3}}`
	refusal := strings.Replace(answer("x", "stop", 1, 1).body, `"content":"x"`, `"content":null,"refusal":"no `+harsh+`"`, 1)
	null := strings.Replace(answer("x", "stop", 1, 1).body, `"content":"x"`, `"content":null`, 1)
	for _, c := range []struct {
		name  string
		reply reply
		calls int64
		want  string
	}{
		{"408", refuse(408, "", "timeout"), all, "status=408 type=timeout"},
		{"409", refuse(409, "", ""), all, "status=409 code=error_object"},
		{"429", refuse(429, "rate_limit_exceeded", "requests"), all, "status=429 code=rate_limit_exceeded type=requests"},
		{"500", refuse(500, "", "server_error"), all, "status=500 type=server_error"},
		{"502 html", reply{status: 502, body: "<html>" + harsh}, all, "status=502"},
		{"503 empty", reply{status: 503}, all, "status=503"},
		{"529", refuse(529, "", "overloaded_error"), all, "status=529 type=overloaded_error"},
		{"dropped connection", reply{drop: true}, all, "code=connection"},
		{"empty body", reply{status: 200}, all, "status=200 code=body_unreadable"},
		{"truncated body", reply{status: 200, body: ok(polite).body[:40], cut: true}, all, "status=200 code=body_unreadable"},
		{"html body", reply{status: 200, body: "<html>" + harsh}, all, "status=200 code=body_unreadable"},
		{"no choices", reply{status: 200, body: noChoice}, all, "status=200 code=no_choices"},
		{"error object in 200", reply{status: 200, body: refuse(0, "engine_overloaded", "").body}, all, "status=200 code=engine_overloaded"},
		{"bare error in 200", reply{status: 200, body: `{"error":"` + harsh + `"}`}, all, "status=200 code=error_object"},

		{"400", refuse(400, "unsupported_value", "invalid_request_error"), once, "status=400 code=unsupported_value type=invalid_request_error"},
		{"400 without a message", reply{status: 400, body: `{"error":{"code":"unknown_parameter","type":"invalid_request_error"}}`}, once,
			"status=400 code=unknown_parameter type=invalid_request_error"},
		{"429 without a message", reply{status: 429, body: `{"error":{"code":"rate_limit_exceeded"}}`}, all, "status=429 code=rate_limit_exceeded"},
		{"400 numeric code", reply{status: 400, body: `{"error":{"message":"m","code":1210}}`}, once, "status=400 code=1210"},
		{"400 message of an odd kind", reply{status: 400, body: `{"error":{"message":{"a":1},"code":"unknown_parameter"}}`}, once, "status=400 code=unknown_parameter"},
		{"400 html", reply{status: 400, body: "<html>" + harsh}, once, "status=400"},
		{"400 truncated", reply{status: 400, body: `{"error":{"mess`, cut: true}, once, "status=400"},
		{"403", refuse(403, "", "permission_error"), once, "status=403 type=permission_error"},
		{"404", refuse(404, "model_not_found", ""), once, "status=404 code=model_not_found"},
		{"413", refuse(413, "", ""), once, "status=413 code=error_object"},
		{"429 quota", refuse(429, "insufficient_quota", "insufficient_quota"), once, "status=429 code=insufficient_quota type=insufficient_quota"},
		{"429 quota without a message", reply{status: 429, body: `{"error":{"type":"insufficient_quota"}}`}, once, "status=429 type=insufficient_quota"},
		{"quota in 200", reply{status: 200, body: refuse(0, "insufficient_quota", "").body}, once, "status=200 code=insufficient_quota"},
		{"filter by code", refuse(400, "content_filter", ""), once, "status=400 code=content_filter"},
		{"filter by code in a 500", refuse(500, "content_filter", ""), once, "status=500 code=content_filter"},
		{"filter as Azure says it", reply{status: 400, body: `{"error":{"message":"m","code":null,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}`}, once,
			"status=400 code=content_filter"},
		{"filter by finish reason", answer(polite, "content_filter", 1, 1), once, "status=200 code=content_filter"},
		{"refusal", reply{status: 200, body: refusal}, once, "status=200 code=refusal"},
		{"redirect", reply{status: 307, header: map[string]string{"Location": "http://127.0.0.1:1/"}}, once, "status=307"},

		{"cut off", answer(polite, "length", 1, 1), twice, "status=200 code=answer_cut_off"},
		{"cut off before it began", answer("", "length", 1, 1), twice, "status=200 code=answer_cut_off"},
		{"tool call", answer(polite, "tool_calls", 1, 1), twice, "status=200 code=finish_reason_not_stop"},
		{"no finish reason", answer(polite, "", 1, 1), twice, "status=200 code=finish_reason_not_stop"},
		{"blank", answer(" \n", "stop", 1, 1), twice, "status=200 code=answer_empty"},
		{"null content", reply{status: 200, body: null}, twice, "status=200 code=answer_empty"},
		{"preamble", ok("Here's a rewritten version: " + polite), twice, "status=200 code=answer_preamble"},
		{"other language", ok("이 강의는 많이 아쉬웠습니다."), twice, "status=200 code=answer_language"},
		{"too large", reply{status: 200, body: ok(strings.Repeat("x", maxAnswer)).body}, twice, "status=200 code=answer_too_large"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, c.reply)
			text, usage, err := r.rewrite()
			assert.Empty(t, text)
			assert.Equal(t, c.want, detail(t, err))
			assert.Equal(t, c.calls, usage.Calls)
			assert.Len(t, r.sent(), int(c.calls))
		})
		if c.calls > 1 {
			t.Run(c.name+", then well", func(t *testing.T) {
				text, usage, err := newRig(t, c.reply, ok(polite)).rewrite()
				require.NoError(t, err)
				assert.Equal(t, polite, text)
				assert.EqualValues(t, 2, usage.Calls)
				assert.GreaterOrEqual(t, usage.TotalTokens, int64(15))
			})
		}
	}
}

// What go-openai refuses before it sends anything looks like a connection error
// and must not be repeated.
func TestClient_Rewrite_refusedByTheLibrary(t *testing.T) {
	n, half := 5, float32(0.5)
	for _, c := range []struct {
		name, model string
		o           prompt.Options
	}{
		{"ErrO1MaxTokensDeprecated", "o1-mini", prompt.Options{MaxTokens: &n}},
		{"ErrReasoningModelLimitationsOther", "gpt-5", prompt.Options{Temperature: &half}},
		{"ErrReasoningSamplingUnsupported", "gpt-6-sol", prompt.Options{Temperature: &half}},
		{"ErrChatCompletionInvalidModel", "davinci", prompt.Options{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, ok(polite))
			_, usage, err := New(r.o).Rewrite(t.Context(), job.Spec{Model: c.model, PromptVersion: prompt.Current, Options: c.o.Encode()}, harsh)
			assert.Equal(t, "code=request_refused_by_client", detail(t, err))
			assert.Zero(t, usage)
			assert.Empty(t, r.sent())
			assert.Empty(t, r.waits)
		})
	}
}

func TestClient_Rewrite_baseURLThatIsNone(t *testing.T) {
	for _, u := range []string{"localhost:1/v1", "", "ftp://x/v1", "http://[::1/v1", "://"} {
		r := newRig(t, ok(polite))
		r.o.BaseURL = u
		_, usage, err := r.rewrite()
		assert.Equal(t, "code=request_refused_by_client", detail(t, err), u)
		assert.Zero(t, usage, u)
	}
}

// A server that is not there: nothing was sent, so nothing is counted, and it is
// asked again like any transient failure.
func TestClient_Rewrite_refusedConnection(t *testing.T) {
	r := newRig(t, ok(polite))
	r.server.Close()
	_, usage, err := r.rewrite()
	assert.Equal(t, "code=connection_dial", detail(t, err))
	assert.Zero(t, usage)
	assert.Len(t, r.waits, 5)
}

// Transient failures and invalid answers have budgets of their own, and every
// answer that reported usage is counted, the discarded ones too.
func TestClient_Rewrite_usageCountsDiscardedAnswers(t *testing.T) {
	r := newRig(t,
		refuse(500, "", ""),
		reply{status: 200, body: `{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":1}}`},
		answer(polite, "length", 100, 20),
		reply{status: 200, body: `{"choices":"odd","usage":{"prompt_tokens":2,"completion_tokens":2,"total_tokens":4}}`},
		ok(polite))
	_, usage, err := r.rewrite()
	require.NoError(t, err)
	assert.Equal(t, job.Usage{PromptTokens: 119, CompletionTokens: 28, TotalTokens: 147, Calls: 5}, usage)

	r = newRig(t, answer("", "stop", 100, 20), answer("", "stop", 1, 2))
	_, usage, err = r.rewrite()
	require.Error(t, err)
	assert.Equal(t, job.Usage{PromptTokens: 101, CompletionTokens: 22, TotalTokens: 123, Calls: 2}, usage)
}

func TestReportedTokens_boundsNonsense(t *testing.T) {
	for body, want := range map[string]job.Usage{
		`{"usage":{"prompt_tokens":-5,"completion_tokens":1e300,"total_tokens":-1}}`: {CompletionTokens: 1e8, TotalTokens: 1e8},
		`{"usage":null}`:                     {},
		`{"usage":{"prompt_tokens":"many"}}`: {},
		`{"usage":[]}`:                       {},
		`null`:                               {},
		``:                                   {},
		`{"usage":{"prompt_tokens":3,"completion_tokens":4}} trailing`: {PromptTokens: 3, CompletionTokens: 4, TotalTokens: 7},
	} {
		assert.Equal(t, want, reportedTokens([]byte(body)), body)
	}
}

// A code is the server's text like any other: only what looks like a code and
// holds nothing of the comment or the key is shown.
func TestRun_safe(t *testing.T) {
	r := &run{text: "Your request handling is MARKERcomment, 쓰레기", key: apiKey}
	for in, want := range map[string]string{
		"":                        "",
		"rate_limit_exceeded":     "rate_limit_exceeded",
		"invalid_request_error":   "invalid_request_error", // known, though the comment says "request"
		"weird_code-1.2":          "weird_code-1.2",
		"MARKERcomment":           "other",
		"err_markercomment_x":     "other",
		"handling":                "other",
		"bad_request_x":           "other", // holds a word of the comment
		"쓰레기":                     "other",
		"two words":               "other",
		"line\nbreak":             "other",
		apiKey:                    "other",
		"key_6789":                "other",
		strings.Repeat("a", 64):   strings.Repeat("a", 64),
		strings.Repeat("a", 65):   "other",
		`quote"`:                  "other",
		"insufficient_quota":      "insufficient_quota",
		"context_length_exceeded": "context_length_exceeded",
	} {
		assert.Equal(t, want, r.safe(in), in)
	}
}

func TestClient_Rewrite_codesThatEchoTheCommentAreNotShown(t *testing.T) {
	for _, code := range []string{harsh, "MARKERcomment", apiKey, "x_MARKERcomment_y"} {
		_, _, err := newRig(t, refuse(400, code, code)).rewrite()
		assert.Equal(t, "status=400 code=other type=other", detail(t, err))
	}
}
