//go:build sam && engine

package samtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
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

	"sunhwa/infra/local/llm"
	"sunhwa/infra/samtest/relay"
	"sunhwa/infra/testkit"
	"sunhwa/shared/comments"
)

// local is what the functions in containers run on: a real redis-server, and
// stand-ins for DynamoDB and the model, under the names that env.local.json gives
// them and on ports of their own.
type local struct {
	root, template, env string
	api, lambda         string // where start-api and start-lambda are to listen
	more                []string
}

// ports of infra/env.local.json: Redis, DynamoDB, the model, start-lambda.
const redisPort, tablePort, modelPort, lambdaPort = "6379", "8000", "8001", "3001"

func newLocal(t *testing.T) *local {
	t.Helper()
	l := &local{root: rootFolder(t), api: testkit.FreeAddr(t), lambda: testkit.FreeAddr(t)}
	l.template = filepath.Join(built(t), "template.yaml")
	server := testkit.New(t, testkit.Options{})
	table := testkit.DynamoStart(t, "embedded")
	require.NoError(t, comments.New(table.Client(), comments.Options{Table: "sunhwa-comments"}).EnsureTable(t.Context()))
	model := llm.New(llm.Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, model.Start("127.0.0.1:0"))
	t.Cleanup(func() { _ = model.Close() })

	gateway, err := relay.Gateway()
	require.NoError(t, err)
	env := text(t, "infra/env.local.json")
	for port, to := range map[string]string{
		redisPort: server.Addrs[0], tablePort: strings.TrimPrefix(table.URL, "http://"),
		modelPort: strings.TrimSuffix(strings.TrimPrefix(model.URL(), "http://"), "/v1"), lambdaPort: l.lambda,
	} {
		r, err := relay.Open(net.JoinHostPort(gateway, "0"), to)
		require.NoError(t, err)
		t.Cleanup(func() { _ = r.Close() })
		_, free, err := net.SplitHostPort(r.Addr())
		require.NoError(t, err)
		require.Contains(t, env, "host.docker.internal:"+port)
		env = regexp.MustCompile(`(host\.docker\.internal:)`+port+`\b`).ReplaceAllString(env, "${1}x"+free)
	}
	env = strings.ReplaceAll(env, "internal:x", "internal:")
	l.env = filepath.Join(t.TempDir(), "env.json")
	write(t, l.env, env)
	l.more = []string{"--config-env", "local", "--template-file", l.template, "--env-vars", l.env, "--config-file", filepath.Join(l.root, "samconfig.toml")}
	return l
}

// invoke runs `sam local invoke` and returns what the function answered: the last
// line of standard output.
func (l *local) invoke(t *testing.T, function, event string) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "event.json")
	write(t, file, event)
	cmd := l.command(t.Context(), "invoke", function, "--event", file)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoErrorf(t, err, "%s", &stderr)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return []byte(lines[len(lines)-1])
}

func (l *local) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(l.root, ".tools/sam/bin/sam"), append(append([]string{"local"}, args...), l.more...)...)
	cmd.Dir = l.root
	cmd.Env = append(os.Environ(), "SAM_CLI_TELEMETRY=0", "AWS_DEFAULT_REGION=us-east-1", "SAM_CLI_CONTAINER_CONNECTION_TIMEOUT=60")
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

func (l *local) http(t *testing.T, function, event string) (reply, object) {
	t.Helper()
	var r reply
	out := l.invoke(t, function, event)
	require.NoErrorf(t, json.Unmarshal(out, &r), "%s", out)
	body := object{}
	if r.Body != "" {
		require.NoErrorf(t, json.Unmarshal([]byte(r.Body), &body), "%s", r.Body)
	}
	return r, body
}

// serve runs start-api or start-lambda until the test ends.
func (l *local) serve(t *testing.T, addr, command string) {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	cmd := l.command(context.Background(), command, "--host", host, "--port", port)
	log := &lockedBuffer{}
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait() // however it ends
		close(done)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT) // it then removes its containers
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			_ = cmd.Process.Kill()
			<-done
		}
		if t.Failed() {
			t.Logf("sam local %s:\n%s", command, log)
		}
	})
	require.Eventuallyf(t, func() bool {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return false
		}
		c.Close()
		return true
	}, 60*time.Second, 50*time.Millisecond, "sam local %s does not listen", command)
}

// TestLocal_invokeEveryFunction is `sam local invoke` for each function, with its
// event; what start cannot invoke here (nobody listens) is left to the worker's own.
func TestLocal_invokeEveryFunction(t *testing.T) {
	l := newLocal(t)
	began := time.Now()
	l.serve(t, l.lambda, "start-lambda")
	r, body := l.http(t, "StartFunction", event(t, "start", ""))
	require.Equal(t, 202, r.StatusCode, r.Body)
	id := fmt.Sprint(body["jobId"])
	require.Eventually(t, func() bool {
		r, body = l.http(t, "StatusFunction", event(t, "status", id))
		return body["status"] == "SUCCESS"
	}, 2*time.Minute, 100*time.Millisecond, "start-lambda took the event and ran the worker")
	r, body = l.http(t, "ApplyFunction", event(t, "apply", id))
	require.Equal(t, 200, r.StatusCode, r.Body)
	assert.EqualValues(t, 2, body["applied"])
	_, body = l.http(t, "CommentsFunction", event(t, "comments-read", ""))
	assert.Equal(t, id, body["jobId"])
	assert.JSONEq(t, "null", string(l.invoke(t, "WorkerFunction", event(t, "worker", id))), "a duplicate has nothing to do")
	var counts object
	require.NoError(t, json.Unmarshal(l.invoke(t, "SweeperFunction", event(t, "sweeper", "")), &counts))
	assert.EqualValues(t, 1024, counts["shards"])
	t.Logf("six functions in containers: %s", time.Since(began).Round(time.Second))
}

// TestLocal_startLambdaTakesEvents: an asynchronous invocation is answered 202 with
// nothing, and the function runs.
func TestLocal_startLambdaTakesEvents(t *testing.T) {
	l := newLocal(t)
	l.serve(t, l.lambda, "start-lambda")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+l.lambda+"/2015-03-31/functions/WorkerFunction/invocations",
		strings.NewReader(event(t, "worker", "")))
	require.NoError(t, err)
	req.Header.Set("X-Amz-Invocation-Type", "Event")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	resp.Body.Close()
	assert.Equal(t, http.StatusAccepted, resp.StatusCode)
}

// TestLocal_bothAuthModes: start-api serves the routes under either mode. It asks no
// caller who they are, so this shows the template's form, not its protection.
func TestLocal_bothAuthModes(t *testing.T) {
	for _, mode := range modes {
		l := newLocal(t)
		overrides := []string{"Architecture=" + architecture(), "LlmModel=local", "ExistingRedisAddr=host.docker.internal:6379"}
		for k, v := range deploys()[mode] {
			overrides = append(overrides, fmt.Sprintf("%s=%v", k, v))
		}
		l.more = append(append(l.more, "--parameter-overrides"), overrides...)
		l.serve(t, l.api, "start-api")
		resp, err := http.Get("http://" + l.api + "/jobs/" + eventJob)
		require.NoError(t, err, mode)
		resp.Body.Close()
		assert.Equal(t, http.StatusNotFound, resp.StatusCode, mode)
		assert.Equal(t, "application/problem+json", resp.Header.Get("Content-Type"), "%s: the function's own answer", mode)
	}
}

// TestLocal_readmesCalls runs the README's block "Use the API" word for word against
// start-api, with the worker behind start-lambda. No caller is verified there: one
// tenant, as env.local.json says.
func TestLocal_readmesCalls(t *testing.T) {
	l := newLocal(t)
	l.serve(t, l.lambda, "start-lambda")
	l.serve(t, l.api, "start-api")
	_, block, found := strings.Cut(text(t, "README.md"), "\n## Use the API\n")
	require.True(t, found)
	block = regexp.MustCompile("(?s)```sh\n(.*?)```").FindStringSubmatch(block)[1]
	block = strings.ReplaceAll(block, "127.0.0.1:8080", l.api)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", block).CombinedOutput()
	require.NoErrorf(t, err, "%s", out)
	rest := string(out)
	for _, want := range []string{
		`HTTP/1\.[01] 202 `, `"reused":false`, `"status":"(RUNNING|SUCCESS)"`, `"progress":\{"total":2,"done":2\}`,
		`"results":\[\{"id":"c1"`, `"applied":2,"alreadyApplied":false`, `"comments":\[\{"id":"c1"`, `HTTP/1\.[01] 409 `, `HTTP/1\.[01] 204 `,
	} {
		at := regexp.MustCompile(want).FindStringIndex(rest)
		require.NotNilf(t, at, "%s is not in what is left of:\n%s", want, out)
		rest = rest[at[1]:]
	}
}
