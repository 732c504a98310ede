// Package spec makes, from configuration, what start fixes in a job about its
// model. It links no client of one.
package spec

import (
	"sunhwa/shared/config"
	"sunhwa/shared/job"
	"sunhwa/shared/rewrite/prompt"
)

// Of returns the model's name, the current prompt version and the sampling
// options, of which only those that are set.
func Of(c config.Model) job.Spec {
	o := prompt.Options{
		MaxTokens:           c.LLMMaxTokens,
		MaxCompletionTokens: c.LLMMaxCompletionTokens,
		ResponseFormat:      string(c.LLMResponseFormat),
	}
	if c.LLMTemperature != nil {
		t := float32(*c.LLMTemperature)
		o.Temperature = &t
	}
	return job.Spec{Model: c.LLMModel, PromptVersion: prompt.Current, Options: o.Encode()}
}
