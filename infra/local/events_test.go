package local_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/infra/local/invoke"
	"sunhwa/shared/job"
)

// Every event in events/ is one its function understands.
func TestEvents(t *testing.T) {
	functions := map[string]invoke.Function{}
	m := newModel(t)
	m.hold = make(chan struct{})
	defer close(m.hold)
	up(t, settings(t, m, nil), nil, func(name string, f invoke.Function) invoke.Function {
		functions[name] = f
		return f
	})
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join("../../events", name))
		require.NoError(t, err)
		return b
	}
	for _, tt := range []struct {
		file, function string
		status         int
	}{
		{"start.json", "start", 202},
		{"start-base64.json", "start", 200}, // the same job
		{"start-jwt.json", "start", 200},
		{"status.json", "status", 404},
		{"apply.json", "apply", 404},
		{"comments-read.json", "comments", 404},
		{"results.json", "status", 404},
		{"latest.json", "status", 200}, // of the job that start.json started
		{"cancel.json", "status", 404},
		{"comments-erase.json", "comments", 204},
	} {
		b := read(tt.file)
		d := json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields()
		var e events.APIGatewayV2HTTPRequest
		require.NoError(t, d.Decode(&e), tt.file)
		assert.Equal(t, "2.0", e.Version)
		assert.NotNil(t, e.RequestContext.Authorizer, "the template insists on one")
		out, err := functions[tt.function].Invoke(t.Context(), b)
		require.NoError(t, err, tt.file)
		var resp events.APIGatewayV2HTTPResponse
		require.NoError(t, json.Unmarshal(out, &resp))
		assert.Equal(t, tt.status, resp.StatusCode, "%s: %s", tt.file, resp.Body)
	}

	var ev job.Event
	require.NoError(t, json.Unmarshal(read("worker.json"), &ev))
	_, err := ev.Ref()
	require.NoError(t, err, "an id of its target")
	_, err = functions["worker"].Invoke(t.Context(), read("worker.json"))
	require.NoError(t, err, "a job that is gone is no error")

	out, err := functions["sweeper"].Invoke(t.Context(), read("sweeper.json"))
	require.NoError(t, err)
	assert.Contains(t, string(out), `"shards":1024`)

	var record invoke.Record
	d := json.NewDecoder(bytes.NewReader(read("worker-on-failure.json")))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&record))
	require.NoError(t, json.Unmarshal(record.RequestPayload, &ev))
	_, err = ev.Ref()
	require.NoError(t, err)

	found, err := filepath.Glob("../../events/*.json")
	require.NoError(t, err)
	assert.Len(t, found, 14, "a new event belongs into this test")
}
