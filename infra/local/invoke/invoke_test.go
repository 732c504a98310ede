package invoke_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/infra/local/invoke"
)

// deadlock is how long a test waits for an event that must come.
const deadlock = 5 * time.Minute

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// client starts o's server and returns the AWS SDK's client for it.
func client(t *testing.T, o invoke.Options) (*awslambda.Client, *invoke.Server, string) {
	t.Helper()
	if o.Logger == nil {
		o.Logger = quiet()
	}
	s := invoke.New(o)
	h := httptest.NewServer(s.Handler())
	t.Cleanup(h.Close)
	c := awslambda.New(awslambda.Options{
		Region:           "us-east-1",
		BaseEndpoint:     aws.String(h.URL),
		Credentials:      credentials.NewStaticCredentialsProvider("local", "local", ""),
		RetryMaxAttempts: 1,
	})
	return c, s, h.URL
}

func drain(t *testing.T, s *invoke.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadlock)
	defer cancel()
	_, err := s.Drain(ctx)
	require.NoError(t, err)
}

// noWait makes retries follow at once and records the delays asked for.
type noWait struct {
	mu     sync.Mutex
	delays []time.Duration
}

func (w *noWait) wait(ctx context.Context, d time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.delays = append(w.delays, d)
	return ctx.Err()
}

type in struct {
	A int `json:"a"`
}

func TestInvoke_sync(t *testing.T) {
	c, s, _ := client(t, invoke.Options{Functions: map[string]invoke.Function{
		"double": lambda.NewHandler(func(_ context.Context, e in) (in, error) { return in{2 * e.A}, nil }),
		"fails":  lambda.NewHandler(func(context.Context) error { return errors.New("no") }),
		"panics": lambda.NewHandler(func(context.Context) error { panic("secret value") }),
		"huge": lambda.NewHandler(func(context.Context) (string, error) {
			return strings.Repeat("x", invoke.MaxResponse-1), nil
		}),
		"largest": lambda.NewHandler(func(context.Context) (string, error) {
			return strings.Repeat("x", invoke.MaxResponse-2), nil // two quotes
		}),
	}})
	defer drain(t, s)
	call := func(name, payload string) *awslambda.InvokeOutput {
		out, err := c.Invoke(t.Context(), &awslambda.InvokeInput{FunctionName: &name, Payload: []byte(payload)})
		require.NoError(t, err)
		assert.EqualValues(t, 200, out.StatusCode)
		return out
	}

	out := call("double", `{"a":21}`)
	assert.Nil(t, out.FunctionError)
	assert.Equal(t, `{"a":42}`, string(out.Payload))
	assert.Equal(t, "$LATEST", *out.ExecutedVersion)

	out = call("arn:aws:lambda:eu-west-1:123456789012:function:double:live", `{"a":1}`)
	assert.Equal(t, `{"a":2}`, string(out.Payload))

	out = call("fails", `{}`)
	assert.Equal(t, "Unhandled", *out.FunctionError)
	assert.JSONEq(t, `{"errorMessage":"no","errorType":"errorString"}`, string(out.Payload))

	out = call("panics", `{}`)
	assert.Equal(t, "Unhandled", *out.FunctionError)
	assert.NotContains(t, string(out.Payload), "secret value")

	out = call("huge", `{}`)
	assert.Contains(t, string(out.Payload), "Function.ResponseSizeTooLarge")
	out = call("largest", `{}`)
	assert.Nil(t, out.FunctionError)
	assert.Len(t, out.Payload, invoke.MaxResponse)
}

func TestInvoke_refusals(t *testing.T) {
	var ran atomic.Int32
	c, s, url := client(t, invoke.Options{Functions: map[string]invoke.Function{
		"f": lambda.NewHandler(func(context.Context) error { ran.Add(1); return nil }),
	}})
	str := func(n int) []byte { return []byte(`"` + strings.Repeat("x", n-2) + `"`) }
	tests := []struct {
		name, function string
		kind           types.InvocationType
		payload        []byte
		status         int // 0: accepted
		code           string
	}{
		{"unknown function", "g", types.InvocationTypeEvent, []byte(`{}`), 404, "ResourceNotFoundException"},
		{"not JSON", "f", types.InvocationTypeEvent, []byte(`{`), 400, "InvalidRequestContentException"},
		{"unknown kind", "f", "Later", []byte(`{}`), 400, "InvalidParameterValueException"},
		{"largest event", "f", types.InvocationTypeEvent, str(invoke.MaxAsyncPayload), 0, ""},
		{"event too large", "f", types.InvocationTypeEvent, str(invoke.MaxAsyncPayload + 1), 413, "RequestTooLargeException"},
		{"largest call", "f", types.InvocationTypeRequestResponse, str(invoke.MaxSyncPayload), 0, ""},
		{"call too large", "f", types.InvocationTypeRequestResponse, str(invoke.MaxSyncPayload + 1), 413, "RequestTooLargeException"},
		{"dry run runs nothing", "f", types.InvocationTypeDryRun, []byte(`{}`), 0, ""},
		{"nothing at all", "f", types.InvocationTypeEvent, nil, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := c.Invoke(t.Context(), &awslambda.InvokeInput{FunctionName: &tt.function, InvocationType: tt.kind, Payload: tt.payload})
			if tt.status == 0 {
				require.NoError(t, err)
				return
			}
			var api smithy.APIError
			require.ErrorAs(t, err, &api)
			assert.Equal(t, tt.code, api.ErrorCode())
			var status interface{ HTTPStatusCode() int }
			require.ErrorAs(t, err, &status)
			assert.Equal(t, tt.status, status.HTTPStatusCode())
		})
	}
	var missing *types.ResourceNotFoundException
	_, err := c.Invoke(t.Context(), &awslambda.InvokeInput{FunctionName: aws.String("g")})
	require.ErrorAs(t, err, &missing)
	assert.Equal(t, "User", *missing.Type)

	resp, err := http.Get(url + "/2015-03-31/functions/f/configuration")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, 404, resp.StatusCode)

	drain(t, s)
	assert.EqualValues(t, 3, ran.Load(), "largest event, largest call and the empty event")
	_, err = c.Invoke(t.Context(), &awslambda.InvokeInput{FunctionName: aws.String("f"), InvocationType: types.InvocationTypeEvent})
	var api smithy.APIError
	require.ErrorAs(t, err, &api)
	assert.Equal(t, "ServiceException", api.ErrorCode())
}

func event(t *testing.T, c *awslambda.Client, name, payload string) {
	t.Helper()
	out, err := c.Invoke(t.Context(), &awslambda.InvokeInput{
		FunctionName: &name, InvocationType: types.InvocationTypeEvent, Payload: []byte(payload),
	})
	require.NoError(t, err)
	require.EqualValues(t, 202, out.StatusCode)
}

func TestInvoke_event_answersBeforeItRuns(t *testing.T) {
	release, got := make(chan struct{}), make(chan in, 1)
	c, s, _ := client(t, invoke.Options{Functions: map[string]invoke.Function{
		"f": lambda.NewHandler(func(ctx context.Context, e in) error {
			<-release
			lc, ok := lambdacontext.FromContext(ctx)
			if !ok || lc.AwsRequestID == "" {
				return errors.New("no request id")
			}
			if _, ok := ctx.Deadline(); !ok {
				return errors.New("no deadline")
			}
			got <- e
			return nil
		}),
	}})
	event(t, c, "f", `{"a":7}`) // answered while the function is held up
	assert.Equal(t, 1, s.Pending())
	close(release)
	assert.Equal(t, 7, (<-got).A)
	drain(t, s)
	assert.Empty(t, s.GivenUp())
}

func TestInvoke_event_retriedThenRecorded(t *testing.T) {
	var runs atomic.Int32
	w := &noWait{}
	at := time.Date(2030, 1, 2, 3, 4, 5, 6e6, time.UTC)
	c, s, url := client(t, invoke.Options{
		Functions: map[string]invoke.Function{
			"bad": lambda.NewHandler(func(context.Context) error { runs.Add(1); panic("x") }),
		},
		RetryDelays: []time.Duration{time.Minute, 2 * time.Minute},
		Wait:        w.wait,
		Now:         func() time.Time { return at },
	})
	event(t, c, "bad", `{"a":1}`)
	drain(t, s)
	assert.EqualValues(t, 3, runs.Load())
	assert.Equal(t, []time.Duration{time.Minute, 2 * time.Minute}, w.delays)

	resp, err := http.Get(url + "/on-failure")
	require.NoError(t, err)
	defer resp.Body.Close()
	var records []map[string]any
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&records))
	require.Len(t, records, 1)
	r := records[0]
	assert.Equal(t, "1.0", r["version"])
	assert.Equal(t, "2030-01-02T03:04:05.006Z", r["timestamp"])
	assert.Equal(t, map[string]any{"a": 1.0}, r["requestPayload"])
	rc := r["requestContext"].(map[string]any)
	assert.Equal(t, "RetriesExhausted", rc["condition"])
	assert.Equal(t, 3.0, rc["approximateInvokeCount"])
	assert.Equal(t, "Unhandled", r["responseContext"].(map[string]any)["functionError"])
}

func TestInvoke_event_succeedsOnRetry(t *testing.T) {
	var runs atomic.Int32
	c, s, _ := client(t, invoke.Options{
		Functions: map[string]invoke.Function{"f": lambda.NewHandler(func(context.Context) error {
			if runs.Add(1) == 1 {
				return errors.New("first time")
			}
			return nil
		})},
		RetryDelays: []time.Duration{1, 1},
		Wait:        (&noWait{}).wait,
	})
	event(t, c, "f", `{}`)
	drain(t, s)
	assert.EqualValues(t, 2, runs.Load())
	assert.Empty(t, s.GivenUp())
}

func TestInvoke_event_duplicates(t *testing.T) {
	for _, tt := range []struct {
		share, dice float64
		runs        int32
	}{{0, 0, 1}, {0.5, 0.7, 1}, {0.5, 0.3, 2}, {1, 0.999, 2}} {
		var runs atomic.Int32
		c, s, _ := client(t, invoke.Options{
			Functions:  map[string]invoke.Function{"f": lambda.NewHandler(func(context.Context) error { runs.Add(1); return nil })},
			Duplicates: tt.share,
			Chance:     func() float64 { return tt.dice },
		})
		event(t, c, "f", `{}`)
		drain(t, s)
		assert.Equal(t, tt.runs, runs.Load(), "share %v, dice %v", tt.share, tt.dice)
	}
}

func TestInvoke_event_boundedConcurrency(t *testing.T) {
	var now, peak, runs atomic.Int32
	both := make(chan struct{}) // closed when two run at once
	c, s, _ := client(t, invoke.Options{Concurrency: 2, Functions: map[string]invoke.Function{
		"f": lambda.NewHandler(func(context.Context) error {
			n := now.Add(1)
			defer now.Add(-1)
			if n > peak.Load() {
				peak.Store(n)
				if n == 2 {
					close(both)
				}
			}
			<-both
			runs.Add(1)
			return nil
		}),
	}})
	for range 20 {
		event(t, c, "f", `{}`)
	}
	drain(t, s)
	assert.EqualValues(t, 20, runs.Load())
	assert.EqualValues(t, 2, peak.Load())
}

func TestServer_Drain_givesUpAtItsBound(t *testing.T) {
	started := make(chan struct{})
	c, s, _ := client(t, invoke.Options{
		Concurrency: 1,
		RetryDelays: []time.Duration{time.Hour},
		Functions: map[string]invoke.Function{
			"f": lambda.NewHandler(func(ctx context.Context) error {
				close(started)
				<-ctx.Done() // canceled by the drain
				return ctx.Err()
			}),
		},
	})
	event(t, c, "f", `{}`)
	<-started
	event(t, c, "f", `{}`) // queued behind the first
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n, err := s.Drain(ctx)
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, 2, n)
	assert.Zero(t, s.Pending())
}

func TestServer_Call_timeLimit(t *testing.T) {
	deaf := make(chan struct{})
	defer close(deaf)
	s := invoke.New(invoke.Options{
		Logger:   quiet(),
		Timeouts: map[string]time.Duration{"deaf": time.Millisecond},
		Grace:    time.Millisecond,
		Functions: map[string]invoke.Function{
			"deaf": lambda.NewHandler(func(context.Context) error { <-deaf; return nil }),
		},
	})
	_, err := s.Call(t.Context(), "deaf", []byte(`{}`))
	var fail *invoke.FunctionError
	require.ErrorAs(t, err, &fail)
	assert.Equal(t, "Sandbox.Timedout", fail.Type)

	_, err = s.Call(t.Context(), "none", nil)
	require.ErrorIs(t, err, invoke.ErrNoFunction)
	_, err = s.Call(t.Context(), "deaf", make([]byte, invoke.MaxSyncPayload+1))
	require.ErrorIs(t, err, invoke.ErrTooLarge)
}

func TestInvoke_bodyLongerThanItCarries(t *testing.T) {
	s := invoke.New(invoke.Options{Logger: quiet(), Functions: map[string]invoke.Function{
		"f": lambda.NewHandler(func(context.Context) error { return nil }),
	}})
	r := httptest.NewRequest(http.MethodPost, "/2015-03-31/functions/f/invocations", iotestErr{})
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	assert.Equal(t, 400, w.Code)
}

type iotestErr struct{}

func (iotestErr) Read([]byte) (int, error) { return 0, errors.New("cut off") }
