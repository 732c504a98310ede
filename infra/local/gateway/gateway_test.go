package gateway_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/infra/local/gateway"
	"sunhwa/infra/local/invoke"
)

// recorder is a function that keeps the events it was given.
type recorder struct {
	mu     sync.Mutex
	events []events.APIGatewayV2HTTPRequest
	answer func(context.Context) (events.APIGatewayV2HTTPResponse, error)
}

func (f *recorder) handle(ctx context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	f.mu.Lock()
	f.events = append(f.events, e)
	f.mu.Unlock()
	if f.answer == nil {
		return events.APIGatewayV2HTTPResponse{StatusCode: 200, Body: "ok"}, nil
	}
	return f.answer(ctx)
}

func (f *recorder) last(t *testing.T) events.APIGatewayV2HTTPRequest {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	require.NotEmpty(t, f.events, "the function was not reached")
	return f.events[len(f.events)-1]
}

func (f *recorder) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.events)
}

// front serves f behind the gateway under every function's name.
func front(t *testing.T, f *recorder, o gateway.Options) string {
	t.Helper()
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	s := invoke.New(invoke.Options{
		Logger:    quiet,
		Functions: map[string]invoke.Function{"f": lambda.NewHandler(f.handle)},
	})
	o.Functions = map[string]string{"start": "f", "status": "f", "apply": "f", "comments": "f"}
	o.Logger = quiet
	srv := httptest.NewServer(gateway.New(s, o))
	t.Cleanup(srv.Close)
	return srv.URL
}

func do(t *testing.T, method, url string, body io.Reader, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, string(b)
}

func TestGateway_event(t *testing.T) {
	f := &recorder{}
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	url := front(t, f, gateway.Options{Now: func() time.Time { return at }})
	resp, body := do(t, "POST", url+"/targets/caf%C3%A9%2Fx%2541/jobs?cursor=a%20b&cursor=c&z", strings.NewReader(`{"a":"<&>"}`),
		"Content-Type", "application/json; charset=utf-8", "X-Two", "1", "X-Two", "2", "Cookie", "a=1; b=2", "X-Sunhwa-Tenant", "evil")
	require.Equal(t, 200, resp.StatusCode)
	assert.Equal(t, "ok", body)

	e := f.last(t)
	assert.Equal(t, "2.0", e.Version)
	assert.Equal(t, "POST /targets/{targetId}/jobs", e.RouteKey)
	assert.Equal(t, e.RouteKey, e.RequestContext.RouteKey)
	assert.Equal(t, "/targets/café/x%41/jobs", e.RawPath)
	assert.Equal(t, map[string]string{"targetId": "café/x%41"}, e.PathParameters, "decoded once, not twice")
	assert.Equal(t, "cursor=a%20b&cursor=c&z", e.RawQueryString)
	assert.Equal(t, map[string]string{"cursor": "a b,c", "z": ""}, e.QueryStringParameters)
	assert.Equal(t, "1,2", e.Headers["x-two"])
	assert.NotContains(t, e.Headers, "cookie")
	assert.Equal(t, []string{"a=1", "b=2"}, e.Cookies)
	for name := range e.Headers {
		assert.Equal(t, strings.ToLower(name), name)
	}
	assert.Equal(t, `{"a":"<&>"}`, e.Body)
	assert.False(t, e.IsBase64Encoded)
	c := e.RequestContext
	assert.Equal(t, "$default", c.Stage)
	assert.NotEmpty(t, c.RequestID)
	assert.Equal(t, "02/Jan/2030:03:04:05 +0000", c.Time)
	assert.Equal(t, at.UnixMilli(), c.TimeEpoch)
	assert.Equal(t, "POST", c.HTTP.Method)
	assert.Equal(t, "127.0.0.1", c.HTTP.SourceIP)
	assert.Nil(t, c.Authorizer, "no tenant header unless it is switched on")
}

func TestGateway_base64(t *testing.T) {
	tests := []struct {
		contentType string
		base64      bool
	}{
		{"", true}, {"application/json", false}, {"Application/JSON;charset=UTF-8", false},
		{"application/problem+json", false}, {"text/csv", false}, {"application/xml", false},
		{"image/svg+xml", false}, {"application/javascript", false}, {"application/octet-stream", true},
		{"multipart/form-data; boundary=x", true}, {"application/jsonx", true}, {"text/plain; =", false},
	}
	f := &recorder{}
	url := front(t, f, gateway.Options{})
	for _, tt := range tests {
		header := []string{}
		if tt.contentType != "" {
			header = []string{"Content-Type", tt.contentType}
		}
		do(t, "POST", url+"/targets/t/jobs", strings.NewReader("순화"), header...)
		e := f.last(t)
		assert.Equal(t, tt.base64, e.IsBase64Encoded, tt.contentType)
		want := "순화"
		if tt.base64 {
			want = base64.StdEncoding.EncodeToString([]byte(want))
		}
		assert.Equal(t, want, e.Body)
	}
	do(t, "POST", url+"/targets/t/jobs", bytes.NewReader([]byte{'"', 0xff, '"'}), "Content-Type", "application/json")
	assert.True(t, f.last(t).IsBase64Encoded, "bytes that are no UTF-8 arrive as sent")
	do(t, "GET", url+"/jobs/x", nil)
	assert.False(t, f.last(t).IsBase64Encoded, "nothing to encode")
}

func TestGateway_routes(t *testing.T) {
	f := &recorder{}
	url := front(t, f, gateway.Options{})
	for _, r := range gateway.Routes() {
		method, path, _ := strings.Cut(r.Key, " ")
		path = strings.NewReplacer("{targetId}", "t1", "{jobId}", "j1").Replace(path)
		resp, _ := do(t, method, url+path, nil)
		assert.Equal(t, 200, resp.StatusCode, r.Key)
		assert.Equal(t, r.Key, f.last(t).RouteKey)
	}
	before := f.count()
	for _, tt := range []struct{ method, path string }{
		{"GET", "/"}, {"GET", "/nothing"}, {"GET", "/targets/t/jobs"}, {"PUT", "/jobs/x"}, {"HEAD", "/jobs/x"},
		{"OPTIONS", "/jobs/x"}, {"OPTIONS", "/targets/t/jobs"}, {"GET", "/jobs/"}, {"GET", "/jobs/x/"},
		{"GET", "//jobs/x"}, {"GET", "/targets//comments"}, {"GET", "/jobs/x/results/"}, {"get", "/jobs/x"},
	} {
		resp, body := do(t, tt.method, url+tt.path, nil)
		assert.Equal(t, 404, resp.StatusCode, "%s %s", tt.method, tt.path)
		assert.Equal(t, "application/json", resp.Header.Get("Content-Type"))
		if tt.method != "HEAD" {
			assert.Equal(t, `{"message":"Not Found"}`, body)
		}
	}
	assert.Equal(t, before, f.count())
}

func TestGateway_quotas(t *testing.T) {
	f := &recorder{}
	url := front(t, f, gateway.Options{}) + "/targets/t/jobs"
	text := []string{"Content-Type", "text/plain"}

	resp, body := do(t, "POST", url, strings.NewReader(strings.Repeat("x", gateway.MaxBody+1)), text...)
	assert.Equal(t, 413, resp.StatusCode)
	assert.Equal(t, `{"message":"Request Entity Too Large"}`, body)
	// of unknown length
	resp, _ = do(t, "POST", url, io.MultiReader(strings.NewReader(strings.Repeat("x", gateway.MaxBody+1))), text...)
	assert.Equal(t, 413, resp.StatusCode)
	// inside the gateway's quota, over Lambda's
	resp, body = do(t, "POST", url, strings.NewReader(strings.Repeat("x", invoke.MaxSyncPayload)), text...)
	assert.Equal(t, 413, resp.StatusCode)
	assert.Equal(t, `{"message":"Request Entity Too Large"}`, body)
	assert.Zero(t, f.count())
	resp, _ = do(t, "POST", url, strings.NewReader(strings.Repeat("x", invoke.MaxSyncPayload-4096)), text...)
	assert.Equal(t, 200, resp.StatusCode)

	resp, _ = do(t, "POST", url, nil, "X-Long", strings.Repeat("x", gateway.MaxHeaders))
	assert.Equal(t, 431, resp.StatusCode)
	resp, _ = do(t, "POST", url, nil, "X-Long", strings.Repeat("x", gateway.MaxHeaders-500))
	assert.Equal(t, 200, resp.StatusCode)
}

func TestGateway_responses(t *testing.T) {
	type answer = events.APIGatewayV2HTTPResponse
	tests := []struct {
		name   string
		answer answer
		err    error
		status int
		body   string
	}{
		{"plain", answer{StatusCode: 201, Body: "순화"}, nil, 201, "순화"},
		{"base64", answer{StatusCode: 200, Body: "c3VuaHdh", IsBase64Encoded: true}, nil, 200, "sunhwa"},
		{"bad base64", answer{StatusCode: 200, Body: "%", IsBase64Encoded: true}, nil, 500, `{"message":"Internal Server Error"}`},
		{"no status", answer{Body: "x"}, nil, 500, `{"message":"Internal Server Error"}`},
		{"no content", answer{StatusCode: 204}, nil, 204, ""},
		{"error", answer{}, errors.New("cause"), 500, `{"message":"Internal Server Error"}`},
		{"too large", answer{StatusCode: 200, Body: strings.Repeat("x", invoke.MaxResponse)}, nil, 500, `{"message":"Internal Server Error"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := &recorder{answer: func(context.Context) (answer, error) {
				tt.answer.Headers = map[string]string{"Location": "/jobs/x"}
				tt.answer.Cookies = []string{"a=1", "b=2"}
				return tt.answer, tt.err
			}}
			resp, body := do(t, "GET", front(t, f, gateway.Options{})+"/jobs/x", nil)
			assert.Equal(t, tt.status, resp.StatusCode)
			assert.Equal(t, tt.body, body)
			if tt.status < 300 {
				assert.Equal(t, "/jobs/x", resp.Header.Get("Location"))
				assert.Equal(t, []string{"a=1", "b=2"}, resp.Header.Values("Set-Cookie"))
			}
		})
	}
}

func TestGateway_panicAndSlowFunction(t *testing.T) {
	f := &recorder{answer: func(context.Context) (events.APIGatewayV2HTTPResponse, error) { panic("x") }}
	resp, body := do(t, "GET", front(t, f, gateway.Options{})+"/jobs/x", nil)
	assert.Equal(t, 500, resp.StatusCode)
	assert.Equal(t, `{"message":"Internal Server Error"}`, body)

	release := make(chan struct{})
	defer close(release)
	slow := &recorder{answer: func(context.Context) (events.APIGatewayV2HTTPResponse, error) {
		<-release
		return events.APIGatewayV2HTTPResponse{StatusCode: 200}, nil
	}}
	resp, body = do(t, "GET", front(t, slow, gateway.Options{Timeout: time.Millisecond})+"/jobs/x", nil)
	assert.Equal(t, 503, resp.StatusCode)
	assert.Equal(t, `{"message":"Service Unavailable"}`, body)
}

func TestGateway_tenantHeader(t *testing.T) {
	f := &recorder{}
	url := front(t, f, gateway.Options{TenantClaim: "tenant", DefaultTenant: "default"}) + "/jobs/x"
	for header, want := range map[string]string{"": "default", "acme": "acme"} {
		do(t, "GET", url, nil, gateway.TenantHeader, header)
		a := f.last(t).RequestContext.Authorizer
		require.NotNil(t, a)
		require.NotNil(t, a.JWT)
		assert.Equal(t, want, a.JWT.Claims["tenant"])
	}
	do(t, "GET", url, nil)
	assert.Equal(t, "default", f.last(t).RequestContext.Authorizer.JWT.Claims["tenant"])
}

// A TENANT_CLAIM that has no value in a request gives no identity, and the names
// that only the IAM authorizer has come from it.
func TestGateway_identity(t *testing.T) {
	type iam = events.APIGatewayV2HTTPRequestContextAuthorizerIAMDescription
	for claim, want := range map[string]iam{
		"accountId": {AccountID: "acme"}, "userId": {UserID: "acme"}, "userArn": {UserARN: "acme"}, "sub": {},
	} {
		f := &recorder{}
		url := front(t, f, gateway.Options{TenantClaim: claim}) + "/jobs/x"
		do(t, "GET", url, nil)
		assert.Nil(t, f.last(t).RequestContext.Authorizer, claim)
		do(t, "GET", url, nil, gateway.TenantHeader, "")
		assert.Nil(t, f.last(t).RequestContext.Authorizer, claim)
		do(t, "GET", url, nil, gateway.TenantHeader, "acme")
		a := f.last(t).RequestContext.Authorizer
		require.NotNil(t, a, claim)
		if claim == "sub" {
			assert.Nil(t, a.IAM)
			assert.Equal(t, map[string]string{"sub": "acme"}, a.JWT.Claims)
			continue
		}
		assert.Nil(t, a.JWT, claim)
		require.NotNil(t, a.IAM, claim)
		assert.Equal(t, want, *a.IAM)
	}
}

func TestGateway_headersThatAreNoText(t *testing.T) {
	f := &recorder{}
	url := front(t, f, gateway.Options{TenantClaim: "tenant", DefaultTenant: "default"}) + "/jobs/x"
	for _, header := range [][]string{
		{gateway.TenantHeader, "a\xff"}, {gateway.TenantHeader, "a\xfe"}, {"X-Other", "\xed\x95"}, {"Cookie", "a=\xff"},
		{"X-Twice", "good", "X-Twice", "\xff"},
	} {
		resp, body := do(t, "GET", url, nil, header...)
		assert.Equal(t, 400, resp.StatusCode, "%q", header)
		assert.Equal(t, `{"message":"Bad Request"}`, body)
		assert.Equal(t, "application/json", resp.Header.Get("Content-Type"))
	}
	assert.Zero(t, f.count())
	resp, _ := do(t, "GET", url, nil, gateway.TenantHeader, "순화\uFFFD")
	assert.Equal(t, 200, resp.StatusCode)
	assert.Equal(t, "순화\uFFFD", f.last(t).RequestContext.Authorizer.JWT.Claims["tenant"])
}

// The event is what a function of its own would decode: it goes through JSON.
func TestGateway_eventIsJSON(t *testing.T) {
	var raw json.RawMessage
	s := capture(func(p []byte) { raw = p })
	srv := httptest.NewServer(gateway.New(s, gateway.Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}))
	defer srv.Close()
	do(t, "GET", srv.URL+"/jobs/x", nil)
	var m map[string]any
	require.NoError(t, json.Unmarshal(raw, &m))
	assert.Equal(t, "2.0", m["version"])
}

type capture func([]byte)

func (c capture) Call(_ context.Context, _ string, p []byte) ([]byte, error) {
	c(p)
	return []byte(`"no response"`), nil
}
