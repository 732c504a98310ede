package spec

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/shared/config"
	"sunhwa/shared/rewrite/prompt"
)

func TestOf_carriesOnlyWhatIsSet(t *testing.T) {
	s := Of(config.Model{LLMModel: "m"})
	assert.Equal(t, "m", s.Model)
	assert.Equal(t, prompt.Current, s.PromptVersion)
	assert.Equal(t, prompt.Options{}.Encode(), s.Options)

	temperature, tokens := 0.0, 50
	s = Of(config.Model{LLMModel: "m", LLMTemperature: &temperature, LLMMaxTokens: &tokens, LLMResponseFormat: "json_object"})
	o, err := prompt.Decode(s.Options)
	require.NoError(t, err)
	assert.InDelta(t, 0, *o.Temperature, 0, "a temperature of 0 is set, not absent")
	assert.Equal(t, 50, *o.MaxTokens)
	assert.Nil(t, o.MaxCompletionTokens)
	assert.Equal(t, "json_object", o.ResponseFormat)
}

// Every format that configuration lets through is one that the prompt knows.
func TestOf_formatsAgree(t *testing.T) {
	for _, f := range []string{prompt.FormatText, prompt.FormatJSONObject, prompt.FormatJSONSchema} {
		_, err := config.Load[config.Start](map[string]string{"REDIS_ADDR": "r:1", "LLM_MODEL": "m", "LLM_RESPONSE_FORMAT": f})
		require.NoError(t, err)
		require.NoError(t, prompt.Options{ResponseFormat: f}.Validate())
	}
}
