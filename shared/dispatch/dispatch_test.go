package dispatch

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/shared/job"
)

// dispatcher talks to a server that answers as h does.
func dispatcher(t *testing.T, h http.HandlerFunc) *Dispatcher {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	client := lambda.New(lambda.Options{
		Region:       "eu-west-1",
		BaseEndpoint: aws.String(srv.URL),
		Credentials:  credentials.NewStaticCredentialsProvider("id", "secret", ""),
	}, Options, func(o *lambda.Options) { o.Retryer = noDelay{aws.NopRetryer{}} })
	return New(client, "worker")
}

// noDelay tries twice at once: the SDK's pause is not under test.
type noDelay struct{ aws.NopRetryer }

func (noDelay) IsErrorRetryable(error) bool                  { return true }
func (noDelay) MaxAttempts() int                             { return 2 }
func (noDelay) RetryDelay(int, error) (time.Duration, error) { return 0, nil }
func (noDelay) GetRetryToken(context.Context, error) (func(error) error, error) {
	return func(error) error { return nil }, nil
}

func ref(t *testing.T, tenant string) job.Ref {
	t.Helper()
	target := job.Target{Tenant: tenant, ID: "course-1"}
	id, err := job.NewID(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), target)
	require.NoError(t, err)
	return job.Ref{ID: id, Target: target}
}

func TestDispatcher_Dispatch_sendsIDsOnly(t *testing.T) {
	var path, kind, body string
	d := dispatcher(t, func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		path, kind, body = r.URL.Path, r.Header.Get("X-Amz-Invocation-Type"), string(b)
		w.WriteHeader(http.StatusAccepted)
	})
	r := ref(t, `te"nant`)
	require.NoError(t, d.Dispatch(t.Context(), r))
	assert.Equal(t, "/2015-03-31/functions/worker/invocations", path)
	assert.Equal(t, "Event", kind)
	assert.JSONEq(t, `{"jobId":"`+string(r.ID)+`","tenant":"te\"nant","targetId":"course-1"}`, body)
}

func TestDispatcher_Dispatch_whatIsDefinite(t *testing.T) {
	for status, definite := range map[int]bool{
		400: true, 401: true, 403: true, 404: true, 409: true, 413: true, 415: true,
		408: false, 429: false, 500: false, 502: false, 503: false, 504: false, 200: false, 204: false,
	} {
		d := dispatcher(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
		})
		err := d.Dispatch(t.Context(), ref(t, "a"))
		require.Error(t, err, status)
		assert.Equal(t, definite, errors.Is(err, job.ErrRefused), "%d: %v", status, err)
	}
}

func TestDispatcher_Dispatch_retriesAreBounded(t *testing.T) {
	var calls atomic.Int32
	d := dispatcher(t, func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	require.Error(t, d.Dispatch(t.Context(), ref(t, "a")))
	assert.EqualValues(t, 2, calls.Load())
	var o lambda.Options
	Options(&o)
	assert.Equal(t, 2, o.RetryMaxAttempts)
}

func TestDispatcher_Dispatch_unreachableIsAmbiguous(t *testing.T) {
	d := dispatcher(t, func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if assert.NoError(t, err) {
			_ = c.Close()
		}
	})
	err := d.Dispatch(t.Context(), ref(t, "a"))
	require.Error(t, err)
	assert.NotErrorIs(t, err, job.ErrRefused)
}

func TestDispatcher_Dispatch_cancellationStaysVisible(t *testing.T) {
	reached := make(chan struct{})
	d := dispatcher(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice that the caller left
		close(reached)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-reached; cancel() }()
	err := d.Dispatch(ctx, ref(t, "a"))
	assert.ErrorIs(t, err, context.Canceled)
	assert.NotErrorIs(t, err, job.ErrRefused)
}

func TestDispatcher_Dispatch_tooLargeIsRefusedUnsent(t *testing.T) {
	d := dispatcher(t, func(http.ResponseWriter, *http.Request) { t.Error("must not be sent") })
	assert.ErrorIs(t, d.Dispatch(t.Context(), ref(t, strings.Repeat("a", MaxEvent))), job.ErrRefused)
}
