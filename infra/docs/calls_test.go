package docs_test

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/infra/testkit"
)

// TestReadme_callsRunWordForWord runs the block of "Use the API" in a shell
// against what `make run` starts, on another port and with nothing configured.
func TestReadme_callsRunWordForWord(t *testing.T) {
	for _, program := range []string{"bash", "curl", "sed", "grep"} {
		_, err := exec.LookPath(program)
		require.NoErrorf(t, err, "%s is not installed; run: make tools", program)
	}
	addr := testkit.FreeAddr(t)
	stop := serve(t, addr)

	script := strings.Join(commands(section(t, read(t, "README.md"), "Use the API")), "\n")
	script = strings.ReplaceAll(script, "127.0.0.1:8080", addr)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script).CombinedOutput()
	require.NoErrorf(t, err, "%s", out)

	// In the order of the calls.
	rest := string(out)
	for _, want := range []string{
		`^HTTP/1\.1 202 `, `"reused":false`, // start
		`"status":"(RUNNING|SUCCESS)"`,                // latest
		`"progress":\{"total":2,"done":2\}`,           // state
		`"results":\[\{"id":"c1"`,                     // results
		`"applied":2,"alreadyApplied":false`,          // apply
		`"comments":\[\{"id":"c1"`, `"original":"발표 `, // published
		`HTTP/1\.1 409 `, `"code":"JOB_FINISHED"`, // cancel
		`HTTP/1\.1 204 `, // erase
	} {
		at := regexp.MustCompile(want).FindStringIndex(rest)
		require.NotNilf(t, at, "%s is not in what is left of:\n%s", want, out)
		rest = rest[at[1]:]
	}
	stop()
}

// serve builds and starts the local stack on addr and waits until it answers.
// stop ends it as Ctrl-C would and checks that it drains.
func serve(t *testing.T, addr string) (stop func()) {
	t.Helper()
	root, err := testkit.Root()
	require.NoError(t, err)
	program := filepath.Join(t.TempDir(), "serve")
	build := exec.Command("go", "build", "-o", program, "./infra/local/serve")
	build.Dir = root
	out, err := build.CombinedOutput()
	require.NoErrorf(t, err, "%s", out)

	var log bytes.Buffer
	server := exec.Command(program)
	server.Env = []string{"HTTP_ADDR=" + addr, "HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	server.Stdout, server.Stderr = &log, &log
	require.NoError(t, server.Start())
	done := make(chan error, 1)
	go func() { done <- server.Wait() }()
	t.Cleanup(func() { _ = server.Process.Kill() })

	client := &http.Client{Timeout: time.Second}
	require.Eventually(t, func() bool {
		resp, err := client.Get("http://" + addr + "/")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, 30*time.Second, 20*time.Millisecond, "the local stack did not start")

	return func() {
		require.NoError(t, server.Process.Signal(syscall.SIGINT))
		select {
		case err := <-done:
			assert.NoErrorf(t, err, "it drains and exits with 0: %s", &log)
		case <-time.After(30 * time.Second):
			t.Fatal("the local stack did not end")
		}
	}
}
