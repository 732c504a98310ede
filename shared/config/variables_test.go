package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRequired(t *testing.T) {
	assert.Equal(t, []string{"LLM_MODEL", "REDIS_ADDR"}, Required[Start]())
	assert.Equal(t, []string{"LLM_API_KEY", "LLM_BASE_URL", "REDIS_ADDR"}, Required[Worker]())
	assert.Equal(t, []string{"REDIS_ADDR"}, Required[Sweeper]())
	assert.Empty(t, Required[Local](), "the local stack runs with nothing configured")
}

func TestVariables(t *testing.T) {
	assert.Equal(t, []string{
		"LOG_LEVEL", "REDIS_ADDR", "REDIS_AUTH", "REDIS_IAM_CACHE_NAME", "REDIS_MODE", "REDIS_PASSWORD", "REDIS_TLS",
		"REDIS_USERNAME", "TENANT_CLAIM",
	}, Variables[Status]())
	assert.Subset(t, Variables[Start](), Required[Start]())
}
