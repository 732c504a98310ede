package handler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

const (
	// redisLimit bounds what an HTTP call may spend on Redis at a stretch, so
	// that an unreachable one is a 503 within 5 s.
	redisLimit = 4 * time.Second
	// tableLimit bounds a call that works on DynamoDB. It leaves 5 s of the 30 s
	// an HTTP API waits for its integration
	// (https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-quotas.html).
	tableLimit = 25 * time.Second
	// pollSeconds is Retry-After while a job is RUNNING, retrySeconds on a 503.
	pollSeconds  = "2"
	retrySeconds = "2"
)

const (
	mediaJSON    = "application/json"
	mediaProblem = "application/problem+json"
)

// reply is an answer that is not a problem. body is encoded as JSON; nil means
// no content.
type reply struct {
	status  int
	body    any
	headers map[string]string
}

// endpoint answers one route. An error it returns becomes a problem.
type endpoint func(ctx context.Context, r *request) (reply, error)

// api is what the four HTTP functions have in common: route, tenant, panic,
// problem, access log.
type api struct {
	routes      map[string]endpoint // by RouteKey
	tenantClaim string
	log         *slog.Logger
	now         func() time.Time
}

func newAPI(tenantClaim string, logger *slog.Logger, now func() time.Time, routes map[string]endpoint) api {
	if logger == nil {
		logger = slog.Default()
	}
	if now == nil {
		now = time.Now
	}
	return api{routes: routes, tenantClaim: tenantClaim, log: logger, now: now}
}

// handle answers one event. It never returns an error and never panics: a
// Lambda error would reach the caller as the gateway's own 500 without a code.
func (a *api) handle(ctx context.Context, event *events.APIGatewayV2HTTPRequest) events.APIGatewayV2HTTPResponse {
	began := a.now()
	r := &request{event: event}
	response, cause := a.answer(ctx, r)
	a.access(ctx, r, response.StatusCode, a.now().Sub(began), cause)
	return response
}

// answer returns the response and, when it is a problem, the error behind it.
func (a *api) answer(ctx context.Context, r *request) (events.APIGatewayV2HTTPResponse, error) {
	route, known := a.routes[r.event.RouteKey]
	if !known {
		return notFoundRoute(), nil
	}
	out, err := a.run(ctx, route, r)
	if err == nil {
		var response events.APIGatewayV2HTTPResponse
		if response, err = out.response(); err == nil {
			return response, nil
		}
	}
	return problemOf(err).response(), err
}

// run authenticates, calls the endpoint and turns a panic into an error.
func (a *api) run(ctx context.Context, route endpoint, r *request) (out reply, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{value: p, stack: debug.Stack()}
		}
	}()
	if r.tenant, err = tenantOf(a.tenantClaim, r.event.RequestContext.Authorizer); err != nil {
		return reply{}, err
	}
	return route(ctx, r)
}

// access writes one line a request: names and numbers, never a text. The cause
// is logged for a 5xx only, whose body keeps it from the caller.
func (a *api) access(ctx context.Context, r *request, status int, took time.Duration, cause error) {
	attrs := []slog.Attr{
		slog.String("route", r.event.RouteKey),
		slog.String("requestId", r.event.RequestContext.RequestID),
		slog.Int("status", status),
		slog.Int64("ms", took.Milliseconds()),
		slog.String("tenant", r.tenant),
	}
	if r.jobID != "" {
		attrs = append(attrs, slog.String("jobId", string(r.jobID)))
	}
	level := slog.LevelInfo
	if status >= http.StatusInternalServerError && cause != nil {
		level = slog.LevelError
		attrs = append(attrs, slog.String("error", cause.Error()))
		if p := (*panicError)(nil); errors.As(cause, &p) {
			attrs = append(attrs, slog.String("stack", string(p.stack)))
		}
	}
	a.log.LogAttrs(ctx, level, "request", attrs...)
}

// panicError is a recovered panic. Its text names the value only when that is a
// runtime error, whose text is Go's own: anything else might carry a comment.
type panicError struct {
	value any
	stack []byte
}

func (p *panicError) Error() string {
	if e, ok := p.value.(runtime.Error); ok {
		return "handler: panic: " + e.Error()
	}
	return fmt.Sprintf("handler: panic with a %T", p.value)
}

func (r reply) response() (events.APIGatewayV2HTTPResponse, error) {
	headers := baseHeaders()
	for name, value := range r.headers {
		headers[name] = value
	}
	if r.body == nil {
		return events.APIGatewayV2HTTPResponse{StatusCode: r.status, Headers: headers}, nil
	}
	body, err := encode(r.body)
	if err != nil {
		return events.APIGatewayV2HTTPResponse{}, err
	}
	headers["Content-Type"] = mediaJSON
	return events.APIGatewayV2HTTPResponse{StatusCode: r.status, Headers: headers, Body: string(body)}, nil
}

// baseHeaders are on every answer: they are private, and right for a moment only.
func baseHeaders() map[string]string {
	return map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
}

// notFoundRoute is what the gateway itself says to a route it does not have.
func notFoundRoute() events.APIGatewayV2HTTPResponse {
	return events.APIGatewayV2HTTPResponse{
		StatusCode: http.StatusNotFound,
		Headers:    map[string]string{"Content-Type": mediaJSON},
		Body:       `{"message":"Not Found"}`,
	}
}

// encode returns v as compact JSON without HTML escaping, so that a page's size
// is what its texts need.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode a response: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// pause waits for d or until ctx ends, whose error it then returns.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
