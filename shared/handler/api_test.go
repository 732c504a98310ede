package handler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/shared/job"
)

func TestAPI_unknownRoutes(t *testing.T) {
	w := newWorld(t, "tenant")
	for _, route := range []string{"", "$default", "HEAD /jobs/{jobId}", "OPTIONS /targets/{targetId}/jobs", "PUT /jobs/{jobId}", "GET /", "get /jobs/{jobId}", "GET /jobs/{jobId}/"} {
		for _, h := range []httpHandler{w.start, w.status, w.apply, w.comments} {
			e := eventOf(t, readRoute)
			e.RouteKey = route
			response := handleOf(t, h, e)
			assert.Equal(t, 404, response.StatusCode)
			assert.Equal(t, `{"message":"Not Found"}`, response.Body)
			assert.Equal(t, "application/json", response.Headers["Content-Type"])
		}
	}
}

func TestTenantOf(t *testing.T) {
	jwt := func(claims map[string]string) *events.APIGatewayV2HTTPRequestContextAuthorizerDescription {
		return &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: claims}}
	}
	iam := &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{IAM: &events.APIGatewayV2HTTPRequestContextAuthorizerIAMDescription{
		AccessKey: "AKIA", AccountID: "123456789012", CallerID: "AIDA:x", UserARN: "arn:aws:iam::123456789012:user/x", UserID: "AIDA",
	}}
	long := strings.Repeat("한", 85) + "x" // 256 bytes
	cases := []struct {
		name, claim string
		authorizer  *events.APIGatewayV2HTTPRequestContextAuthorizerDescription
		want        string // empty: 401
	}{
		{"none configured", "", nil, "default"},
		{"none configured, claims there", "", jwt(map[string]string{"sub": "x"}), "default"},
		{"jwt", "sub", jwt(map[string]string{"sub": "a:b 한"}), "a:b 한"},
		{"jwt array is one name", "groups", jwt(map[string]string{"groups": "[a b]"}), "[a b]"},
		{"jwt longest", "sub", jwt(map[string]string{"sub": long}), long},
		{"jwt too long", "sub", jwt(map[string]string{"sub": long + "x"}), ""},
		{"jwt empty", "sub", jwt(map[string]string{"sub": ""}), ""},
		{"jwt other claim", "sub", jwt(map[string]string{"Sub": "x"}), ""},
		{"jwt without claims", "sub", jwt(nil), ""},
		{"jwt not UTF-8", "sub", jwt(map[string]string{"sub": "\xff"}), ""},
		{"jwt claim with an IAM name", "userId", jwt(map[string]string{"userId": "u"}), "u"},
		{"no authorizer", "sub", nil, ""},
		{"empty authorizer", "sub", &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{}, ""},
		{"iam account", "accountId", iam, "123456789012"},
		{"iam user", "userId", iam, "AIDA"},
		{"iam arn", "userArn", iam, "arn:aws:iam::123456789012:user/x"},
		{"iam other", "accessKey", iam, ""},
		{"iam principal tag", "tenant", iam, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := tenantOf(c.claim, c.authorizer)
			assert.Equal(t, c.want, got)
			if c.want == "" {
				assert.Equal(t, 401, problemOf(err).Status)
			}
		})
	}
}

// TestTenant_missing is 401 on every route before any store is asked: the
// stores here would panic.
func TestTenant_missing(t *testing.T) {
	for route, h := range everyRoute(StartOptions{TenantClaim: "tenant", MaxBodyBytes: 100}, nil) {
		for name, e := range map[string]events.APIGatewayV2HTTPRequest{
			"no authorizer": eventOf(t, route),
			"header only":   eventOf(t, route, withHeader("x-sunhwa-tenant", "a"), withHeader("authorization", "Bearer x")),
			"empty claim":   eventOf(t, route, withTenant("")),
			"long claim":    eventOf(t, route, withTenant(strings.Repeat("x", 257))),
		} {
			t.Run(route+" "+name, func(t *testing.T) {
				response := handleOf(t, h, e)
				requireProblem(t, response, 401, codeUnauthenticated)
				assert.Equal(t, "Bearer", response.Headers["WWW-Authenticate"])
			})
		}
	}
}

// everyRoute gives each route with its handler on stores that are nil.
func everyRoute(o StartOptions, logger *slog.Logger) map[string]httpHandler {
	status := NewStatus(nil, StatusOptions{TenantClaim: o.TenantClaim, Logger: logger})
	comments := NewComments(nil, nil, CommentsOptions{TenantClaim: o.TenantClaim, Logger: logger})
	o.Logger = logger
	return map[string]httpHandler{
		startRoute: NewStart(nil, nil, o),
		readRoute:  status, resultsRoute: status, cancelRoute: status, latestRoute: status,
		applyRoute:    NewApply(nil, nil, ApplyOptions{TenantClaim: o.TenantClaim, Logger: logger}),
		commentsRoute: comments, eraseRoute: comments,
	}
}

func TestAPI_panicIsInternal(t *testing.T) {
	log := &lockedBuffer{}
	o := startOptions("", nil)
	for route, h := range everyRoute(o, slog.New(slog.NewJSONHandler(log, nil))) {
		e := eventOf(t, route, withBody(twoComments))
		e.PathParameters = map[string]string{"targetId": "t", "jobId": string(idAt(t, testNow, plainTarget))}
		response := handleOf(t, h, e)
		p := requireProblem(t, response, 500, codeInternal)
		assert.Equal(t, "Something went wrong inside the service.", p.Detail)
	}
	assert.Contains(t, log.String(), "nil pointer dereference")
	assert.Contains(t, log.String(), "handler.(*Start).claim", "the log has the stack")
	assert.NotContains(t, (&panicError{value: marker}).Error(), marker, "a panic's value may be a text")
}

func TestProblemOf_table(t *testing.T) {
	secret := "redis 10.0.0.1:6379 password"
	cases := []struct {
		err    error
		status int
		code   apiCode
		state  job.Status
	}{
		{job.ErrNotFound, 404, codeNotFound, ""},
		{job.ErrGone, 410, codeGone, ""},
		{job.ErrSuperseded, 409, codeSuperseded, ""},
		{job.ErrUnavailable, 503, codeUnavailable, ""},
		{fmt.Errorf("%w: %w", job.ErrUnavailable, context.DeadlineExceeded), 503, codeUnavailable, ""},
		{context.DeadlineExceeded, 503, codeUnavailable, ""},
		{context.Canceled, 503, codeUnavailable, ""},
		{job.ErrRefused, 503, codeDispatchFailed, ""},
		{job.ErrCursor, 400, codeInvalid, ""},
		{job.ErrOverdue, 409, codeJobFinished, job.Failed},
		{&job.StateError{Status: job.Running}, 409, codeJobRunning, job.Running},
		{&job.StateError{Status: job.Failed, Code: job.CodeLLMFailed}, 409, codeJobFailed, job.Failed},
		{&job.StateError{Status: job.Success}, 409, codeJobFinished, job.Success},
		{job.ErrSchema, 500, codeInternal, ""},
		{errors.New("anything"), 500, codeInternal, ""},
	}
	for _, c := range cases {
		t.Run(c.err.Error(), func(t *testing.T) {
			p := requireProblem(t, problemOf(fmt.Errorf("%s: %w", secret, c.err)).response(), c.status, c.code)
			assert.Equal(t, c.state, p.JobStatus)
			assert.NotContains(t, p.Detail, "redis")
		})
	}
	for code, status := range statusOf {
		p := (&refusal{code: code, detail: "d", cause: errors.New(secret)}).problem()
		assert.Equal(t, status, p.Status)
		assert.NotEmpty(t, p.Title)
		if status >= 500 {
			assert.NotEqual(t, "d", p.Detail)
		}
	}
}

func TestProblem_members(t *testing.T) {
	body := (&refusal{code: codeJobRunning, jobStatus: job.Running}).problem().response().Body
	assert.Equal(t, `{"type":"about:blank","title":"Conflict","status":409,"detail":"The job is still running.","code":"JOB_RUNNING","jobStatus":"RUNNING"}`, body)
	body = badCursor().problem().response().Body
	assert.Equal(t, "{\"type\":\"about:blank\",\"title\":\"Bad Request\",\"status\":400,\"detail\":\"The request is not valid; `errors` names each fault.\",\"code\":\"INVALID_REQUEST\",\"errors\":[{\"pointer\":\"#/cursor\",\"detail\":\"is not a cursor that an earlier page gave\"}]}", body)
}

func TestAPI_accessLog(t *testing.T) {
	w := newWorld(t, "tenant")
	id := w.started("t", withTenant("acme"))
	line := map[string]any{}
	require.NoError(t, json.Unmarshal([]byte(strings.TrimSpace(w.log.String())), &line))
	assert.Equal(t, startRoute, line["route"])
	assert.Equal(t, 202.0, line["status"])
	assert.Equal(t, string(id), line["jobId"])
	assert.Equal(t, "acme", line["tenant"])
	assert.Equal(t, "JKJaXmPLvHcESHA=", line["requestId"])
	w.redis.Close()
	w.call(readRoute, withJob(id), withTenant("acme"))
	assert.Contains(t, w.log.String(), job.ErrUnavailable.Error(), "the log has the cause of a 5xx")
}

// FuzzPathIDs: any path parameter is a good id, a 400 with its pointer, or a 404.
func FuzzPathIDs(f *testing.F) {
	for _, seed := range []string{"course-1", "", ".", "..", "a/b", "a%2Fb", "가", "a\x00", "\xff", strings.Repeat("a", 129), "01JZZZZZZZZZZZZZZZZZZZZZZZ", "01jzzzzzzzzzzzzzzzzzzzzzzz", "{x}:y"} {
		f.Add(seed)
	}
	status := NewStatus(emptyStore{}, StatusOptions{Logger: slog.New(slog.DiscardHandler)})
	start := NewStart(emptyStore{}, &fakeDispatcher{}, startOptions("", slog.New(slog.DiscardHandler)))
	f.Fuzz(func(t *testing.T, id string) {
		requireProblem(t, handleOf(t, status, eventOf(t, readRoute, withPath("jobId", id))), 404, codeNotFound)
		good := len(id) >= 1 && len(id) <= 128 && id != "." && id != ".." &&
			strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~-") == ""
		latest := handleOf(t, status, eventOf(t, latestRoute, withPath("targetId", id)))
		started := handleOf(t, start, eventOf(t, startRoute, withPath("targetId", id), withBody(twoComments)))
		if good {
			requireProblem(t, latest, 404, codeNotFound)
			require.Equal(t, 202, started.StatusCode)
			return
		}
		for _, response := range []events.APIGatewayV2HTTPResponse{latest, started} {
			require.Equal(t, []string{"#/targetId"}, pointers(requireProblem(t, response, 400, codeInvalid)))
		}
	})
}

// FuzzEvent: no event whatever makes a handler panic, answer 500 or answer
// something that is not JSON.
func FuzzEvent(f *testing.F) {
	for _, route := range []string{startRoute, readRoute, resultsRoute, cancelRoute, latestRoute, applyRoute, commentsRoute, eraseRoute, "$default"} {
		e := eventOf(f, route, withTenant("a"), withBase64(twoComments), withCursor(encodeCursor(1)))
		e.PathParameters = map[string]string{"targetId": "t", "jobId": string(idAt(f, testNow, plainTarget))}
		raw, err := json.Marshal(e)
		require.NoError(f, err)
		f.Add(raw)
	}
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"routeKey":"POST /targets/{targetId}/jobs","body":"%%","isBase64Encoded":true,"headers":{"content-type":"a;b=c;b=d"}}`))
	log := slog.New(slog.DiscardHandler)
	var handlers []httpHandler
	for _, claim := range []string{"", "tenant"} {
		handlers = append(handlers,
			NewStart(emptyStore{}, &fakeDispatcher{}, startOptions(claim, log)),
			NewStatus(emptyStore{}, StatusOptions{TenantClaim: claim, Logger: log}),
			NewApply(emptyStore{}, newMemoryTable(), ApplyOptions{TenantClaim: claim, Logger: log}),
			NewComments(emptyStore{}, newMemoryTable(), CommentsOptions{TenantClaim: claim, Logger: log}))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var e events.APIGatewayV2HTTPRequest
		if json.Unmarshal(raw, &e) != nil {
			return
		}
		for _, h := range handlers {
			response := handleOf(t, h, e)
			require.Contains(t, []int{202, 204, 400, 401, 404, 413, 415}, response.StatusCode, response.Body)
			require.True(t, utf8.ValidString(response.Body))
			if response.StatusCode != 204 {
				require.True(t, json.Valid([]byte(response.Body)), response.Body)
			}
		}
	})
}

// emptyStore has no jobs and takes any.
type emptyStore struct{}

func (emptyStore) Acquire(context.Context, job.Creation) error        { return nil }
func (emptyStore) Read(context.Context, job.ID) (*job.Job, error)     { return nil, job.ErrNotFound }
func (emptyStore) Newest(context.Context, job.Target) (job.ID, error) { return "", job.ErrNotFound }
func (emptyStore) Applied(context.Context, job.ID, time.Time) error   { return job.ErrNotFound }
func (emptyStore) Erase(context.Context, job.Target, job.ID) error    { return nil }
func (emptyStore) Results(context.Context, job.ID) (*job.Job, []job.Rewritten, error) {
	return nil, nil, job.ErrNotFound
}
func (emptyStore) Fail(context.Context, job.Ref, job.Guard, string, job.Failure, job.Extra) error {
	return job.ErrNotFound
}

func TestPause_endsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	assert.ErrorIs(t, pause(ctx, time.Hour), context.Canceled)
	assert.NoError(t, pause(context.Background(), 0))
}
