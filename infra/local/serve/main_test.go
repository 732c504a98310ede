package main

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// asCommand makes the test's binary run the command instead of the tests.
const asCommand = "SUNHWA_TEST_SERVE"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestServe_signalDrainsAndExitsZero(t *testing.T) {
	for _, sig := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = []string{asCommand + "=1", "HTTP_ADDR=127.0.0.1:0"}
		stderr, err := cmd.StderrPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())

		var all strings.Builder
		up := regexp.MustCompile(`msg="local stack is up" url=(\S+)`)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			all.WriteString(lines.Text() + "\n")
			if m := up.FindStringSubmatch(lines.Text()); m != nil {
				resp, err := http.Get(m[1] + "/")
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				assert.Equal(t, 200, resp.StatusCode)
				require.NoError(t, cmd.Process.Signal(sig))
			}
		}
		require.NoError(t, cmd.Wait(), all.String())
		assert.Contains(t, all.String(), `msg="draining; press Ctrl-C again to end at once"`, sig)
		assert.Contains(t, all.String(), "msg=drained", sig)
		assert.Contains(t, all.String(), "stand-in")
	}
}

func TestServe_badConfiguration(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{asCommand + "=1", "HTTP_ADDR=nonsense", "JOB_DEADLINE=1h"}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 1, exit.ExitCode())
	assert.Regexp(t, `\Aserve failed: .+\n  HTTP_ADDR: .+\n  JOB_DEADLINE: .+\n\z`, string(out), "lines for people, nothing escaped")
	assert.NotContains(t, string(out), `\n`)
}

func TestServe_badStart(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{asCommand + "=1", "HTTP_ADDR=127.0.0.1:0", "REDIS_ADDR=127.0.0.1:1", "LOG_LEVEL=error"}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 1, exit.ExitCode())
	assert.Regexp(t, `(?m)^serve failed: REDIS_ADDR 127\.0\.0\.1:1 does not answer: `, string(out))
}
