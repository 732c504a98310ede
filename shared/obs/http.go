package obs

import (
	"context"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// HTTPHandler answers one API Gateway event.
type HTTPHandler = func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error)

// HTTP returns h, counted: Requests by status class ("Class": 2xx, 4xx, 5xx),
// RequestTime, and for each status in outcomes the metric named there, which is
// how start tells JobsStarted (202) from JobsReused (200). It flushes m after
// each request.
func HTTP(m *Metrics, h HTTPHandler, outcomes map[int]string) HTTPHandler {
	return Flushed(m, func(ctx context.Context, in events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		began := time.Now()
		out, err := h(ctx, in)
		status := out.StatusCode
		if err != nil {
			status = 500
		}
		m.Count("Requests", 1, Dimension{"Class", strconv.Itoa(status/100) + "xx"})
		m.Took("RequestTime", time.Since(began))
		if name, ok := outcomes[status]; ok {
			m.Count(name, 1)
		}
		return out, err
	})
}

// Scripts returns what jobstore.Options.Timing takes: ScriptTime by "Script",
// and ScriptErrors for calls that Redis did not answer. A refusal is an answer.
func Scripts(m *Metrics) func(script string, took time.Duration, err error) {
	return func(script string, took time.Duration, err error) {
		by := Dimension{"Script", script}
		m.Took("ScriptTime", took, by)
		if err != nil {
			m.Count("ScriptErrors", 1, by)
		}
	}
}
