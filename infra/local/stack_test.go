package local_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/infra/local/client"
	"sunhwa/infra/local/dynamo"
	"sunhwa/shared/config"
	"sunhwa/shared/job"
)

func TestStack_wholeFlow(t *testing.T) {
	m := newModel(t)
	s, c := up(t, settings(t, m, nil), nil, nil)
	ctx, in := t.Context(), numbered(12)

	started, a, err := c.Start(ctx, "course", in)
	require.NoError(t, err)
	assert.Equal(t, 202, a.Status)
	assert.False(t, started.Reused)
	assert.Equal(t, "/jobs/"+string(started.JobID), a.Header.Get("Location"))

	j := ended(t, c, started.JobID)
	require.Equal(t, job.Success, j.Status)
	assert.Equal(t, 12, j.Progress.Done)
	assert.EqualValues(t, 12, j.Usage.Calls)
	assert.EqualValues(t, 180, j.Usage.TotalTokens)

	results, _, err := c.Results(ctx, started.JobID)
	require.NoError(t, err)
	require.Len(t, results, 12)
	for i, r := range results {
		assert.Equal(t, job.Rewritten{ID: in[i].ID, Before: in[i].Text, After: softened(in[i].Text)}, r)
	}
	_, _, err = c.Published(ctx, "course")
	refused(t, err, 404, "NOT_FOUND")

	applied, _, err := c.Apply(ctx, started.JobID)
	require.NoError(t, err)
	assert.Equal(t, client.Applied{JobID: started.JobID, Applied: 12}, applied)
	applied, _, err = c.Apply(ctx, started.JobID)
	require.NoError(t, err)
	assert.Equal(t, client.Applied{JobID: started.JobID, Applied: 12, AlreadyApplied: true}, applied)

	p, _, err := c.Published(ctx, "course")
	require.NoError(t, err)
	assert.Equal(t, started.JobID, p.JobID)
	require.Len(t, p.Comments, 12)
	assert.Equal(t, job.PublishedComment{ID: "c3", Text: softened(in[3].Text), Original: in[3].Text}, p.Comments[3])

	_, err = c.Call(ctx, http.MethodDelete, "/targets/course/comments", nil, nil)
	require.NoError(t, err)
	_, _, err = c.Published(ctx, "course")
	refused(t, err, 404, "NOT_FOUND")
	assert.Empty(t, s.GivenUp())
}

// The default: nothing configured, everything embedded, the model's stand-in too.
func TestStack_allStandIns(t *testing.T) {
	cfg, err := config.Load[config.Local](map[string]string{"HTTP_ADDR": "127.0.0.1:0"})
	require.NoError(t, err)
	var out logs
	s, c := up(t, cfg, &out, nil)
	for _, p := range s.Parts() {
		assert.True(t, p.StandIn, p.Name)
	}
	assert.Len(t, s.Parts(), 4)
	started, _, err := c.Start(t.Context(), "course", []job.Comment{{ID: "a", Text: "이 강의는 최악이에요."}, {ID: "b", Text: "This report is garbage."}})
	require.NoError(t, err)
	require.Equal(t, job.Success, ended(t, c, started.JobID).Status)
	results, _, err := c.Results(t.Context(), started.JobID)
	require.NoError(t, err)
	for _, r := range results {
		assert.NotEqual(t, r.Before, r.After)
	}
	assert.Contains(t, out.String(), "stand-in")
}

func TestStack_simultaneousStarts(t *testing.T) {
	m := newModel(t)
	m.hold = make(chan struct{})
	_, c := up(t, settings(t, m, nil), nil, nil)
	const n = 16
	ids, created := make(chan job.ID, n), atomic.Int32{}
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			s, _, err := c.Start(context.Background(), "one", numbered(2))
			assert.NoError(t, err)
			if !s.Reused {
				created.Add(1)
			} else {
				assert.True(t, s.SameInput)
			}
			ids <- s.JobID
		})
	}
	wg.Wait()
	close(ids)
	first := <-ids
	for id := range ids {
		assert.Equal(t, first, id)
	}
	assert.EqualValues(t, 1, created.Load())
	close(m.hold)
	assert.Equal(t, job.Success, ended(t, c, first).Status)
	assert.EqualValues(t, 2, m.calls.Load())
}

func TestStack_everyEventTwice_nothingPaidTwice(t *testing.T) {
	m := newModel(t)
	var deliveries atomic.Int32
	s, c := up(t, settings(t, m, map[string]string{"LOCAL_INVOKE_DUPLICATES": "1"}), nil, counting("worker", &deliveries))
	in := numbered(40)
	started, _, err := c.Start(t.Context(), "twice", in)
	require.NoError(t, err)
	j := ended(t, c, started.JobID)
	require.Equal(t, job.Success, j.Status)
	require.Eventually(t, func() bool { return deliveries.Load() == 2 }, deadlock, 10*time.Millisecond)
	results, _, err := c.Results(t.Context(), started.JobID)
	require.NoError(t, err)
	assert.Len(t, results, 40)
	assert.EqualValues(t, 40, m.calls.Load(), "calls to the model")
	assert.EqualValues(t, 40, j.Usage.Calls)
	assert.Empty(t, s.GivenUp())
}

// A job as large as the limits allow goes through both of Lambda's, in pages.
func TestStack_largestJob(t *testing.T) {
	m := newModel(t)
	cfg := settings(t, m, map[string]string{"LLM_CONCURRENCY": "64"})
	_, c := up(t, cfg, nil, nil)
	in := numbered(cfg.MaxComments)
	body := func() int {
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		require.NoError(t, e.Encode(map[string]any{"comments": in}))
		return b.Len()
	}
	for i := range in { // three bytes a syllable, and quotes that JSON escapes
		in[i].Text = `"` + strings.Repeat("순화", 320) + `"`
	}
	room := cfg.MaxBodyBytes - body()
	require.Positive(t, room)
	for i := 0; room > 0; i++ {
		n := min(room, 1000)
		in[i].Text += strings.Repeat("x", n)
		room -= n
	}
	require.Equal(t, cfg.MaxBodyBytes, body())

	started, _, err := c.Start(t.Context(), "large", in)
	require.NoError(t, err)
	j := ended(t, c, started.JobID)
	require.Equal(t, job.Success, j.Status)
	results, answers, err := c.Results(t.Context(), started.JobID)
	require.NoError(t, err)
	assert.Len(t, results, len(in))
	assert.Greater(t, len(answers), 1)
	for _, a := range answers {
		assert.LessOrEqual(t, len(a.Body), 2_500_000)
	}
	applied, _, err := c.Apply(t.Context(), started.JobID)
	require.NoError(t, err)
	assert.Equal(t, len(in), applied.Applied)
	p, answers, err := c.Published(t.Context(), "large")
	require.NoError(t, err)
	assert.Greater(t, len(answers), 1)
	require.Len(t, p.Comments, len(in))
	for i, row := range p.Comments {
		require.Equal(t, job.PublishedComment{ID: in[i].ID, Text: softened(in[i].Text), Original: in[i].Text}, row)
	}

	in[0].Text += "x"
	_, _, err = c.Start(t.Context(), "larger", in)
	refused(t, err, 413, "TOO_LARGE")
}

func TestStack_tenantHeader(t *testing.T) {
	m := newModel(t)
	_, c := up(t, settings(t, m, map[string]string{"LOCAL_TENANT_HEADER": "on"}), nil, nil)
	acme, globex := client.New(c.Base), client.New(c.Base)
	acme.Tenant, globex.Tenant = "acme", "globex"
	a, _, err := acme.Start(t.Context(), "same", numbered(1))
	require.NoError(t, err)
	g, _, err := globex.Start(t.Context(), "same", numbered(1))
	require.NoError(t, err)
	assert.NotEqual(t, a.JobID, g.JobID)
	require.Equal(t, job.Success, ended(t, acme, a.JobID).Status)
	_, _, err = globex.Job(t.Context(), a.JobID)
	refused(t, err, 404, "NOT_FOUND")
	_, _, err = c.Job(t.Context(), a.JobID)
	refused(t, err, 404, "NOT_FOUND")
	_, _, err = globex.Apply(t.Context(), a.JobID)
	refused(t, err, 404, "NOT_FOUND")
	_, _, err = acme.Apply(t.Context(), a.JobID)
	require.NoError(t, err)
	_, _, err = globex.Published(t.Context(), "same")
	refused(t, err, 404, "NOT_FOUND")

	d, _, err := c.Start(t.Context(), "same", numbered(1))
	require.NoError(t, err)
	assert.False(t, d.Reused)
	c.Tenant = "default"
	_, _, err = c.Job(t.Context(), d.JobID)
	require.NoError(t, err, "without a header the tenant is default")
}

func TestStack_headerIsIgnoredUnlessSwitchedOn(t *testing.T) {
	_, c := up(t, settings(t, newModel(t), nil), nil, nil)
	other := client.New(c.Base)
	other.Tenant = "acme"
	a, _, err := other.Start(t.Context(), "t", numbered(1))
	require.NoError(t, err)
	_, _, err = c.Job(t.Context(), a.JobID)
	require.NoError(t, err)
}

// In a whole run, good and bad, no log line holds a comment's text, an answer's,
// or the API key; not even when the model's error text carries both.
func TestStack_logHoldsNoTextAndNoKey(t *testing.T) {
	const marker = "TEXT-MARKER-0815"
	var out logs
	prior := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
	defer slog.SetDefault(prior)

	m := newModel(t)
	bad := atomic.Bool{}
	m.fail = func(string) int {
		if bad.Load() {
			return 400
		}
		return 0
	}
	var seen atomic.Int32
	s, c := up(t, settings(t, m, map[string]string{"SWEEP_EVERY": "50ms", "LOCAL_INVOKE_DUPLICATES": "1"}), &out, failing(1, &seen))
	ctx := t.Context()
	in := []job.Comment{{ID: "a", Text: marker + " 최악"}, {ID: "b", Text: "awful " + marker}}
	started, _, err := c.Start(ctx, "t", in)
	require.NoError(t, err)
	require.Equal(t, job.Success, ended(t, c, started.JobID).Status)
	_, _, err = c.Results(ctx, started.JobID)
	require.NoError(t, err)
	_, _, err = c.Apply(ctx, started.JobID)
	require.NoError(t, err)
	_, _, err = c.Published(ctx, "t")
	require.NoError(t, err)

	bad.Store(true)
	in[0].Text += "!"
	failed, _, err := c.Start(ctx, "u", in)
	require.NoError(t, err)
	j := ended(t, c, failed.JobID)
	require.Equal(t, job.CodeLLMFailed, j.Error.Code)
	assert.NotContains(t, j.Error.Message, marker)
	for _, body := range []string{`{"comments":"` + marker + `"}`, `{"` + marker, `{"comments":[{"id":"` + marker + ` ","text":"` + marker + `"}]}`} {
		resp, err := http.Post(c.Base+"/targets/t/jobs", "application/json", strings.NewReader(body))
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, resp.Body)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, 400, resp.StatusCode)
	}
	closed, cancel := context.WithTimeout(ctx, deadlock)
	defer cancel()
	require.NoError(t, s.Close(closed))

	all := out.String()
	assert.Contains(t, all, string(started.JobID), "the log was written and searched")
	for _, secret := range []string{marker, apiKey, "🙂"} {
		assert.NotContains(t, all, secret)
	}
}

func TestStack_home(t *testing.T) {
	s, c := up(t, settings(t, newModel(t), nil), nil, nil)
	resp, err := http.Get(s.URL() + "/")
	require.NoError(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.Equal(t, 200, resp.StatusCode)
	assert.Contains(t, string(b), "curl")
	assert.Contains(t, string(b), "stand-in")
	assert.Contains(t, string(b), c.Base)
	for _, method := range []string{"HEAD", "POST", "OPTIONS"} {
		r, err := http.NewRequest(method, s.URL()+"/", nil)
		require.NoError(t, err)
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, 404, resp.StatusCode, method)
	}
}

// AWS_ENDPOINT_URL_LAMBDA replaces the local Invoke endpoint.
func TestStack_givenLambdaEndpoint(t *testing.T) {
	type call struct{ path, kind, body string }
	calls := make(chan call, 1)
	lambda := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		calls <- call{r.URL.Path, r.Header.Get("X-Amz-Invocation-Type"), string(b)}
		w.WriteHeader(http.StatusAccepted)
	}))
	defer lambda.Close()
	m := newModel(t)
	s, c := up(t, settings(t, m, map[string]string{"AWS_ENDPOINT_URL_LAMBDA": lambda.URL, "SWEEP_EVERY": "1h"}), nil, nil)
	started, _, err := c.Start(t.Context(), "t", numbered(1))
	require.NoError(t, err)
	assert.Equal(t, call{
		"/2015-03-31/functions/sunhwa-worker/invocations", "Event",
		`{"jobId":"` + string(started.JobID) + `","tenant":"default","targetId":"t"}`,
	}, <-calls)
	for _, p := range s.Parts() {
		assert.Equal(t, p.Name != "Lambda" && p.Name != "LLM", p.StandIn, p.Name)
	}
	assert.Zero(t, m.calls.Load())
}

// With AWS_ENDPOINT_URL_DYNAMODB the table is made if absent, used if there, and
// outlives the stack.
func TestStack_givenDynamoDBEndpoint(t *testing.T) {
	db, err := dynamo.Start(slog.New(slog.NewTextHandler(io.Discard, nil)))
	require.NoError(t, err)
	defer func() { _ = db.Close() }()
	env := map[string]string{"AWS_ENDPOINT_URL_DYNAMODB": db.URL(), "TABLE_NAME": "my-table"}
	m := newModel(t)
	s, c := up(t, settings(t, m, env), nil, nil)
	started, _, err := c.Start(t.Context(), "t", numbered(3))
	require.NoError(t, err)
	require.Equal(t, job.Success, ended(t, c, started.JobID).Status)
	_, _, err = c.Apply(t.Context(), started.JobID)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), deadlock)
	defer cancel()
	require.NoError(t, s.Close(ctx))

	_, again := up(t, settings(t, m, env), nil, nil)
	p, _, err := again.Published(t.Context(), "t")
	require.NoError(t, err)
	assert.Equal(t, started.JobID, p.JobID)
	assert.Len(t, p.Comments, 3)
}
