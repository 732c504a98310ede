package prompt

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func ptr[T any](v T) *T { return &v }

// A released prompt is part of running jobs and of memo keys: to change a text,
// add a version.
func TestVersions_releasedTextsNeverChange(t *testing.T) {
	want := map[string]string{"v1": "2a2b629cd70831da"}
	require.Len(t, versions, len(want))
	for id, v := range versions {
		sum := sha256.Sum256([]byte(v.system + "\x00" + v.json))
		assert.Equal(t, want[id], hex.EncodeToString(sum[:8]), id)
	}
}

func TestSystem(t *testing.T) {
	s, ok := System(Current)
	require.True(t, ok)
	assert.NotContains(t, s, "JSON")
	_, ok = System("no such version")
	assert.False(t, ok)
	_, ok = SystemFor("no such version", Options{})
	assert.False(t, ok)

	for f, wantJSON := range map[string]bool{"": false, FormatText: false, FormatJSONObject: true, FormatJSONSchema: true} {
		got, ok := SystemFor(Current, Options{ResponseFormat: f})
		require.True(t, ok)
		if wantJSON {
			assert.Contains(t, got, "JSON", f)
		} else {
			assert.Equal(t, s, got, f)
		}
	}
}

func TestOptions_encodeIsCanonicalAndDecodes(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{}, `{}`},
		{Options{Temperature: ptr(float32(0))}, `{"temperature":0}`},
		{Options{Temperature: ptr(float32(math.Copysign(0, -1)))}, `{"temperature":0}`},
		{Options{Temperature: ptr(float32(0.2))}, `{"temperature":0.2}`},
		{Options{MaxTokens: ptr(300)}, `{"maxTokens":300}`},
		{Options{Temperature: ptr(float32(1)), MaxCompletionTokens: ptr(9), ResponseFormat: FormatJSONObject},
			`{"temperature":1,"maxCompletionTokens":9,"responseFormat":"json_object"}`},
	} {
		got := c.o.Encode()
		assert.Equal(t, c.want, got)
		back, err := Decode(got)
		require.NoError(t, err)
		assert.Equal(t, got, back.Encode())
	}
	zero, err := Decode("")
	require.NoError(t, err)
	assert.Equal(t, Options{}, zero)
}

func TestDecode_refusesWhatItWouldOtherwiseIgnore(t *testing.T) {
	for _, s := range []string{
		`{"topP":1}`, `{} {}`, `[]`, `nonsense`, `{"temperature":3}`, `{"temperature":-1}`,
		`{"maxTokens":0}`, `{"maxCompletionTokens":-5}`, `{"responseFormat":"xml"}`,
		Options{Temperature: ptr(float32(math.NaN()))}.Encode(),
	} {
		_, err := Decode(s)
		assert.ErrorIs(t, err, ErrOptions, s)
	}
}
