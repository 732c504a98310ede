package boot

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/shared/config"
)

func TestReport_isOneLineWithEveryVariable(t *testing.T) {
	_, err := config.Load[config.Start](map[string]string{"JOB_LEASE": "x"})
	require.Error(t, err)
	var b bytes.Buffer
	report(&b, err)
	require.Equal(t, 1, bytes.Count(b.Bytes(), []byte("\n")))
	var line map[string]string
	require.NoError(t, json.Unmarshal(b.Bytes(), &line))
	for _, v := range []string{"REDIS_ADDR", "LLM_MODEL", "JOB_LEASE"} {
		assert.Contains(t, line["error"], v)
	}
}

func TestMust_returnsTheValue(t *testing.T) {
	assert.Equal(t, 3, Must(3, nil))
}

func TestTools_levelIsKept(t *testing.T) {
	old := slog.Default()
	t.Cleanup(func() { slog.SetDefault(old) })
	log, metrics := Tools(slog.LevelError)
	assert.False(t, log.Enabled(t.Context(), slog.LevelWarn))
	assert.NotNil(t, metrics)
}
