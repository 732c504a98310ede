// Package obs makes what an operator sees: structured logs and metrics. It knows
// no other package of Sunhwa, so each may be observed without knowing it.
package obs

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambdacontext"
)

// NewLogger returns a logger that writes one JSON object a line to w, from level
// on. Its *Context methods add the invocation's request id ("lambdaRequestId")
// and trace id ("traceId"), and whatever With put into the context.
func NewLogger(w io.Writer, level slog.Leveler) *slog.Logger {
	return slog.New(contextual{slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level})})
}

type attrsKey struct{}

// With returns a context whose log lines carry attrs too: a jobId, a tenant, an
// attempt; never a text.
func With(ctx context.Context, attrs ...slog.Attr) context.Context {
	old, _ := ctx.Value(attrsKey{}).([]slog.Attr)
	return context.WithValue(ctx, attrsKey{}, append(old[:len(old):len(old)], attrs...))
}

// contextual adds what the context knows to every record.
type contextual struct{ slog.Handler }

func (h contextual) Handle(ctx context.Context, r slog.Record) error {
	if lc, ok := lambdacontext.FromContext(ctx); ok && lc.AwsRequestID != "" {
		r.AddAttrs(slog.String("lambdaRequestId", lc.AwsRequestID))
	}
	// The runtime library keeps the X-Ray header under this plain string:
	// https://pkg.go.dev/github.com/aws/aws-lambda-go/lambda
	if id, ok := ctx.Value("x-amzn-trace-id").(string); ok && id != "" {
		r.AddAttrs(slog.String("traceId", id))
	}
	if attrs, ok := ctx.Value(attrsKey{}).([]slog.Attr); ok {
		r.AddAttrs(attrs...)
	}
	return h.Handler.Handle(ctx, r)
}

func (h contextual) WithAttrs(attrs []slog.Attr) slog.Handler {
	return contextual{h.Handler.WithAttrs(attrs)}
}

func (h contextual) WithGroup(name string) slog.Handler {
	return contextual{h.Handler.WithGroup(name)}
}

// Printf is a library's printf-style log turned into lines of a logger, at
// WARN. It fits redis.SetLogger, whose client reports broken connections only,
// never a command's arguments.
type Printf struct {
	Logger *slog.Logger
	Source string // the library's name, in "source"
}

// Printf logs one line.
func (p Printf) Printf(ctx context.Context, format string, v ...any) {
	p.Logger.WarnContext(ctx, fmt.Sprintf(format, v...), "source", p.Source)
}
