package local_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/infra/local"
	"sunhwa/shared/config"
	"sunhwa/shared/job"
)

// warned finds all words in one of the stack's warnings, in its log, and on its
// page.
func warned(t *testing.T, s *local.Stack, log *logs, words ...string) {
	t.Helper()
	resp, err := http.Get(s.URL() + "/")
	require.NoError(t, err)
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	for _, w := range s.Warnings() {
		has := true
		for _, word := range words {
			has = has && strings.Contains(w, word)
		}
		if has {
			assert.Contains(t, string(page), "WARNING: "+w)
			assert.Contains(t, log.String(), `level=WARN msg="`+w+`"`)
			return
		}
	}
	assert.Failf(t, "no such warning", "%q in %q", words, s.Warnings())
}

func TestStack_warnsOfWhatTheStandInIgnores(t *testing.T) {
	load := func(env map[string]string) *config.Local {
		env["HTTP_ADDR"] = "127.0.0.1:0"
		cfg, err := config.Load[config.Local](env)
		require.NoError(t, err)
		return cfg
	}
	for _, tt := range []struct {
		env   map[string]string
		words []string
	}{
		{map[string]string{"LLM_MODEL": "gpt-x"}, []string{"stand-in", "ignores LLM_MODEL:", "LLM_BASE_URL"}},
		{map[string]string{"LLM_TEMPERATURE": "0"}, []string{"ignores LLM_TEMPERATURE:"}},
		{map[string]string{"LLM_MODEL": "gpt-x", "LLM_TEMPERATURE": "1", "LLM_MAX_TOKENS": "900"}, []string{"ignores LLM_MODEL and LLM_TEMPERATURE:"}},
	} {
		var out logs
		s, _ := up(t, load(tt.env), &out, nil)
		warned(t, s, &out, tt.words...)
	}
	s, _ := up(t, load(map[string]string{}), nil, nil)
	assert.Empty(t, s.Warnings())
	// The stand-in keeps to these.
	s, _ = up(t, load(map[string]string{"LLM_MAX_TOKENS": "900", "LLM_RESPONSE_FORMAT": "json_object"}), nil, nil)
	assert.Empty(t, s.Warnings())
	s, _ = up(t, settings(t, newModel(t), map[string]string{"LLM_TEMPERATURE": "1"}), nil, nil)
	assert.Empty(t, s.Warnings(), "a real model ignores nothing")
}

// In a Redis that outlives the stack, the stand-in's answers must not pass for
// those of the model that LLM_MODEL names.
func TestStack_standInsAnswersAreNoModels(t *testing.T) {
	rdb := miniredis.RunT(t)
	cfg, err := config.Load[config.Local](map[string]string{"HTTP_ADDR": "127.0.0.1:0", "REDIS_ADDR": rdb.Addr(), "LLM_MODEL": "gpt-x"})
	require.NoError(t, err)
	_, c := up(t, cfg, nil, nil)
	started, _, err := c.Start(t.Context(), "t", []job.Comment{{ID: "a", Text: "This report is garbage."}})
	require.NoError(t, err)
	require.Equal(t, job.Success, ended(t, c, started.JobID).Status)
	assert.Contains(t, rdb.Dump(), "sunhwa-stand-in")
	assert.NotContains(t, rdb.Dump(), "gpt-x")
}
