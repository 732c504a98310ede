package handler

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/shared/job"
	"sunhwa/shared/jobstore"
)

// marker stands in every comment the tests send; no log line may hold it.
const marker = "MARKER-돼지-7f3a"

var testNow = time.Date(2030, 1, 2, 3, 4, 5, 678_000_000, time.UTC)

// shownAt is the time memoryTable gives each publish: not that of the job store.
var shownAt = testNow.Add(111 * time.Millisecond)

// gatewayEvent is a payload of format 2.0 as an HTTP API sends it; tests fill in
// what varies. Its shape is from
// https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
const gatewayEvent = `{
  "version": "2.0",
  "routeKey": "%s",
  "rawPath": "/prod/not/to/be/used",
  "rawQueryString": "",
  "headers": {"accept": "*/*", "content-length": "53", "host": "abc123.execute-api.us-east-1.amazonaws.com", "user-agent": "curl/8.5.0", "x-forwarded-for": "203.0.113.7", "x-forwarded-proto": "https"},
  "requestContext": {
    "accountId": "123456789012", "apiId": "abc123", "domainName": "abc123.execute-api.us-east-1.amazonaws.com", "domainPrefix": "abc123",
    "http": {"method": "POST", "path": "/prod/not/to/be/used", "protocol": "HTTP/1.1", "sourceIp": "203.0.113.7", "userAgent": "curl/8.5.0"},
    "requestId": "JKJaXmPLvHcESHA=", "routeKey": "%s", "stage": "$default", "time": "12/Mar/2030:19:03:58 +0000", "timeEpoch": 1583348638390
  },
  "isBase64Encoded": false
}`

type eventOption func(*events.APIGatewayV2HTTPRequest)

func withPath(name, value string) eventOption {
	return func(e *events.APIGatewayV2HTTPRequest) { e.PathParameters = map[string]string{name: value} }
}

func withCursor(c string) eventOption {
	return func(e *events.APIGatewayV2HTTPRequest) { e.QueryStringParameters = map[string]string{"cursor": c} }
}

func withHeader(name, value string) eventOption {
	return func(e *events.APIGatewayV2HTTPRequest) { e.Headers[name] = value }
}

func withBody(body string) eventOption {
	return func(e *events.APIGatewayV2HTTPRequest) { e.Body, e.IsBase64Encoded = body, false }
}

func withBase64(body string) eventOption {
	return func(e *events.APIGatewayV2HTTPRequest) {
		e.Body, e.IsBase64Encoded = base64.StdEncoding.EncodeToString([]byte(body)), true
	}
}

func withClaims(claims map[string]string) eventOption {
	return func(e *events.APIGatewayV2HTTPRequest) {
		e.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
			JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: claims},
		}
	}
}

func withTenant(tenant string) eventOption { return withClaims(map[string]string{"tenant": tenant}) }

func eventOf(t testing.TB, route string, options ...eventOption) events.APIGatewayV2HTTPRequest {
	var e events.APIGatewayV2HTTPRequest
	require.NoError(t, json.Unmarshal(fmt.Appendf(nil, gatewayEvent, route, route), &e))
	for _, o := range options {
		o(&e)
	}
	return e
}

type httpHandler interface {
	Handle(ctx context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error)
}

// world is the four functions over one miniredis, a recording dispatcher and a
// table in memory.
type world struct {
	t          *testing.T
	redis      *miniredis.Miniredis
	store      *jobstore.Store
	dispatcher *fakeDispatcher
	table      *memoryTable
	start      *Start
	status     *Status
	apply      *Apply
	comments   *Comments
	log        *lockedBuffer
}

func newWorld(t *testing.T, tenantClaim string) *world {
	w := &world{t: t, redis: miniredis.RunT(t), dispatcher: &fakeDispatcher{}, table: newMemoryTable(), log: &lockedBuffer{}}
	rdb := jobstore.NewClient(jobstore.ClientOptions{Addrs: []string{w.redis.Addr()}})
	t.Cleanup(func() { _ = rdb.Close() })
	now := func() time.Time { return testNow }
	w.store = jobstore.New(rdb, jobstore.Options{Now: now})
	logger := slog.New(slog.NewJSONHandler(w.log, nil))
	w.start = NewStart(w.store, w.dispatcher, startOptions(tenantClaim, logger))
	w.status = NewStatus(w.store, StatusOptions{TenantClaim: tenantClaim, Now: now, Logger: logger})
	w.apply = NewApply(w.store, w.table, ApplyOptions{TenantClaim: tenantClaim, Now: now, Logger: logger})
	w.comments = NewComments(w.store, w.table, CommentsOptions{TenantClaim: tenantClaim, Now: now, Logger: logger})
	t.Cleanup(func() { assert.NotContains(t, w.log.String(), marker, "a comment's text in the log") })
	return w
}

func startOptions(tenantClaim string, logger *slog.Logger) StartOptions {
	return StartOptions{
		TenantClaim: tenantClaim, MaxComments: 5, MaxCommentChars: 40, MaxBodyBytes: 4000,
		Spec:     job.Spec{Model: "m", PromptVersion: "p", Options: "{}"},
		Deadline: 10 * time.Minute, Retention: 24 * time.Hour, Lease: 45 * time.Second,
		Now: func() time.Time { return testNow }, Logger: logger,
	}
}

// call routes as the gateway does: by function.
func (w *world) call(route string, options ...eventOption) events.APIGatewayV2HTTPResponse {
	w.t.Helper()
	var h httpHandler = w.status
	switch {
	case route == "POST /targets/{targetId}/jobs":
		h = w.start
	case strings.HasSuffix(route, "/apply"):
		h = w.apply
	case strings.HasSuffix(route, "/comments"):
		h = w.comments
	}
	return handleOf(w.t, h, eventOf(w.t, route, options...))
}

func handleOf(t testing.TB, h httpHandler, e events.APIGatewayV2HTTPRequest) events.APIGatewayV2HTTPResponse {
	response, err := h.Handle(context.Background(), e)
	require.NoError(t, err)
	return response
}

var twoComments = fmt.Sprintf(`{"comments":[{"id":"a","text":"one %s"},{"id":"b","text":"two %s"}]}`, marker, marker)

// started starts a job and returns its id.
func (w *world) started(target string, options ...eventOption) job.ID {
	w.t.Helper()
	response := w.call("POST /targets/{targetId}/jobs", append([]eventOption{withPath("targetId", target), withBody(twoComments)}, options...)...)
	require.Equal(w.t, 202, response.StatusCode, response.Body)
	return job.ID(member(w.t, response.Body, "jobId").(string))
}

// finish does a worker's work on a started job.
func (w *world) finish(id job.ID) *job.Job {
	w.t.Helper()
	ctx := context.Background()
	j, err := w.store.Read(ctx, id)
	require.NoError(w.t, err)
	a := job.Attempt{Ref: j.Ref(), Token: "token-of-" + string(id[:12]), Lease: time.Minute}
	begun, err := w.store.Begin(ctx, a)
	require.NoError(w.t, err)
	for i, c := range begun.Comments {
		_, err := w.store.Record(ctx, a, []job.Result{{
			Index: i, Text: "polite <" + c.ID + ">", MemoKey: begun.Spec.MemoKey(c.Text),
			Usage: job.Usage{PromptTokens: 10, CompletionTokens: 5, TotalTokens: 15, Calls: 1},
		}}, job.Extra{})
		require.NoError(w.t, err)
	}
	require.NoError(w.t, w.store.Finish(ctx, a, begun.Kept, job.Extra{}))
	j, err = w.store.Read(ctx, id)
	require.NoError(w.t, err)
	return j
}

func (w *world) fail(id job.ID, f job.Failure) {
	w.t.Helper()
	j, err := w.store.Read(context.Background(), id)
	require.NoError(w.t, err)
	require.NoError(w.t, w.store.Fail(context.Background(), j.Ref(), job.GuardCancel, "", f, job.Extra{}))
}

func member(t testing.TB, body, name string) any {
	var m map[string]any
	require.NoError(t, json.Unmarshal([]byte(body), &m), body)
	return m[name]
}

// requireProblem checks everything a problem always has and returns it.
func requireProblem(t testing.TB, r events.APIGatewayV2HTTPResponse, status int, code apiCode) problem {
	t.Helper()
	require.Equal(t, status, r.StatusCode, r.Body)
	var p problem
	require.NoError(t, json.Unmarshal([]byte(r.Body), &p))
	assert.Equal(t, "application/problem+json", r.Headers["Content-Type"])
	assert.Equal(t, "about:blank", p.Type)
	assert.Equal(t, status, p.Status)
	assert.Equal(t, code, p.Code, r.Body)
	assert.NotEmpty(t, p.Title)
	assert.NotEmpty(t, p.Detail)
	if status == 503 {
		assert.Equal(t, "2", r.Headers["Retry-After"])
	}
	return p
}

func pointers(p problem) (all []string) {
	for _, e := range p.Errors {
		all = append(all, e.Pointer)
	}
	return all
}

type fakeDispatcher struct {
	mu   sync.Mutex
	refs []job.Ref
	then func(job.Ref) error
}

func (d *fakeDispatcher) Dispatch(_ context.Context, r job.Ref) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refs = append(d.refs, r)
	if d.then != nil {
		return d.then(r)
	}
	return nil
}

// memoryTable keeps what is published as the contract says, without its rows'
// staging, by a clock of its own: shownAt. err, when set, is what every call answers.
type memoryTable struct {
	mu     sync.Mutex
	heads  map[job.Target]job.Head
	rows   map[job.Target][]job.PublishedComment
	err    error
	before func(call string)
	calls  []string
}

func newMemoryTable() *memoryTable {
	return &memoryTable{heads: map[job.Target]job.Head{}, rows: map[job.Target][]job.PublishedComment{}}
}

func (m *memoryTable) enter(call string) error {
	if m.before != nil {
		m.before(call)
	}
	m.mu.Lock()
	m.calls = append(m.calls, call)
	return m.err
}

func (m *memoryTable) Head(_ context.Context, t job.Target) (*job.Head, error) {
	err := m.enter("head")
	defer m.mu.Unlock()
	h, ok := m.heads[t]
	if err == nil && !ok {
		err = job.ErrNotFound
	}
	return &h, err
}

func (m *memoryTable) Publish(_ context.Context, t job.Target, id job.ID, version string, rows []job.Rewritten) (time.Time, error) {
	err := m.enter("publish")
	defer m.mu.Unlock()
	h, ok := m.heads[t]
	switch {
	case err != nil:
		return time.Time{}, err
	case ok && h.Version == version:
		return h.AppliedAt, nil
	case ok && h.JobID >= id && h.Tombstone():
		return time.Time{}, job.ErrGone
	case ok && h.JobID >= id:
		return time.Time{}, job.ErrSuperseded
	}
	m.heads[t] = job.Head{JobID: id, Version: version, Previous: h.Version, Count: len(rows), AppliedAt: shownAt}
	m.rows[t] = nil
	for _, r := range rows {
		m.rows[t] = append(m.rows[t], job.PublishedComment{ID: r.ID, Text: r.After, Original: r.Before})
	}
	return shownAt, nil
}

func (m *memoryTable) Read(_ context.Context, t job.Target, cursor string, limit int) (*job.PublishedPage, error) {
	err := m.enter("read")
	defer m.mu.Unlock()
	h, ok := m.heads[t]
	switch {
	case err != nil:
		return nil, err
	case cursor == "bad":
		return nil, fmt.Errorf("comments: %w", job.ErrCursor)
	case cursor == "old":
		return nil, job.ErrGone
	case !ok || h.Tombstone():
		return nil, job.ErrNotFound
	case limit > pageBytes:
		return nil, errors.New("page too large")
	}
	return &job.PublishedPage{JobID: h.JobID, AppliedAt: h.AppliedAt, Comments: slices.Clone(m.rows[t])}, nil
}

func (m *memoryTable) Entomb(_ context.Context, t job.Target, newest job.ID) error {
	err := m.enter("entomb " + string(newest))
	defer m.mu.Unlock()
	h, ok := m.heads[t]
	if err != nil || !ok && newest == "" {
		return err
	}
	m.heads[t] = job.Head{JobID: max(h.JobID, newest)}
	return nil
}

func (m *memoryTable) Erase(_ context.Context, t job.Target) error {
	err := m.enter("erase")
	defer m.mu.Unlock()
	delete(m.rows, t)
	return err
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
