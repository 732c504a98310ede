package obs

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"sync"
	"time"
)

// Namespace is where CloudWatch keeps the metrics of every stack; the dimension
// FunctionName tells stacks apart.
const Namespace = "Sunhwa"

// Metrics gathers numbers and writes them as CloudWatch's embedded metric
// format: log lines that CloudWatch turns into metrics, with no call of its own.
//
// The emitter is ours: of the two Go libraries for the format one has had no
// release since 2021 (prozz/aws-embedded-metrics-golang) and its fork asks for a
// Go newer than this module's; the format is one JSON object
// (https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html).
//
// A nil *Metrics counts nothing. Safe for concurrent use.
type Metrics struct {
	w        io.Writer
	function string
	now      func() time.Time

	mu     sync.Mutex
	groups map[Dimension]map[string]*series
}

// Dimension splits a metric besides FunctionName; the zero value does not.
type Dimension struct{ Name, Value string }

type series struct {
	unit   string
	values []float64
}

// maxValues is how many values of one metric a line may hold (same source).
const maxValues = 100

// NewMetrics returns Metrics of the function named, written to w: standard
// output in a Lambda. now is the clock of the lines' time stamps; nil is time.Now.
func NewMetrics(w io.Writer, function string, now func() time.Time) *Metrics {
	if now == nil {
		now = time.Now
	}
	return &Metrics{w: w, function: function, now: now, groups: map[Dimension]map[string]*series{}}
}

// Count adds n to a metric that sums up; n may be 0, which says "none so far".
func (m *Metrics) Count(name string, n int64, by ...Dimension) {
	m.add(name, "Count", float64(n), true, by)
}

// Took adds one observation of a duration, in milliseconds.
func (m *Metrics) Took(name string, d time.Duration, by ...Dimension) {
	m.add(name, "Milliseconds", float64(d)/float64(time.Millisecond), false, by)
}

// add notes v for the function as a whole and once more for each dimension.
func (m *Metrics) add(name, unit string, v float64, sum bool, by []Dimension) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	full := false
	for _, d := range append([]Dimension{{}}, by...) {
		g := m.groups[d]
		if g == nil {
			g = map[string]*series{}
			m.groups[d] = g
		}
		s := g[name]
		if s == nil {
			s = &series{unit: unit}
			g[name] = s
		}
		if sum && len(s.values) == 1 {
			s.values[0] += v
		} else {
			s.values = append(s.values, v)
		}
		full = full || len(s.values) == maxValues
	}
	if full {
		m.flush()
	}
}

// Flush writes what was gathered, one line a set of dimensions, and forgets it.
// An error of the writer loses the lines: metrics never fail a request.
func (m *Metrics) Flush() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.flush()
}

type definition struct {
	Name string `json:"Name"`
	Unit string `json:"Unit"`
}

type directive struct {
	Namespace  string       `json:"Namespace"`
	Dimensions [][]string   `json:"Dimensions"`
	Metrics    []definition `json:"Metrics"`
}

type metadata struct {
	Timestamp         int64       `json:"Timestamp"` // epoch milliseconds
	CloudWatchMetrics []directive `json:"CloudWatchMetrics"`
}

func (m *Metrics) flush() {
	for d, g := range m.groups {
		dims := []string{"FunctionName"}
		line := map[string]any{"FunctionName": m.function}
		if d.Name != "" {
			dims = append(dims, d.Name)
			line[d.Name] = d.Value
		}
		dir := directive{Namespace: Namespace, Dimensions: [][]string{dims}}
		for _, name := range slices.Sorted(maps.Keys(g)) {
			dir.Metrics = append(dir.Metrics, definition{Name: name, Unit: g[name].unit})
			line[name] = g[name].values
			if len(g[name].values) == 1 {
				line[name] = g[name].values[0]
			}
		}
		line["_aws"] = metadata{Timestamp: m.now().UnixMilli(), CloudWatchMetrics: []directive{dir}}
		if b, err := json.Marshal(line); err == nil {
			_, _ = m.w.Write(append(b, '\n')) // one write a line; see Flush about errors
		}
	}
	clear(m.groups)
}

// Flushed returns h, followed by a Flush after each invocation.
func Flushed[In, Out any](m *Metrics, h func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (Out, error) {
		defer m.Flush()
		return h(ctx, in)
	}
}
