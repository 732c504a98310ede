package handler

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/shared/job"
)

const startRoute = "POST /targets/{targetId}/jobs"

// textBody puts one JSON value into the place of a comment's text.
func textBody(text string) string { return `{"comments":[{"id":"a","text":` + text + `}]}` }

// TestStart_badInput sends every kind of bad input and checks status, code and
// pointers, and that nothing was created in Redis.
func TestStart_badInput(t *testing.T) {
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	cases := []struct {
		name   string
		target string
		body   string
		want   []string
	}{
		{"empty", "t", "", []string{"#"}},
		{"blank", "t", " \n", []string{"#"}},
		{"no json", "t", "comments", []string{"#"}},
		{"cut off", "t", `{"comments":[{"id":"a"`, []string{"#"}},
		{"trailing comma", "t", `{"comments":[],}`, []string{"#"}},
		{"byte order mark", "t", "\ufeff" + textBody(`"x"`), []string{"#"}},
		{"raw NUL", "t", textBody("\"x\x00\""), []string{"#"}},
		{"NUL after the value", "t", textBody(`"x"`) + "\x00", []string{"#"}},
		{"raw control character", "t", textBody("\"x\x01\""), []string{"#"}},
		{"invalid UTF-8", "t", textBody("\"x\xff\""), []string{"#"}},
		{"surrogate as UTF-8", "t", textBody("\"\xed\xa0\x80\""), []string{"#"}},
		{"trailing data", "t", textBody(`"x"`) + `{}`, []string{"#"}},
		{"trailing bracket", "t", textBody(`"x"`) + `}`, []string{"#"}},
		{"too deep in an unknown member", "t", `{"x":` + nested(32) + `,"comments":[{"id":"a","text":"x"}]}`, []string{"#"}},
		{"far too deep", "t", nested(1500), []string{"#"}},
		{"null", "t", "null", []string{"#"}},
		{"array", "t", "[]", []string{"#"}},
		{"string", "t", `"x"`, []string{"#"}},
		{"number", "t", `1`, []string{"#"}},
		{"no comments", "t", `{}`, []string{"#/comments"}},
		{"null comments", "t", `{"comments":null}`, []string{"#/comments"}},
		{"comments an object", "t", `{"comments":{"0":{"id":"a","text":"x"}}}`, []string{"#/comments"}},
		{"other case", "t", `{"Comments":[{"id":"a","text":"x"}]}`, []string{"#/comments"}},
		{"other case inside", "t", `{"comments":[{"ID":"a","TEXT":"x"}]}`, []string{"#/comments/0/id", "#/comments/0/text"}},
		{"none", "t", `{"comments":[]}`, []string{"#/comments"}},
		{"too many", "t", manyComments(6), []string{"#/comments"}},
		{"null comment", "t", `{"comments":[null]}`, []string{"#/comments/0"}},
		{"comment a string", "t", `{"comments":[{"id":"a","text":"x"},"x"]}`, []string{"#/comments/1"}},
		{"null members", "t", `{"comments":[{"id":null,"text":null}]}`, []string{"#/comments/0/id", "#/comments/0/text"}},
		{"wrong types", "t", `{"comments":[{"id":1,"text":["x"]}],"fresh":"yes"}`, []string{"#/comments/0/id", "#/comments/0/text", "#/fresh"}},
		{"fresh null", "t", `{"comments":[{"id":"a","text":"x"}],"fresh":null}`, []string{"#/fresh"}},
		{"fresh a number", "t", `{"fresh":1,"comments":[{"id":"a","text":"x"}]}`, []string{"#/fresh"}},
		{"empty id", "t", `{"comments":[{"id":"","text":"x"}]}`, []string{"#/comments/0/id"}},
		{"dot id", "t", `{"comments":[{"id":".","text":"x"},{"id":"..","text":"x"}]}`, []string{"#/comments/0/id", "#/comments/1/id"}},
		{"id with a slash, a colon, Hangul", "t", `{"comments":[{"id":"a/b","text":"x"},{"id":"a:b","text":"x"},{"id":"가","text":"x"}]}`, []string{"#/comments/0/id", "#/comments/1/id", "#/comments/2/id"}},
		{"id with a line break", "t", `{"comments":[{"id":"a\n","text":"x"}]}`, []string{"#/comments/0/id"}},
		{"long id", "t", `{"comments":[{"id":"` + strings.Repeat("a", 129) + `","text":"x"}]}`, []string{"#/comments/0/id"}},
		{"repeated id", "t", `{"comments":[{"id":"a","text":"x"},{"id":"b","text":"x"},{"id":"a","text":"y"}]}`, []string{"#/comments/2/id"}},
		{"blank text", "t", textBody(`" \t\n\u3000\u00a0"`), []string{"#/comments/0/text"}},
		{"invisible text", "t", textBody(`"\u200b\u3164\u2800\ufe0f\u115f"`), []string{"#/comments/0/text"}},
		{"empty text", "t", textBody(`""`), []string{"#/comments/0/text"}},
		{"long text", "t", textBody(`"` + strings.Repeat("가", 41) + `"`), []string{"#/comments/0/text"}},
		{"escaped NUL", "t", textBody(`"x\u0000"`), []string{"#/comments/0/text"}},
		{"escaped NUL in an id", "t", `{"comments":[{"id":"a\u0000","text":"x"}]}`, []string{"#/comments/0/id"}},
		{"high surrogate alone", "t", textBody(`"x\ud800"`), []string{"#/comments/0/text"}},
		{"high surrogate before another", "t", textBody(`"\ud83d\ud83d\ude00"`), []string{"#/comments/0/text"}},
		{"high surrogate before an escape", "t", textBody(`"\uD83D\n"`), []string{"#/comments/0/text"}},
		{"low surrogate alone", "t", textBody(`"\uDE00x"`), []string{"#/comments/0/text"}},
		{"surrogates swapped", "t", textBody(`"\ude00\ud83d"`), []string{"#/comments/0/text"}},
		{"NUL in an unknown member", "t", `{"a/b ~":[{"c":"\u0000"}],"comments":[{"id":"a","text":"x"}]}`, []string{"#/a~1b%20~0/0/c"}},
		{"surrogate in a member name", "t", `{"\ud800":1,"comments":[{"id":"a","text":"x"}]}`, []string{"#"}},
		{"bad path", "a:b", textBody(`"x"`), []string{"#/targetId"}},
		{"path of dots", "..", textBody(`"x"`), []string{"#/targetId"}},
		{"path still encoded", "a%20b", textBody(`"x"`), []string{"#/targetId"}},
		{"long path", strings.Repeat("a", 129), textBody(`"x"`), []string{"#/targetId"}},
		{"no path", "", textBody(`"x"`), []string{"#/targetId"}},
		{"bad path and bad json", "a b", `{`, []string{"#/targetId", "#"}},
		{
			"everything at once", "a/b",
			`{"comments":[{"id":"a","text":" "},{"id":"a b"},{"text":"\ud800"},7,{"id":"a","text":"` + strings.Repeat("x", 41) + `"},{"id":"c","text":"x"}],"fresh":[]}`,
			[]string{
				"#/targetId", "#/comments/0/text", "#/comments/1/id", "#/comments/1/text", "#/comments/2/text", "#/comments/2/id",
				"#/comments/3", "#/comments/4/text", "#/comments/4/id", "#/comments", "#/fresh",
			},
		},
		{"the last of two counts", "t", `{"comments":[{"id":"a","text":"x"}],"comments":[{"id":"b","text":""}]}`, []string{"#/comments/0/text"}},
	}
	for _, c := range cases {
		for _, encoded := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/base64=%v", c.name, encoded), func(t *testing.T) {
				w := newWorld(t, "")
				body := withBody(c.body)
				if encoded {
					body = withBase64(c.body)
				}
				p := requireProblem(t, w.call(startRoute, withPath("targetId", c.target), body), 400, codeInvalid)
				assert.ElementsMatch(t, c.want, pointers(p))
				for _, e := range p.Errors {
					assert.NotEmpty(t, e.Detail)
				}
				assert.Empty(t, w.redis.Keys(), "nothing was created")
				assert.Empty(t, w.dispatcher.refs)
			})
		}
	}
}

func manyComments(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`{"id":"c%d","text":"x"}`, i))
	}
	return `{"comments":[` + strings.Join(all, ",") + `]}`
}

func TestStart_goodInput(t *testing.T) {
	cases := []struct {
		name string
		body string
		want startInput
	}{
		{"least", textBody(`"x"`), startInput{comments: []job.Comment{{ID: "a", Text: "x"}}}},
		{"most", manyComments(5), startInput{comments: []job.Comment{{ID: "c0", Text: "x"}, {ID: "c1", Text: "x"}, {ID: "c2", Text: "x"}, {ID: "c3", Text: "x"}, {ID: "c4", Text: "x"}}}},
		{"fresh", " {\"fresh\" : true ,\n\"comments\" : [ { \"text\" : \"x\" , \"id\" : \"A._~-9\" } ] } \r\n", startInput{comments: []job.Comment{{ID: "A._~-9", Text: "x"}}, fresh: true}},
		{"texts as they are", textBody(`" \ud83d\ude00 \"\\\/\b\t\u00e9 <&>\u2028 \\ud800 \\u0000 "`), startInput{comments: []job.Comment{{ID: "a", Text: " 😀 \"\\/\b\té <&>\u2028 \\ud800 \\u0000 "}}}},
		{"length in code points", textBody(`"` + strings.Repeat("😀", 40) + `"`), startInput{comments: []job.Comment{{ID: "a", Text: strings.Repeat("😀", 40)}}}},
		{"unknown members", `{"x":[1,-2.5e3,true,null,{"y":"z"},[]],"comments":[{"id":"a","Text":1,"text":"x","lang":{"a":{}}}],"Comments":null}`, startInput{comments: []job.Comment{{ID: "a", Text: "x"}}}},
		{"nested as deep as allowed", `{"x":` + strings.Repeat("[", 31) + strings.Repeat("]", 31) + `,"comments":[{"id":"a","text":"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["}]}`, startInput{comments: []job.Comment{{ID: "a", Text: strings.Repeat("[", 34)}}}},
		{"the last of two counts", `{"fresh":3,"comments":[{"id":"","text":""}],"fresh":true,"comments":[{"id":1,"id":"b","text":"\ud800","text":"x"}]}`, startInput{comments: []job.Comment{{ID: "b", Text: "x"}}, fresh: true}},
		{"a replacement character is a character", textBody(`"\ufffd"`), startInput{comments: []job.Comment{{ID: "a", Text: "\ufffd"}}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			in, faults, more := parseStart([]byte(c.body), inputLimits{comments: 5, chars: 40})
			require.Empty(t, faults)
			assert.False(t, more)
			assert.Equal(t, c.want, in)
			w := newWorld(t, "")
			response := w.call(startRoute, withPath("targetId", "t"), withBase64(c.body))
			assert.Equal(t, 202, response.StatusCode, response.Body)
		})
	}
}

func TestStart_contentType(t *testing.T) {
	for value, ok := range map[string]bool{
		"": true, "application/json": true, "Application/JSON": true, "application/json; charset=utf-8": true,
		`application/json;charset="UTF-8"`: true, "application/json; version=1; charset=Utf-8": true,
		"text/plain": false, "text/json": false, "application/problem+json": false, "application/x-www-form-urlencoded": false,
		"application/json; charset=euc-kr": false, "application/json; charset=utf-16": false, "application/json; charset=": false,
		"application/json,application/json": false, "json": false, ";": false, "application/json; charset": false,
		"application/jsonx": false, "multipart/form-data; boundary=x": false,
	} {
		t.Run(value, func(t *testing.T) {
			w := newWorld(t, "")
			options := []eventOption{withPath("targetId", "t"), withBody(twoComments)}
			if value != "" {
				options = append(options, withHeader("content-type", value))
			}
			response := w.call(startRoute, options...)
			if ok {
				assert.Equal(t, 202, response.StatusCode, response.Body)
				return
			}
			requireProblem(t, response, 415, codeMediaType)
			assert.Empty(t, w.redis.Keys())
		})
	}
	w := newWorld(t, "")
	requireProblem(t, w.call(startRoute, withPath("targetId", "t"), withHeader("Content-Type", "text/xml"), withBody(twoComments)), 415, codeMediaType)
	requireProblem(t, w.call(startRoute, withPath("targetId", "t"), withHeader("content-encoding", "gzip"), withBody(twoComments)), 415, codeMediaType)
}

func TestStart_tooLarge(t *testing.T) {
	fill := func(n int) string {
		body := `{"pad":"","comments":[{"id":"a","text":"x"}]}`
		return strings.Replace(body, `""`, `"`+strings.Repeat("p", n-len(body))+`"`, 1)
	}
	require.Len(t, fill(4000), 4000)
	for _, encode := range []func(string) eventOption{withBody, withBase64} {
		w := newWorld(t, "")
		p := requireProblem(t, w.call(startRoute, withPath("targetId", "t"), encode(fill(4001))), 413, codeTooLarge)
		assert.Equal(t, "Content Too Large", p.Title)
		assert.Empty(t, w.redis.Keys())
		response := w.call(startRoute, withPath("targetId", "t"), encode(fill(4000)))
		assert.Equal(t, 202, response.StatusCode, "the limit is of decoded bytes: %s", response.Body)
	}
}

func TestStart_notBase64(t *testing.T) {
	w := newWorld(t, "")
	e := eventOf(t, startRoute, withPath("targetId", "t"))
	e.Body, e.IsBase64Encoded = "{not base64}", true
	assert.Equal(t, []string{"#"}, pointers(requireProblem(t, handleOf(t, w.start, e), 400, codeInvalid)))
}

func TestStart_faultsAreBounded(t *testing.T) {
	body := `{"comments":[` + strings.Repeat("0,", 1900) + `0]}`
	w := newWorld(t, "")
	response := w.call(startRoute, withPath("targetId", "t"), withBody(body))
	p := requireProblem(t, response, 400, codeInvalid)
	assert.Len(t, p.Errors, maxFaults)
	assert.Contains(t, p.Detail, "first 100")
	long := strings.Repeat("n", 2000)
	w = newWorld(t, "")
	p = requireProblem(t, w.call(startRoute, withPath("targetId", "t"), withBody(`{"o":{"`+long+`":"\u0000"},"comments":[{"id":"a","text":"x"}]}`)), 400, codeInvalid)
	assert.Equal(t, []string{"#/o"}, pointers(p), "a long name is not echoed")
}

func TestProblem_neverEchoesText(t *testing.T) {
	w := newWorld(t, "")
	response := w.call(startRoute, withPath("targetId", "t"), withBody(textBody(`"`+strings.Repeat(marker, 9)+`"`)))
	requireProblem(t, response, 400, codeInvalid)
	assert.NotContains(t, response.Body, marker)
}

// FuzzStartBody: whatever is accepted keeps every rule and reads the same when an
// ordinary encoder has written it again.
func FuzzStartBody(f *testing.F) {
	for _, seed := range []string{
		twoComments, textBody(`"\ud83d\ude00"`), textBody(`"\ud800"`), textBody(`"\u0000"`), `{"comments":[{"id":"a","id":1}],"fresh":true}`,
		`{"comments":[],"comments":[{"text":"x","id":"a"}]}`, "\ufeff{}", `{"a":[[[[]]]]}`, `[`, `{"\ud800":""}`, ` { } `, `"\\"`, `{"comments":[1e5,-0,null,true]}`,
	} {
		f.Add([]byte(seed))
	}
	limits := inputLimits{comments: 5, chars: 40}
	f.Fuzz(func(t *testing.T, data []byte) {
		in, faults, _ := parseStart(data, limits)
		for _, fault := range faults {
			require.True(t, strings.HasPrefix(fault.Pointer, "#"), fault.Pointer)
			require.NotEmpty(t, fault.Detail)
		}
		require.LessOrEqual(t, len(faults), maxFaults)
		if len(faults) > 0 {
			return
		}
		require.True(t, json.Valid(data), "accepted what is not JSON")
		require.NotEmpty(t, in.comments)
		require.LessOrEqual(t, len(in.comments), limits.comments)
		// What was accepted survives being written and read by the ordinary encoder.
		raw, err := json.Marshal(map[string]any{"comments": in.comments, "fresh": in.fresh})
		require.NoError(t, err)
		again, faults, _ := parseStart(raw, limits)
		require.Empty(t, faults)
		require.Equal(t, in, again)
		var ordinary struct {
			Comments []job.Comment `json:"comments"`
		}
		require.NoError(t, json.Unmarshal(raw, &ordinary))
		require.Equal(t, in.comments, ordinary.Comments)
	})
}
