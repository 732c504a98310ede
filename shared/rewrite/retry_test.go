package rewrite

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sunhwa/shared/job"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestClient_Rewrite_backsOffWithFullJitter(t *testing.T) {
	r := newRig(t, refuse(500, "", ""))
	r.o.MaxRetries = 8
	_, _, err := r.rewrite()
	require.ErrorIs(t, err, job.ErrLLM)
	ms := time.Millisecond
	assert.Equal(t, []time.Duration{500 * ms, 1000 * ms, 2000 * ms, 4000 * ms, 8000 * ms, 16000 * ms, 20000 * ms, 20000 * ms}, r.waits)

	for range 1000 {
		d := jitter(time.Second)
		require.True(t, d >= 0 && d < time.Second, d)
	}
	assert.Zero(t, jitter(0))
	assert.Equal(t, backoffMost, backoff(1<<40))
}

func TestClient_Rewrite_noRetriesConfigured(t *testing.T) {
	r := newRig(t, refuse(500, "", ""), ok(polite))
	r.o.MaxRetries = 0
	_, usage, err := r.rewrite()
	require.ErrorIs(t, err, job.ErrLLM)
	assert.EqualValues(t, 1, usage.Calls)
}

func TestClient_Rewrite_honoursRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name   string
		header map[string]string
		left   time.Duration // until the deadline; 0: none
		want   time.Duration
	}{
		{"seconds", map[string]string{"Retry-After": "7"}, 0, 7 * time.Second},
		{"date", map[string]string{"Retry-After": now.Add(42 * time.Second).Format(http.TimeFormat)}, 0, 42 * time.Second},
		{"date gone by", map[string]string{"Retry-After": now.Add(-time.Hour).Format(http.TimeFormat)}, 0, 0},
		{"milliseconds", map[string]string{"Retry-After-Ms": "250", "Retry-After": "1"}, 0, 250 * time.Millisecond},
		{"negative", map[string]string{"Retry-After": "-3"}, 0, 0},
		{"nonsense", map[string]string{"Retry-After": "soon"}, 0, 0},
		{"not a number", map[string]string{"Retry-After": "NaN"}, 0, 0},
		{"absurd", map[string]string{"Retry-After": "1e300"}, 0, 24 * time.Hour},
		{"fits", map[string]string{"Retry-After": "80"}, 100 * time.Second, 80 * time.Second},
		{"capped by what is left", map[string]string{"Retry-After": "3600"}, 100 * time.Second, 90 * time.Second},
		{"capped, one call of a minute kept", map[string]string{"Retry-After": "3600"}, 20 * time.Minute, 19 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, reply{status: 429, header: c.header}, ok(polite))
			r.o.Jitter = func(time.Duration) time.Duration { return 0 }
			ctx := t.Context()
			// The clock stands still, and the context's own timer is on the real one,
			// so the deadline lies ahead of both.
			r.o.Now = func() time.Time { return now }
			if c.left > 0 {
				start := time.Now()
				r.o.Now = func() time.Time { return start }
				var cancel context.CancelFunc
				ctx, cancel = context.WithDeadline(ctx, start.Add(c.left))
				defer cancel()
			}
			_, _, err := New(r.o).Rewrite(ctx, spec, harsh)
			require.NoError(t, err)
			if c.want == 0 {
				assert.Empty(t, r.waits)
			} else {
				assert.Equal(t, []time.Duration{c.want}, r.waits)
			}
		})
	}
}

// trip is a RoundTripper made of functions, one a request, the last for ever. It
// reports the headers as sent, as a real one does.
type trip []func(*http.Request) (*http.Response, error)

func (s *trip) RoundTrip(req *http.Request) (*http.Response, error) {
	next := (*s)[0]
	if len(*s) > 1 {
		*s = (*s)[1:]
	}
	if tr := httptrace.ContextClientTrace(req.Context()); tr != nil && tr.WroteHeaders != nil {
		tr.WroteHeaders()
	}
	return next(req)
}

func stall(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, req.Context().Err()
}

// stallInBody answers with headers and half a body, then nothing.
func stallInBody(req *http.Request) (*http.Response, error) {
	body := io.MultiReader(strings.NewReader(`{"choices":[`), readerFunc(func([]byte) (int, error) {
		<-req.Context().Done()
		return 0, req.Context().Err()
	}))
	return &http.Response{StatusCode: 200, Body: io.NopCloser(body), Request: req}, nil
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func answers(rep reply) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: rep.status, Body: io.NopCloser(strings.NewReader(rep.body)), Request: req}, nil
	}
}

// Time-outs run on synctest's clock: a minute passes at once and exactly.
func TestClient_Rewrite_ownTimeoutIsRetriedOnce(t *testing.T) {
	for _, c := range []struct {
		name    string
		trips   trip
		retries int
		calls   int64
		took    time.Duration
		want    string
	}{
		{"then well", trip{stall, answers(ok(polite))}, 5, 2, time.Minute, ""},
		{"in the body, then well", trip{stallInBody, answers(ok(polite))}, 5, 2, time.Minute, ""},
		{"twice", trip{stall}, 5, 2, 2 * time.Minute, "code=timeout"},
		{"twice, in the body", trip{stallInBody}, 5, 2, 2 * time.Minute, "status=200 code=timeout"},
		{"no retries left for it", trip{stall}, 0, 1, time.Minute, "code=timeout"},
		{"between other failures", trip{answers(refuse(500, "", "")), stall, answers(refuse(500, "", "")), answers(ok(polite))}, 3, 4, time.Minute, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				cl := New(Options{
					BaseURL: "http://llm.test/v1", Timeout: time.Minute, MaxRetries: c.retries, Transport: &c.trips,
					Jitter: func(time.Duration) time.Duration { return 0 },
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				text, usage, err := cl.Rewrite(ctx, spec, harsh)
				assert.Equal(t, c.calls, usage.Calls)
				assert.Equal(t, c.took, time.Since(start))
				if c.want == "" {
					require.NoError(t, err)
					assert.Equal(t, polite, text)
				} else {
					assert.Equal(t, c.want, detail(t, err))
				}
			})
		})
	}
}

// The job's deadline is not the call's time-out: it ends the Rewrite as itself.
func TestClient_Rewrite_deadlineDuringACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, s := range []trip{{stall}, {stallInBody}} {
			cl := New(Options{BaseURL: "http://llm.test/v1", Timeout: time.Minute, MaxRetries: 5, Transport: &s})
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			_, usage, err := cl.Rewrite(ctx, spec, harsh)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			assert.NotErrorIs(t, err, job.ErrLLM)
			assert.EqualValues(t, 1, usage.Calls)
		}
	})
}

func TestClient_Rewrite_realSleepStopsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := trip{answers(refuse(503, "", ""))}
		cl := New(Options{BaseURL: "http://llm.test/v1", MaxRetries: 1, Transport: &s,
			Jitter: func(time.Duration) time.Duration { return time.Hour }})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		_, usage, err := cl.Rewrite(ctx, spec, harsh)
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, time.Second, time.Since(start))
		assert.EqualValues(t, 1, usage.Calls)
	})
}

// net/http quotes the server's bytes in some of its errors; none of it is shown.
func TestClient_Rewrite_transportErrorTextIsNotShown(t *testing.T) {
	r := newRig(t, ok(polite))
	s := trip{func(*http.Request) (*http.Response, error) {
		return nil, errors.New("malformed HTTP response: " + harsh + apiKey)
	}}
	r.o.Transport = &s
	_, _, err := r.rewrite()
	assert.Equal(t, "code=connection", detail(t, err))
}
