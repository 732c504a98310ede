package gateway

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"

	"sunhwa/infra/local/invoke"
)

// The gateway's quotas.
const (
	MaxBody    = 10 << 20         // bytes of a request's body
	MaxHeaders = 10_240           // bytes of request line and header values
	MaxTime    = 30 * time.Second // for a function's answer
)

// TenantHeader names the tenant of a request when Options.TenantClaim is set.
const TenantHeader = "X-Sunhwa-Tenant"

// Invoker runs a function synchronously and returns its response payload. Its
// errors are those of invoke.Server.Call.
type Invoker interface {
	Call(ctx context.Context, function string, payload []byte) ([]byte, error)
}

// Options configure a Gateway.
type Options struct {
	// Functions maps the short names of Routes to the names Invoker knows.
	Functions map[string]string
	// TenantClaim, when not empty, makes the header X-Sunhwa-Tenant the caller's
	// identity in the event: accountId, userId and userArn as the IAM authorizer
	// would give it, any other name as a JWT claim. DefaultTenant stands in for a
	// missing or empty header; without one too, the event has no identity. The
	// header identifies nobody: anyone may send it.
	TenantClaim   string
	DefaultTenant string
	// Timeout is the longest wait for a function; 0 means MaxTime.
	Timeout time.Duration
	// Logger gets a line at debug level for each request, with nothing in it
	// that the caller wrote; nil means slog.Default().
	Logger *slog.Logger
	// Now is the clock of events; nil means time.Now.
	Now func() time.Time
}

// Gateway is the HTTP front.
type Gateway struct {
	invoker Invoker
	routes  []Route
	o       Options
}

var _ http.Handler = (*Gateway)(nil)

// New returns a front for the routes of Routes.
func New(invoker Invoker, o Options) *Gateway {
	if o.Timeout <= 0 {
		o.Timeout = MaxTime
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Gateway{invoker: invoker, routes: Routes(), o: o}
}

// ServeHTTP answers one request. It never answers what the gateway in the cloud
// would not.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := g.o.Now()
	route, status := g.serve(w, r, start)
	g.o.Logger.Debug("gateway", "route", route, "status", status, "ms", g.o.Now().Sub(start).Milliseconds())
}

func (g *Gateway) serve(w http.ResponseWriter, r *http.Request, at time.Time) (routeKey string, status int) {
	if headerBytes(r) > MaxHeaders {
		return "", answer(w, http.StatusRequestHeaderFieldsTooLarge, "Request Header Fields Too Large")
	}
	if !headersAreText(r) {
		return "", answer(w, http.StatusBadRequest, "Bad Request")
	}
	route, params, ok := match(g.routes, r.Method, r.URL.EscapedPath())
	if !ok {
		return "", answer(w, http.StatusNotFound, "Not Found")
	}
	if r.ContentLength > MaxBody {
		return route.Key, answer(w, http.StatusRequestEntityTooLarge, "Request Entity Too Large")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return route.Key, answer(w, http.StatusRequestEntityTooLarge, "Request Entity Too Large")
		}
		return route.Key, answer(w, http.StatusBadRequest, "Bad Request")
	}

	tenant := g.o.DefaultTenant
	if g.o.TenantClaim != "" {
		if h := r.Header.Get(TenantHeader); h != "" {
			tenant = h
		}
	}
	payload, err := encode(event(r, route, params, body, at, g.o.TenantClaim, tenant))
	if err != nil {
		g.o.Logger.Error("event could not be made", "route", route.Key, "error", err)
		return route.Key, answer(w, http.StatusInternalServerError, "Internal Server Error")
	}

	ctx, cancel := context.WithTimeout(r.Context(), g.o.Timeout)
	defer cancel()
	out, err := g.invoker.Call(ctx, g.o.Functions[route.Function], payload)
	if err != nil {
		return route.Key, g.failed(w, route, err)
	}
	var resp events.APIGatewayV2HTTPResponse
	if err := json.Unmarshal(out, &resp); err != nil {
		g.o.Logger.Error("function's response is no response of payload format 2.0", "route", route.Key)
		return route.Key, answer(w, http.StatusInternalServerError, "Internal Server Error")
	}
	return route.Key, g.write(w, route, resp)
}

// failed answers for a function that gave no response.
func (g *Gateway) failed(w http.ResponseWriter, route Route, err error) int {
	var fail *invoke.FunctionError
	switch {
	case errors.Is(err, invoke.ErrTooLarge):
		return answer(w, http.StatusRequestEntityTooLarge, "Request Entity Too Large")
	case errors.As(err, &fail):
		g.o.Logger.Error("function failed", "route", route.Key, "errorType", fail.Type)
		return answer(w, http.StatusInternalServerError, "Internal Server Error")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, invoke.ErrClosing):
		return answer(w, http.StatusServiceUnavailable, "Service Unavailable")
	}
	g.o.Logger.Error("function could not be invoked", "route", route.Key, "error", err)
	return answer(w, http.StatusInternalServerError, "Internal Server Error")
}

// write sends a function's response. Payload format 2.0 knows no multi-value
// headers: those are ignored, as the gateway ignores them.
func (g *Gateway) write(w http.ResponseWriter, route Route, resp events.APIGatewayV2HTTPResponse) int {
	body := []byte(resp.Body)
	if resp.IsBase64Encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(resp.Body); err != nil {
			g.o.Logger.Error("function's body is no base64", "route", route.Key)
			return answer(w, http.StatusInternalServerError, "Internal Server Error")
		}
	}
	if resp.StatusCode < 200 || resp.StatusCode > 599 {
		g.o.Logger.Error("function's status is none", "route", route.Key, "status", resp.StatusCode)
		return answer(w, http.StatusInternalServerError, "Internal Server Error")
	}
	h := w.Header()
	for name, v := range resp.Headers {
		h.Set(name, v)
	}
	for _, c := range resp.Cookies {
		h.Add("Set-Cookie", c)
	}
	if h.Get("Content-Type") == "" && len(body) > 0 {
		h.Set("Content-Type", "text/plain;charset=utf-8")
	}
	w.WriteHeader(resp.StatusCode)
	_, _ = w.Write(body) // the caller may be gone
	return resp.StatusCode
}

// answer sends one of the gateway's own answers and returns its status.
func answer(w http.ResponseWriter, status int, message string) int {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"message":"`+message+`"}`)
	return status
}

// headerBytes is what the gateway's quota counts: the request line and the
// header values.
func headerBytes(r *http.Request) int {
	n := len(r.Method) + len(r.RequestURI) + len(r.Proto) + 2 + len(r.Host)
	for _, values := range r.Header {
		for _, v := range values {
			n += len(v)
		}
	}
	return n
}

// headersAreText reports whether every header value is valid UTF-8. Another cannot
// stand in a JSON event: its bytes would turn into U+FFFD, and two callers' values
// into one. What the gateway in the cloud does with such a value is not documented.
func headersAreText(r *http.Request) bool {
	for _, values := range r.Header {
		for _, v := range values {
			if !utf8.ValidString(v) {
				return false
			}
		}
	}
	return true
}

// encode writes JSON without HTML escaping, which the gateway does not do either.
func encode(e events.APIGatewayV2HTTPRequest) ([]byte, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return nil, err
	}
	return []byte(strings.TrimSuffix(b.String(), "\n")), nil
}
