//go:build sam

package samtest

import (
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/infra/testkit"
)

var build struct {
	sync.Once
	dir string
	out []byte
	err error
}

func TestMain(m *testing.M) { testkit.Main(m) }

// architecture is this machine's, as the template names it.
func architecture() string {
	if runtime.GOARCH == "arm64" {
		return "arm64"
	}
	return "x86_64"
}

// built runs `sam build` once, for this machine, and returns the folder of what it
// made.
func built(t testing.TB) string {
	t.Helper()
	root := rootFolder(t)
	build.Do(func() {
		build.dir = filepath.Join(root, ".aws-sam", "test")
		build.out, build.err = sam(context.Background(), root, root, nil, "build", "--config-env", "local", "--build-dir", build.dir,
			"--parameter-overrides", "Architecture="+architecture())
	})
	require.NoErrorf(t, build.err, "%s", build.out)
	return build.dir
}

func TestBuild_everyFunctionForTheTemplatesMachine(t *testing.T) {
	dir := built(t)
	machines := map[string]elf.Machine{"x86_64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	for _, name := range functionNames() {
		f, err := elf.Open(filepath.Join(dir, name, "bootstrap"))
		require.NoError(t, err, name)
		assert.Equal(t, machines[architecture()], f.Machine, name)
		assert.Nil(t, f.Section(".interp"), "%s: linked to nothing of the machine it was built on", name)
		f.Close()
	}
	for _, nested := range []string{"Network", "Cache", "AlarmsAndDashboard"} {
		assert.FileExists(t, filepath.Join(dir, nested, "template.yaml"))
	}
}

// TestBuild_editInSharedReachesTheNext: what `sam build` makes follows every edit of
// the code that a function links, wherever that stands, and nothing else.
func TestBuild_editInSharedReachesTheNext(t *testing.T) {
	t.Parallel()
	root, dir := rootFolder(t), t.TempDir()
	for path, s := range copied(t, root) {
		write(t, filepath.Join(dir, path), s)
	}
	for _, tree := range []string{"go.mod", "go.sum", "functions/status", "shared"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, tree), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			rel, err := filepath.Rel(root, path)
			require.NoError(t, err)
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			write(t, filepath.Join(dir, rel), string(b))
			return nil
		}))
	}
	binary := func(config string) string {
		out, err := sam(t.Context(), root, dir, nil, "build", "StatusFunction", "--config-env", config, "--parameter-overrides", "Architecture=x86_64")
		require.NoErrorf(t, err, "%s", out)
		b, err := os.ReadFile(filepath.Join(dir, ".aws-sam/build/StatusFunction/bootstrap"))
		require.NoError(t, err)
		sum := sha256.Sum256(b)
		return hex.EncodeToString(sum[:])
	}
	before := binary("default")
	shared := filepath.Join(dir, "shared/handler/status.go")
	b, err := os.ReadFile(shared)
	require.NoError(t, err)
	edited := strings.Replace(string(b), `"GET /jobs/{jobId}/results"`, `"GET /jobs/{jobId}/answers"`, 1)
	require.NotEqual(t, string(b), edited)
	write(t, shared, edited)
	after := binary("default")
	assert.NotEqual(t, before, after, "the edit is in the binary")
	write(t, shared, string(b))
	assert.Equal(t, before, binary("prod"), "the same source, the same binary")
}

func write(t testing.TB, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}
