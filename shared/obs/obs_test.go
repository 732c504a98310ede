package obs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lines decodes JSON lines.
func lines(t *testing.T, b *bytes.Buffer) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range strings.Lines(b.String()) {
		var m map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &m))
		all = append(all, m)
	}
	return all
}

func TestNewLogger_addsWhatTheContextKnows(t *testing.T) {
	var b bytes.Buffer
	l := NewLogger(&b, slog.LevelInfo)
	ctx := lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{AwsRequestID: "req"})
	ctx = context.WithValue(ctx, "x-amzn-trace-id", "Root=1") //nolint:staticcheck // the runtime's own key
	parent := With(ctx, slog.String("jobId", "j"))
	child := With(parent, slog.Int("attempt", 2))
	_ = With(parent, slog.Int("attempt", 3)) // must not reach child
	l.With("tenant", "t").InfoContext(child, "hello")
	l.DebugContext(child, "hidden")
	got := lines(t, &b)
	require.Len(t, got, 1)
	for k, v := range map[string]any{"msg": "hello", "level": "INFO", "lambdaRequestId": "req", "traceId": "Root=1", "jobId": "j", "attempt": 2.0, "tenant": "t"} {
		assert.Equal(t, v, got[0][k], k)
	}
}

func TestPrintf_isOneLine(t *testing.T) {
	var b bytes.Buffer
	Printf{NewLogger(&b, slog.LevelInfo), "redis"}.Printf(t.Context(), "pool: %d", 3)
	got := lines(t, &b)
	require.Len(t, got, 1)
	assert.Equal(t, "pool: 3", got[0]["msg"])
	assert.Equal(t, "redis", got[0]["source"])
}

func TestMetrics_writesEmbeddedMetricFormat(t *testing.T) {
	var b bytes.Buffer
	m := NewMetrics(&b, "fn", func() time.Time { return time.UnixMilli(1234) })
	m.Count("JobsFailed", 1, Dimension{"Code", "LLM_FAILED"})
	m.Count("JobsFailed", 2, Dimension{"Code", "CANCELED"})
	m.Took("JobTime", 1500*time.Millisecond)
	m.Took("JobTime", 250*time.Microsecond)
	m.Flush()
	m.Flush() // nothing is left
	got := lines(t, &b)
	require.Len(t, got, 3)
	sum := map[string]float64{}
	for _, l := range got {
		aws := l["_aws"].(map[string]any)
		assert.EqualValues(t, 1234, aws["Timestamp"])
		dir := aws["CloudWatchMetrics"].([]any)[0].(map[string]any)
		assert.Equal(t, "Sunhwa", dir["Namespace"])
		for _, d := range dir["Dimensions"].([]any)[0].([]any) {
			assert.Contains(t, l, d, "every dimension is a member of the root")
		}
		for _, def := range dir["Metrics"].([]any) {
			assert.Contains(t, l, def.(map[string]any)["Name"], "and so is every metric")
		}
		code, _ := l["Code"].(string)
		sum[code] = l["JobsFailed"].(float64)
		if code == "" {
			assert.Equal(t, []any{1500.0, 0.25}, l["JobTime"])
		}
	}
	assert.Equal(t, map[string]float64{"": 3, "LLM_FAILED": 1, "CANCELED": 2}, sum)
}

func TestMetrics_neverMoreThan100ValuesALine(t *testing.T) {
	var b bytes.Buffer
	m := NewMetrics(&b, "fn", nil)
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			for range 25 {
				m.Took("T", time.Millisecond)
			}
		})
	}
	wg.Wait()
	m.Flush()
	total := 0
	for _, l := range lines(t, &b) {
		n := len(l["T"].([]any))
		assert.LessOrEqual(t, n, 100)
		total += n
	}
	assert.Equal(t, 250, total)
}

func TestMetrics_nilCountsNothing(*testing.T) {
	var m *Metrics
	m.Count("a", 1)
	m.Took("b", 1)
	m.Flush()
}

func TestHTTP_countsByOutcome(t *testing.T) {
	var b bytes.Buffer
	answer := func(status int, err error) HTTPHandler {
		return func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
			return events.APIGatewayV2HTTPResponse{StatusCode: status}, err
		}
	}
	for _, row := range []struct {
		status int
		err    error
		class  string
		metric string
	}{
		{202, nil, "2xx", "JobsStarted"}, {200, nil, "2xx", "JobsReused"}, {400, nil, "4xx", ""}, {0, errors.New("x"), "5xx", ""},
	} {
		b.Reset()
		_, err := HTTP(NewMetrics(&b, "start", nil), answer(row.status, row.err), map[int]string{202: "JobsStarted", 200: "JobsReused"})(t.Context(), events.APIGatewayV2HTTPRequest{})
		assert.Equal(t, row.err, err)
		assert.Contains(t, b.String(), `"Class":"`+row.class+`"`)
		for _, name := range []string{"JobsStarted", "JobsReused"} {
			assert.Equal(t, name == row.metric, strings.Contains(b.String(), name), row)
		}
	}
}

func TestScripts_countsTimeAndErrorsByName(t *testing.T) {
	var b bytes.Buffer
	m := NewMetrics(&b, "fn", nil)
	timing := Scripts(m)
	timing("acquire", time.Millisecond, nil)
	m.Flush()
	assert.Contains(t, b.String(), `"Script":"acquire"`)
	assert.NotContains(t, b.String(), "ScriptErrors")
	timing("begin", time.Millisecond, errors.New("no answer"))
	m.Flush()
	assert.Contains(t, b.String(), "ScriptErrors")
}
