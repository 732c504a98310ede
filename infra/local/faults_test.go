package local_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/infra/local"
	"sunhwa/infra/local/client"
	"sunhwa/infra/local/invoke"
	"sunhwa/shared/job"
)

func TestStack_workerThatFails_isRetriedThenRecorded(t *testing.T) {
	var seen atomic.Int32
	s, c := up(t, settings(t, newModel(t), map[string]string{"SWEEP_EVERY": "1h"}), nil, failing(1000, &seen))
	started, _, err := c.Start(t.Context(), "lost", numbered(1))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(s.GivenUp()) == 1 }, deadlock, 10*time.Millisecond)
	assert.EqualValues(t, 3, seen.Load())
	r := s.GivenUp()[0]
	assert.Equal(t, 3, r.RequestContext.ApproximateInvokeCount)
	var ev job.Event
	require.NoError(t, json.Unmarshal(r.RequestPayload, &ev))
	assert.Equal(t, job.Event{JobID: string(started.JobID), Tenant: "default", TargetID: "lost"}, ev)

	j, _, err := c.Job(t.Context(), started.JobID)
	require.NoError(t, err)
	assert.Equal(t, job.Running, j.Status, "nothing failed the job: it waits for the sweeper")
	_, err = c.Call(t.Context(), http.MethodDelete, "/jobs/"+string(started.JobID), nil, &j)
	require.NoError(t, err)
	assert.Equal(t, job.CodeCanceled, j.Error.Code)
}

func TestStack_retryServesTheJob(t *testing.T) {
	var seen atomic.Int32
	s, c := up(t, settings(t, newModel(t), nil), nil, failing(2, &seen))
	started, _, err := c.Start(t.Context(), "retried", numbered(3))
	require.NoError(t, err)
	assert.Equal(t, job.Success, ended(t, c, started.JobID).Status)
	assert.Empty(t, s.GivenUp())
}

// Every delivery of the first event fails; the schedule finds the orphan, and a
// second event serves it.
func TestStack_sweeperServesTheOrphan(t *testing.T) {
	var mu sync.Mutex
	first := ""
	cfg := settings(t, newModel(t), map[string]string{"JOB_LEASE": "300ms", "SWEEP_EVERY": "100ms", "JOB_MAX_ATTEMPTS": "1000"})
	s, c := up(t, cfg, nil, func(name string, f invoke.Function) invoke.Function {
		if name != "worker" {
			return f
		}
		return function(func(ctx context.Context, p []byte) ([]byte, error) {
			lc, _ := lambdacontext.FromContext(ctx)
			mu.Lock()
			if first == "" {
				first = lc.AwsRequestID
			}
			fails := lc.AwsRequestID == first
			mu.Unlock()
			if fails {
				return nil, errors.New("killed")
			}
			return f.Invoke(ctx, p)
		})
	})
	started, _, err := c.Start(t.Context(), "orphan", numbered(3))
	require.NoError(t, err)
	assert.Equal(t, job.Success, ended(t, c, started.JobID).Status)
	require.Eventually(t, func() bool { return len(s.GivenUp()) == 1 }, deadlock, 10*time.Millisecond)
	assert.Equal(t, first, s.GivenUp()[0].RequestContext.RequestID)
}

func TestStack_modelFailureFailsTheJobAndFreesTheTarget(t *testing.T) {
	m := newModel(t)
	m.fail = func(text string) int {
		if strings.HasPrefix(text, "댓글 5:") {
			return 400
		}
		return 0
	}
	_, c := up(t, settings(t, m, nil), nil, nil)
	started, _, err := c.Start(t.Context(), "fails", numbered(9))
	require.NoError(t, err)
	j := ended(t, c, started.JobID)
	require.Equal(t, job.Failed, j.Status)
	assert.Equal(t, job.CodeLLMFailed, j.Error.Code)
	assert.Equal(t, "c5", *j.Error.CommentID)
	_, _, err = c.Results(t.Context(), started.JobID)
	refused(t, err, 409, "JOB_FAILED")
	_, _, err = c.Apply(t.Context(), started.JobID)
	refused(t, err, 409, "JOB_FAILED")
	again, _, err := c.Start(t.Context(), "fails", numbered(2))
	require.NoError(t, err)
	assert.False(t, again.Reused)
}

func TestStack_deadlineFreesTheTargetWithNobodyPolling(t *testing.T) {
	m := newModel(t)
	m.hold = make(chan struct{})
	defer close(m.hold)
	_, c := up(t, settings(t, m, map[string]string{"JOB_DEADLINE": "700ms", "SWEEP_EVERY": "1h"}), nil, nil)
	first, _, err := c.Start(t.Context(), "stalled", numbered(2))
	require.NoError(t, err)
	var second client.Started
	require.Eventually(t, func() bool {
		second, _, err = c.Start(t.Context(), "stalled", numbered(2))
		return err == nil && !second.Reused
	}, deadlock, 50*time.Millisecond)
	j, _, err := c.Job(t.Context(), first.JobID)
	require.NoError(t, err)
	require.Equal(t, job.Failed, j.Status)
	assert.Equal(t, job.CodeDeadlineExceeded, j.Error.Code)
}

func TestStart_clearErrors(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	m := newModel(t)
	for _, tt := range []struct {
		env  map[string]string
		says []string
	}{
		{map[string]string{"HTTP_ADDR": taken.Addr().String()}, []string{"HTTP_ADDR", "in use"}},
		{map[string]string{"REDIS_ADDR": "127.0.0.1:1"}, []string{"REDIS_ADDR 127.0.0.1:1 does not answer"}},
		{map[string]string{"AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:1"}, []string{"sunhwa-comments", "http://127.0.0.1:1"}},
	} {
		_, err := local.Start(t.Context(), local.Options{Config: settings(t, m, tt.env), Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
		require.Error(t, err)
		for _, s := range tt.says {
			assert.ErrorContains(t, err, s)
		}
	}
}

func TestStack_Close_waitsForTheJob(t *testing.T) {
	m := newModel(t)
	m.hold = make(chan struct{})
	s, c := up(t, settings(t, m, nil), nil, nil)
	_, _, err := c.Start(t.Context(), "t", numbered(2))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return m.calls.Load() == 2 }, deadlock, 10*time.Millisecond)
	closed := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), deadlock)
		defer cancel()
		closed <- s.Close(ctx)
	}()
	require.Eventually(t, func() bool { // the front is gone, the worker is not
		_, err := http.Get(s.URL() + "/")
		return err != nil
	}, deadlock, 10*time.Millisecond)
	select {
	case err := <-closed:
		t.Fatal("closed while a job was under way: ", err)
	default:
	}
	close(m.hold)
	require.NoError(t, <-closed)
}

func TestStack_Close_isBounded(t *testing.T) {
	m := newModel(t)
	m.hold = make(chan struct{})
	defer close(m.hold)
	s, c := up(t, settings(t, m, nil), nil, nil)
	_, _, err := c.Start(t.Context(), "t", numbered(2))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return m.calls.Load() == 2 }, deadlock, 10*time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorContains(t, s.Close(ctx), "1 invocation(s) given up")
}
