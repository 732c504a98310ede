package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/infra/local/input"
	"sunhwa/shared/job"
)

const examples = "../../../events/comments.json"

// standIns is an environment with nothing in it: everything is embedded.
var standIns = map[string]string{}

func TestDemo_wholeFlow(t *testing.T) {
	out := filepath.Join(t.TempDir(), "result.json")
	var screen bytes.Buffer
	require.NoError(t, run(t.Context(), options{input: examples, output: out, environ: standIns}, &screen, io.Discard))

	said := screen.String()
	for _, s := range []string{
		"STAND-IN", "no model", "Two starts at once", `"reused":false`, `"reused":true`, "one job, ",
		"> POST /targets/demo-", "16 of 16", "BEFORE", "AFTER", "/apply", `"applied":16`, "written to " + out, "make run",
	} {
		assert.Contains(t, said, s)
	}
	ids := regexp.MustCompile(`"jobId":"(\w{26})"`).FindAllStringSubmatch(said, -1)
	require.GreaterOrEqual(t, len(ids), 5)
	for _, id := range ids {
		assert.Equal(t, ids[0][1], id[1])
	}

	b, err := os.ReadFile(out)
	require.NoError(t, err)
	var result struct {
		TargetID, JobID, AppliedAt string
		Comments                   []job.PublishedComment
	}
	require.NoError(t, json.Unmarshal(b, &result))
	assert.Equal(t, ids[0][1], result.JobID)
	assert.True(t, strings.HasPrefix(result.TargetID, "demo-"))
	assert.NotEmpty(t, result.AppliedAt)
	in, err := input.Read(examples)
	require.NoError(t, err)
	require.Len(t, result.Comments, len(in))
	for i, c := range result.Comments {
		assert.Equal(t, in[i].ID, c.ID)
		assert.Equal(t, in[i].Text, c.Original)
		assert.NotEmpty(t, c.Text)
	}
}

func TestDemo_warns(t *testing.T) {
	var screen bytes.Buffer
	env := map[string]string{"LLM_MODEL": "gpt-x", "TENANT_CLAIM": "sub", "LOCAL_TENANT_HEADER": "on"}
	require.NoError(t, run(t.Context(), options{input: examples, environ: env}, &screen, io.Discard), "it brings an identity")
	assert.Contains(t, screen.String(), "WARNING   the stand-in for the LLM ignores LLM_MODEL")

	screen.Reset()
	delete(env, "LOCAL_TENANT_HEADER")
	require.ErrorContains(t, run(t.Context(), options{input: examples, environ: env}, &screen, io.Discard), "401")
	assert.Contains(t, screen.String(), "WARNING   TENANT_CLAIM is set")
}

// The examples are what the README promises of them.
func TestExamples(t *testing.T) {
	in, err := input.Read(examples)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(in), 12)
	count := map[string]int{}
	for _, c := range in {
		subject, _, _ := strings.Cut(c.ID, "-")
		count[subject]++
		for name, pattern := range map[string]string{
			"korean": `\p{Hangul}`, "english": `^[^\p{Hangul}]+$`, "quotes": `["']`, "emoji": `[\x{1F300}-\x{1FAFF}]`,
		} {
			if regexp.MustCompile(pattern).MatchString(c.Text) {
				count[name]++
			}
		}
		if utf8.RuneCountInString(c.Text) > 180 {
			count["long"]++
		}
	}
	for _, name := range []string{"course", "report", "product", "korean", "english"} {
		assert.GreaterOrEqual(t, count[name], 4, name)
	}
	for _, name := range []string{"quotes", "emoji", "long"} {
		assert.GreaterOrEqual(t, count[name], 2, name)
	}
}

func TestDemo_failuresAreSaid(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		name = filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
		return name
	}
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error":{"message":"x","code":"bad"}}`, http.StatusBadRequest)
	}))
	defer broken.Close()
	for name, tt := range map[string]struct {
		o    options
		says string
	}{
		"no file":       {options{input: filepath.Join(dir, "none.csv")}, "none.csv: no such file"},
		"bad row":       {options{input: file("bad.csv", "id,text\na,x\na,y\n")}, "row 3"},
		"configuration": {options{input: examples, environ: map[string]string{"JOB_DEADLINE": "1h", "SWEEP_EVERY": "x"}}, "JOB_DEADLINE"},
		"too long": {options{input: file("long.jsonl", `{"id":"ok","text":"x"}`+"\n"+`{"id":"long-one","text":"`+strings.Repeat("x", 2001)+`"}`)},
			"comment long-one of "},
		"model":  {options{input: examples, environ: map[string]string{"LLM_BASE_URL": broken.URL, "LLM_API_KEY": "k", "LLM_MODEL": "m"}}, "LLM_FAILED"},
		"output": {options{input: examples, output: filepath.Join(dir, "no", "where.json")}, "no such file"},
		"redis":  {options{input: examples, environ: map[string]string{"REDIS_ADDR": "127.0.0.1:1"}}, "REDIS_ADDR 127.0.0.1:1 does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.o.environ == nil {
				tt.o.environ = standIns
			}
			require.ErrorContains(t, run(t.Context(), tt.o, io.Discard, io.Discard), tt.says)
		})
	}
}

func TestWrap(t *testing.T) {
	tests := []struct {
		text  string
		width int
		want  []string
	}{
		{"a bb ccc", 4, []string{"a bb", "ccc"}},
		{"강의가 최악", 6, []string{"강의가", "최악"}},
		{"강의가최악", 5, []string{"강의", "가최", "악"}},
		{"a\n\nb", 9, []string{"a", "", "b"}},
		{"\x1b[31mred\u009b", 20, []string{"[31mred"}},
		{"", 5, []string{""}},
	}
	for _, tt := range tests {
		got := wrap(tt.text, tt.width)
		assert.Equal(t, tt.want, got, tt.text)
		for _, line := range got {
			assert.LessOrEqual(t, uniseg.StringWidth(line), tt.width)
		}
	}
	assert.Equal(t, 10, uniseg.StringWidth(pad("순화 😡", 10)))
}

func TestScreen_sideBySide_manyComments(t *testing.T) {
	var b bytes.Buffer
	rs := make([]job.Rewritten, maxShown+7)
	for i := range rs {
		rs[i] = job.Rewritten{ID: "x", Before: "b", After: "a"}
	}
	newScreen(&b).sideBySide(rs)
	assert.Contains(t, b.String(), "and 7 more")
}
