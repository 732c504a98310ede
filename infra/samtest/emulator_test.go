//go:build sam

package samtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/infra/local/invoke"
	"sunhwa/infra/local/llm"
	"sunhwa/infra/testkit"
	"sunhwa/shared/comments"
	"sunhwa/shared/job"
)

// eventJob is the jobId that stands in the files of events/.
const eventJob = "01KF0FV2E02236RBRSDY46SSRY"

// emulated is a function's bootstrap under Lambda's runtime interface emulator.
type emulated struct {
	name, url string
	turn      sync.Mutex // the emulator dies of two requests at once
	log       *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// emulate starts a built function with an environment and nothing else of ours,
// and ends it with the test.
func emulate(t *testing.T, name string, env map[string]string) *emulated {
	t.Helper()
	root := rootFolder(t)
	front, api := testkit.FreeAddr(t), testkit.FreeAddr(t)
	f := &emulated{name: name, url: "http://" + front + "/2015-03-31/functions/function/invocations", log: &lockedBuffer{}}
	cmd := exec.Command(filepath.Join(root, ".tools/bin/aws-lambda-rie"),
		"--runtime-interface-emulator-address", front, "--runtime-api-address", api, "./bootstrap")
	cmd.Dir = filepath.Join(built(t), name)
	cmd.Env = []string{"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_REGION=us-east-1", "AWS_LAMBDA_FUNCTION_NAME=" + name}
	for k, v := range env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	cmd.Stdout, cmd.Stderr = f.log, f.log
	cmd.WaitDelay = time.Second
	require.NoError(t, cmd.Start(), "run: make sam-test (it builds the emulator into .tools)")
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		timer := time.AfterFunc(3*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		timer.Stop()
		if t.Failed() {
			t.Logf("%s:\n%s", name, f.log)
		}
	})
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", front)
		if err != nil {
			return false
		}
		c.Close()
		return true
	}, 20*time.Second, 10*time.Millisecond)
	return f
}

// Invoke sends one event; a handler's error is the function's, as Lambda tells it.
func (f *emulated) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	f.turn.Lock()
	defer f.turn.Unlock()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url, bytes.NewReader(payload))
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	var failed struct {
		ErrorMessage string `json:"errorMessage"`
	}
	if json.Unmarshal(out, &failed) == nil && failed.ErrorMessage != "" {
		return nil, errors.New(failed.ErrorMessage)
	}
	return out, nil
}

// reply is an HTTP function's answer.
type reply struct {
	StatusCode int               `json:"statusCode"`
	Headers    map[string]string `json:"headers"`
	Body       string            `json:"body"`
}

// http sends an HTTP event and returns the answer, whose body must be JSON or empty.
func (f *emulated) http(t *testing.T, event string) (reply, object) {
	t.Helper()
	out, err := f.Invoke(t.Context(), []byte(event))
	require.NoErrorf(t, err, "%s", f.log)
	var r reply
	require.NoErrorf(t, json.Unmarshal(out, &r), "%s", out)
	body := object{}
	if r.Body != "" {
		require.NoErrorf(t, json.Unmarshal([]byte(r.Body), &body), "%s", r.Body)
	}
	return r, body
}

// event reads a file of events/ and puts a job's id in.
func event(t *testing.T, name, id string) string {
	t.Helper()
	s := text(t, "events/"+name+".json")
	require.True(t, json.Valid([]byte(s)), name)
	if id != "" {
		require.Contains(t, s, eventJob, name)
		s = strings.ReplaceAll(s, eventJob, id)
	}
	return s
}

// TestFunctions_underTheEmulator runs what `sam build` made, with the template's
// own environment and the events of events/, on a Valkey cluster, as deployed, as
// the user and with the permissions that infra/cache.yaml gives. DynamoDB and the
// model are stand-ins; Lambda's Invoke is the local endpoint.
func TestFunctions_underTheEmulator(t *testing.T) {
	t.Parallel()
	texts := copied(t, rootFolder(t))
	m := models(t, []map[string]string{texts}, []wanted{{}})[0]
	cluster := testkit.New(t, testkit.Options{Valkey: true, Cluster: true})
	password := userOf(t, cluster, fmt.Sprint(at(m.nested["infra/cache.yaml"], "Resources", "User", "Properties", "AccessString")))
	table := testkit.DynamoStart(t, "embedded")
	require.NoError(t, comments.New(table.Client(), comments.Options{Table: "sunhwa"}).EnsureTable(t.Context()))
	model := llm.New(llm.Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, model.Start("127.0.0.1:0"))
	t.Cleanup(func() { _ = model.Close() })

	var worker *emulated
	lambda := invoke.New(invoke.Options{
		Functions: map[string]invoke.Function{"stack-worker": late{func() *emulated { return worker }}},
		Logger:    slog.New(slog.DiscardHandler),
	})
	endpoint := httptest.NewServer(lambda.Handler())
	t.Cleanup(endpoint.Close)

	run := func(mode, name string, more ...string) *emulated {
		env := m.environment(mode, name, m.given[mode])
		given := map[string]string{
			"REDIS_ADDR": strings.Join(cluster.Addrs, ","), "REDIS_TLS": "off", "REDIS_AUTH": "password", "REDIS_USERNAME": "app",
			"REDIS_PASSWORD": password, "REDIS_IAM_CACHE_NAME": "",
			"AWS_ENDPOINT_URL_LAMBDA": endpoint.URL, "AWS_ENDPOINT_URL_DYNAMODB": table.URL, "TABLE_NAME": "sunhwa",
			"WORKER_FUNCTION_NAME": "stack-worker", "LLM_MODEL": llm.Model, "LLM_BASE_URL": model.URL(), "LLM_API_KEY": "k", "LLM_API_KEY_SECRET_ARN": "",
		}
		for k, v := range given {
			if _, ok := env[k]; ok { // only what the template names reaches a function
				env[k] = v
			}
		}
		for i := 0; i < len(more); i += 2 {
			env[more[i]] = more[i+1]
		}
		return emulate(t, name, env)
	}
	worker = run("IAM", "WorkerFunction")
	start, status := run("IAM", "StartFunction"), run("IAM", "StatusFunction")
	apply, published, sweeper := run("IAM", "ApplyFunction"), run("IAM", "CommentsFunction"), run("IAM", "SweeperFunction")

	t.Run("nothing is there yet", func(t *testing.T) {
		for name, f := range map[string]*emulated{"status": status, "apply": apply, "comments-read": published, "results": status, "latest": status, "cancel": status} {
			r, body := f.http(t, event(t, name, ""))
			assert.Equal(t, 404, r.StatusCode, name)
			assert.Equal(t, "NOT_FOUND", body["code"], name)
		}
		out, err := worker.Invoke(t.Context(), []byte(event(t, "worker", "")))
		require.NoError(t, err, "an event of a job that is gone is no fault")
		assert.JSONEq(t, "null", string(out))
	})
	id := ""
	t.Run("start", func(t *testing.T) {
		r, body := start.http(t, event(t, "start", ""))
		require.Equal(t, 202, r.StatusCode, r.Body)
		id = fmt.Sprint(body["jobId"])
		assert.Equal(t, "/jobs/"+id, r.Headers["Location"])
	})
	t.Run("worker and status", func(t *testing.T) {
		succeeds(t, status, id)
		_, body := status.http(t, event(t, "latest", ""))
		assert.Equal(t, id, body["jobId"])
		_, body = status.http(t, event(t, "results", id))
		assert.Len(t, body["results"], 2)
		r, body := status.http(t, event(t, "cancel", id))
		assert.Equal(t, 409, r.StatusCode)
		assert.Equal(t, "JOB_FINISHED", body["code"])
	})
	t.Run("apply and comments", func(t *testing.T) {
		r, body := apply.http(t, event(t, "apply", id))
		require.Equal(t, 200, r.StatusCode, r.Body)
		assert.EqualValues(t, 2, body["applied"])
		_, body = published.http(t, event(t, "comments-read", ""))
		assert.Equal(t, id, body["jobId"])
		r, _ = published.http(t, event(t, "comments-erase", ""))
		assert.Equal(t, 204, r.StatusCode)
		r, _ = published.http(t, event(t, "comments-read", ""))
		assert.Equal(t, 404, r.StatusCode)
	})
	t.Run("a body in base64", func(t *testing.T) {
		r, body := start.http(t, event(t, "start-base64", ""))
		require.Equal(t, 202, r.StatusCode, r.Body)
		succeeds(t, status, fmt.Sprint(body["jobId"]))
	})
	t.Run("sweeper", func(t *testing.T) {
		out, err := sweeper.Invoke(t.Context(), []byte(event(t, "sweeper", "")))
		require.NoErrorf(t, err, "%s", sweeper.log)
		var counts object
		require.NoError(t, json.Unmarshal(out, &counts))
		assert.EqualValues(t, job.Shards, counts["shards"])
		assert.Zero(t, counts["errors"])
		assert.Contains(t, sweeper.log.String(), `"OldestRunning"`, "its metric, for the alarms")
	})
	t.Run("JWT", func(t *testing.T) {
		jwt := run("JWT", "StartFunction")
		r, _ := jwt.http(t, event(t, "start-jwt", ""))
		require.Equal(t, 202, r.StatusCode, r.Body)
		r, body := jwt.http(t, event(t, "start", ""))
		assert.Equal(t, 401, r.StatusCode, "without the claim there is no tenant")
		assert.Equal(t, "UNAUTHENTICATED", body["code"])
		r, _ = start.http(t, event(t, "start-jwt", ""))
		assert.Equal(t, 401, r.StatusCode, "nor with a token where IAM decides")
	})
	t.Run("what is given up names its job", func(t *testing.T) {
		var record struct {
			RequestPayload job.Event `json:"requestPayload"`
		}
		require.NoError(t, json.Unmarshal([]byte(event(t, "worker-on-failure", "")), &record))
		var sent job.Event
		require.NoError(t, json.Unmarshal([]byte(event(t, "worker", "")), &sent))
		assert.Equal(t, sent, record.RequestPayload)
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err := lambda.Drain(ctx)
	require.NoError(t, err)
	assert.Empty(t, lambda.GivenUp(), "no event failed")
	for _, f := range []*emulated{start, worker, status, apply, published, sweeper} {
		assert.NotContains(t, f.log.String(), "최악", "%s logs no text", f.name)
		assert.NotContains(t, f.log.String(), "garbage", "%s logs no text", f.name)
	}
}

// TestFunctions_refuseToStartUnconfigured: a function whose environment is not
// complete says so, every variable at once, and does not serve.
func TestFunctions_refuseToStartUnconfigured(t *testing.T) {
	cmd := exec.Command(filepath.Join(built(t), "WorkerFunction", "bootstrap"))
	cmd.Env = []string{"AWS_LAMBDA_RUNTIME_API=127.0.0.1:1"}
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	for v := range maps.Keys(map[string]int{"REDIS_ADDR": 0, "LLM_BASE_URL": 0, "LLM_API_KEY": 0}) {
		assert.Contains(t, string(out), v)
	}
}

// late is a function that is started after the endpoint that invokes it.
type late struct{ f func() *emulated }

func (l late) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	return l.f().Invoke(ctx, payload)
}

// succeeds waits until the status function says SUCCESS.
func succeeds(t *testing.T, status *emulated, id string) {
	t.Helper()
	var body object
	require.Eventually(t, func() bool {
		_, body = status.http(t, event(t, "status", id))
		return body["status"] == "SUCCESS"
	}, 60*time.Second, 50*time.Millisecond, "%v", body)
}

// userOf makes, on every node, the user whose rights the cache's template gives,
// and returns its password.
func userOf(t *testing.T, e *testkit.Engine, access string) string {
	t.Helper()
	const password = "only-here"
	require.NotContains(t, access, "nopass")
	args := []any{"ACL", "SETUSER", "app", "reset", ">" + password}
	for _, rule := range strings.Fields(access) {
		args = append(args, rule)
	}
	for _, addr := range e.Addrs {
		c := redis.NewClient(&redis.Options{Addr: addr})
		require.NoError(t, c.Do(t.Context(), args...).Err())
		require.NoError(t, c.Close())
	}
	return password
}
