package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is wrong with OUT is said before anything runs.
func TestDemo_outputIsCheckedFirst(t *testing.T) {
	dir := t.TempDir()
	in, link := filepath.Join(dir, "in.csv"), filepath.Join(dir, "link.csv")
	const comments = "id,text\nc1,bad\n"
	require.NoError(t, os.WriteFile(in, []byte(comments), 0o600))
	require.NoError(t, os.Symlink(in, link))
	for name, tt := range map[string]struct{ out, says string }{
		"a folder":        {dir, "OUT=" + dir + " is a folder"},
		"no such folder":  {filepath.Join(dir, "no", "where.json"), "where.json: no such file"},
		"below a file":    {filepath.Join(in, "x.json"), "not a directory"},
		"the input":       {filepath.Join(dir, ".", "in.csv"), "is the INPUT itself"},
		"link to itself":  {link, "is the INPUT itself"},
		"a trailing sign": {filepath.Join(dir, "new") + "/", "is a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			var screen bytes.Buffer
			err := run(t.Context(), options{input: in, output: tt.out, environ: standIns}, &screen, io.Discard)
			require.ErrorContains(t, err, tt.says)
			assert.Empty(t, screen.String(), "nothing has run")
		})
	}
	b, err := os.ReadFile(in)
	require.NoError(t, err)
	assert.Equal(t, comments, string(b))
}

func TestDemo_outputWithoutAResult(t *testing.T) {
	dir := t.TempDir()
	old, fresh := filepath.Join(dir, "old.json"), filepath.Join(dir, "fresh.json")
	require.NoError(t, os.WriteFile(old, []byte("earlier"), 0o600))
	for _, out := range []string{old, fresh} {
		o := options{input: examples, output: out, environ: map[string]string{"REDIS_ADDR": "127.0.0.1:1"}}
		require.ErrorContains(t, run(t.Context(), o, io.Discard, io.Discard), "does not answer")
	}
	b, err := os.ReadFile(old)
	require.NoError(t, err)
	assert.Equal(t, "earlier", string(b), "what was there is kept")
	assert.NoFileExists(t, fresh)
}

// A longer earlier result leaves no rest behind the new one, and one comment is
// called one.
func TestDemo_outputReplacesTheEarlier(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.csv"), filepath.Join(dir, "out.json")
	require.NoError(t, os.WriteFile(in, []byte("id,text\nc1,This is garbage.\n"), 0o600))
	require.NoError(t, os.WriteFile(out, bytes.Repeat([]byte("earlier "), 1000), 0o600))
	var screen bytes.Buffer
	require.NoError(t, run(t.Context(), options{input: in, output: out, environ: standIns}, &screen, io.Discard))
	b, err := os.ReadFile(out)
	require.NoError(t, err)
	assert.True(t, bytes.HasSuffix(b, []byte("\n}\n")), "%s", b)
	assert.NotContains(t, string(b), "earlier")
	assert.Contains(t, screen.String(), "1 comment from ")
	assert.Contains(t, screen.String(), "with 1 comment each")
	assert.NotRegexp(t, `\b1 (comments|calls)\b`, screen.String())
}
