package config

import (
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// start and worker are the least each needs.
func start(more ...string) map[string]string {
	return with(map[string]string{"REDIS_ADDR": "r:6379", "LLM_MODEL": "m"}, more)
}

func worker(more ...string) map[string]string {
	return with(map[string]string{"REDIS_ADDR": "r:6379", "LLM_BASE_URL": "https://llm.example/v1", "LLM_API_KEY": "k"}, more)
}

func with(m map[string]string, pairs []string) map[string]string {
	m = maps.Clone(m)
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return m
}

// problemsOf returns what Load says, by variable.
func problemsOf(t *testing.T, err error) map[string]string {
	t.Helper()
	var e *Error
	require.ErrorAs(t, err, &e)
	m := map[string]string{}
	for _, p := range e.Problems {
		m[p.Variable] = p.Reason
		assert.Contains(t, err.Error(), p.Variable+": "+p.Reason)
	}
	return m
}

func TestLoad_defaults(t *testing.T) {
	c, err := Load[Local](map[string]string{})
	require.NoError(t, err)
	assert.Empty(t, c.RedisAddrs)
	assert.Equal(t, Standalone, c.RedisMode)
	assert.False(t, bool(c.RedisTLS))
	assert.Equal(t, AuthNone, c.RedisAuth)
	assert.Equal(t, "sunhwa-comments", c.TableName)
	assert.Equal(t, "sunhwa-worker", c.WorkerFunctionName)
	assert.True(t, c.StandInLLM())
	assert.Nil(t, c.LLMTemperature)
	assert.Nil(t, c.LLMMaxTokens)
	assert.Nil(t, c.LLMMaxCompletionTokens)
	assert.Empty(t, c.LLMResponseFormat)
	assert.Equal(t, 16, c.LLMConcurrency)
	assert.Equal(t, time.Minute, c.LLMTimeout)
	assert.Equal(t, 5, c.LLMMaxRetries)
	assert.Equal(t, 10*time.Minute, c.JobDeadline)
	assert.Equal(t, 24*time.Hour, c.JobRetention)
	assert.Equal(t, 45*time.Second, c.JobLease)
	assert.Equal(t, 3, c.JobMaxAttempts)
	assert.Equal(t, 1000, c.MaxComments)
	assert.Equal(t, 2000, c.MaxCommentChars)
	assert.Equal(t, 2_000_000, c.MaxBodyBytes)
	assert.Zero(t, c.MaxJobTokens)
	assert.Equal(t, "127.0.0.1:8080", c.HTTPAddr)
	assert.Equal(t, []time.Duration{time.Second, 2 * time.Second}, c.RetryDelays)
	assert.Zero(t, c.Duplicates)
	assert.False(t, bool(c.TenantHeader))
	assert.Equal(t, 5*time.Second, c.SweepEvery)
	assert.Equal(t, slog.LevelInfo, c.LogLevel.Level())
}

func TestLoad_readsEveryValue(t *testing.T) {
	c, err := Load[Local](map[string]string{
		"REDIS_ADDR": "a:1, b:2", "REDIS_MODE": "cluster", "REDIS_TLS": "on", "REDIS_AUTH": "password",
		"REDIS_USERNAME": "u", "REDIS_PASSWORD": "p", "TABLE_NAME": "table", "WORKER_FUNCTION_NAME": "w:live",
		"LLM_BASE_URL": "http://127.0.0.1:9/v1", "LLM_MODEL": "m", "LLM_TEMPERATURE": "0.3", "LLM_MAX_TOKENS": "99",
		"LLM_RESPONSE_FORMAT": "json_object", "LLM_CONCURRENCY": "4", "LLM_TIMEOUT": "7s", "LLM_MAX_RETRIES": "0",
		"JOB_DEADLINE": "14m", "JOB_RETENTION": "5s", "JOB_LEASE": "1s", "JOB_MAX_ATTEMPTS": "1", "MAX_COMMENTS": "10000",
		"MAX_JOB_TOKENS": "5", "LOCAL_INVOKE_RETRY_DELAYS": "0s, 1m", "LOCAL_INVOKE_DUPLICATES": "1",
		"LOCAL_TENANT_HEADER": "on", "SWEEP_EVERY": "1s", "HTTP_ADDR": ":0", "LOG_LEVEL": "debug",
		"AWS_ENDPOINT_URL_LAMBDA": "http://l", "AWS_ENDPOINT_URL_DYNAMODB": "http://d",
	})
	require.NoError(t, err)
	assert.Equal(t, []string{"a:1", "b:2"}, c.RedisAddrs)
	assert.Equal(t, Cluster, c.RedisMode)
	assert.True(t, bool(c.RedisTLS))
	assert.Equal(t, "p", c.RedisPassword.Reveal())
	assert.InDelta(t, 0.3, *c.LLMTemperature, 0)
	assert.Equal(t, 99, *c.LLMMaxTokens)
	assert.Equal(t, ResponseFormat("json_object"), c.LLMResponseFormat)
	assert.Equal(t, 7*time.Second, c.LLMTimeout)
	assert.Zero(t, c.LLMMaxRetries)
	assert.Equal(t, time.Second, c.JobLease)
	assert.Equal(t, []time.Duration{0, time.Minute}, c.RetryDelays)
	assert.InDelta(t, 1, c.Duplicates, 0)
	assert.Equal(t, slog.LevelDebug, c.LogLevel.Level())
	assert.False(t, c.StandInLLM())
	assert.Equal(t, "http://l", c.LambdaEndpoint)
	assert.Equal(t, "http://d", c.DynamoDBEndpoint)
}

func TestLoad_derivedDefaults(t *testing.T) {
	for deadline, want := range map[string][2]time.Duration{ // timeout, lease
		"10m": {time.Minute, 45 * time.Second},
		"61s": {time.Minute, 45 * time.Second},
		"60s": {30 * time.Second, 45 * time.Second},
		"45s": {22500 * time.Millisecond, 11250 * time.Millisecond},
		"2s":  {time.Second, 500 * time.Millisecond},
		"4ms": {2 * time.Millisecond, time.Millisecond},
	} {
		c, err := Load[Worker](worker("JOB_DEADLINE", deadline))
		require.NoError(t, err, deadline)
		assert.Equal(t, want, [2]time.Duration{c.LLMTimeout, c.JobLease}, deadline)
	}
}

func TestLoad_requiredInLambda(t *testing.T) {
	_, err := Load[Start](map[string]string{"REDIS_ADDR": ""})
	assert.Len(t, problemsOf(t, err), 2, "REDIS_ADDR and LLM_MODEL; no key, no URL")
	_, err = Load[Worker](map[string]string{})
	p := problemsOf(t, err)
	assert.Len(t, p, 3)
	assert.Contains(t, p, "LLM_BASE_URL")
	assert.Contains(t, p, "LLM_API_KEY")
	for _, load := range []func(map[string]string) error{
		func(m map[string]string) error { _, err := Load[Status](m); return err },
		func(m map[string]string) error { _, err := Load[Apply](m); return err },
		func(m map[string]string) error { _, err := Load[Comments](m); return err },
		func(m map[string]string) error { _, err := Load[Sweeper](m); return err },
	} {
		assert.Equal(t, []string{"REDIS_ADDR"}, sortedKeys(anyMap(problemsOf(t, load(map[string]string{})))))
		assert.NoError(t, load(map[string]string{"REDIS_ADDR": "r:1"}))
	}
	arn := "arn:aws:secretsmanager:eu-west-1:123456789012:secret:llm-AbCdEf"
	env := worker("LLM_API_KEY_SECRET_ARN", arn)
	delete(env, "LLM_API_KEY")
	c, err := Load[Worker](env)
	require.NoError(t, err)
	assert.Equal(t, arn, c.LLMAPIKeySecret)
}

func TestLoad_refusals(t *testing.T) {
	for _, row := range []struct{ variable, value string }{
		{"REDIS_ADDR", "r"}, {"REDIS_ADDR", "redis://r:6379"}, {"REDIS_ADDR", ":6379"}, {"REDIS_ADDR", "r:0"},
		{"REDIS_ADDR", "r:70000"}, {"REDIS_ADDR", "a:1,,b:2"}, {"REDIS_ADDR", "a:1,b:2"},
		{"REDIS_MODE", "sentinel"}, {"REDIS_TLS", "true"}, {"REDIS_AUTH", "aws"},
		{"REDIS_MODE", "cluster"}, {"REDIS_TLS", "on"},
		{"REDIS_PASSWORD", "unused"}, {"REDIS_USERNAME", "unused"}, {"REDIS_IAM_CACHE_NAME", "unused"},
		{"TABLE_NAME", "a"}, {"TABLE_NAME", "a b c"}, {"WORKER_FUNCTION_NAME", "a b"}, {"WORKER_FUNCTION_NAME", ":live"},
		{"WORKER_FUNCTION_NAME", "sunhwa-start"}, {"WORKER_FUNCTION_NAME", "sunhwa-sweeper:live"},
		{"WORKER_FUNCTION_NAME", "arn:aws:lambda:eu-west-1:123456789012:function:sunhwa-comments:1"},
		{"AWS_ENDPOINT_URL_LAMBDA", "localhost:3001"}, {"AWS_ENDPOINT_URL_LAMBDA", "nonsense"}, {"AWS_ENDPOINT_URL_LAMBDA", "ftp://x"},
		{"AWS_ENDPOINT_URL_DYNAMODB", "http://"}, {"AWS_ENDPOINT_URL_DYNAMODB", "http://:8000"}, {"AWS_ENDPOINT_URL_DYNAMODB", "//h:8000"},
		{"AWS_ENDPOINT_URL_DYNAMODB", "http://h:99999"}, {"AWS_ENDPOINT_URL_DYNAMODB", "http://h:x"}, {"AWS_ENDPOINT_URL_DYNAMODB", "http://u:p@h"},
		{"TENANT_CLAIM", " "}, {"TENANT_CLAIM", "a b"}, {"TENANT_CLAIM", "sub\n"}, {"TENANT_CLAIM", "a\x01"}, {"TENANT_CLAIM", "a\x7f"},
		{"TENANT_CLAIM", "\u3000"}, {"TENANT_CLAIM", "a\u00a0"}, {"TENANT_CLAIM", "\u200b"}, {"TENANT_CLAIM", "a\xff"},
		{"LLM_BASE_URL", "llm.example/v1"}, {"LLM_BASE_URL", "ftp://x"}, {"LLM_BASE_URL", "https://u:p@x/v1"},
		{"LLM_API_KEY_SECRET_ARN", "sk-pasted-here"}, {"LLM_API_KEY", "a\nb"},
		{"LLM_TEMPERATURE", "warm"}, {"LLM_TEMPERATURE", "2.1"}, {"LLM_TEMPERATURE", "-1"}, {"LLM_TEMPERATURE", "NaN"},
		{"LLM_MAX_TOKENS", "0"}, {"LLM_MAX_COMPLETION_TOKENS", "-1"}, {"LLM_RESPONSE_FORMAT", "xml"},
		{"LLM_CONCURRENCY", "0"}, {"LLM_CONCURRENCY", "x"}, {"LLM_CONCURRENCY", "99999999999999999999"}, {"LLM_MAX_RETRIES", "-1"},
		{"LLM_TIMEOUT", "10m"}, {"LLM_TIMEOUT", "0s"}, {"LLM_TIMEOUT", "-1s"}, {"LLM_TIMEOUT", "60"},
		{"JOB_DEADLINE", "14m1ms"}, {"JOB_DEADLINE", "0s"}, {"JOB_DEADLINE", "-1m"}, {"JOB_DEADLINE", "10 minutes"},
		{"JOB_RETENTION", "4999ms"}, {"JOB_LEASE", "10m"}, {"JOB_LEASE", "0s"}, {"JOB_MAX_ATTEMPTS", "0"},
		{"MAX_COMMENTS", "0"}, {"MAX_COMMENTS", "10001"}, {"MAX_COMMENT_CHARS", "0"}, {"MAX_BODY_BYTES", "-5"},
		{"MAX_BODY_BYTES", "6291457"}, {"MAX_JOB_TOKENS", "-1"},
		{"HTTP_ADDR", "8080"}, {"LOCAL_INVOKE_RETRY_DELAYS", "1s,x"}, {"LOCAL_INVOKE_RETRY_DELAYS", "-1s"},
		{"LOCAL_INVOKE_DUPLICATES", "1.1"}, {"LOCAL_INVOKE_DUPLICATES", "-0.1"}, {"LOCAL_TENANT_HEADER", "yes"},
		{"SWEEP_EVERY", "0s"}, {"LOG_LEVEL", "trace"},
	} {
		t.Run(fmt.Sprintf("%s=%q", row.variable, row.value), func(t *testing.T) {
			env := map[string]string{"LLM_MODEL": "m", row.variable: row.value}
			_, err := Load[Local](env)
			p := problemsOf(t, err)
			assert.Len(t, p, 1, "only what is wrong: %v", p)
			assert.Contains(t, p, row.variable)
		})
	}
	_, err := Load[Start](start("TENANT_CLAIM", "a\x01b"))
	assert.Contains(t, problemsOf(t, err), "TENANT_CLAIM")
}

func TestLoad_tenantClaimNames(t *testing.T) {
	for _, name := range []string{"sub", "accountId", "cognito:groups", "https://sunhwa.example/tenant", "회사"} {
		c, err := Load[Local](map[string]string{"TENANT_CLAIM": name})
		require.NoError(t, err, name)
		assert.Equal(t, name, c.TenantClaim)
	}
}

// What is wrong under every deadline, authentication or address is reported beside
// a bad one; what a good one may heal is not.
func TestLoad_oneBadVariableHidesNoOther(t *testing.T) {
	for _, row := range []struct {
		env  map[string]string
		want []string
	}{
		{map[string]string{"JOB_DEADLINE": "20m", "LLM_TIMEOUT": "0s", "JOB_LEASE": "2h"}, []string{"JOB_DEADLINE", "JOB_LEASE", "LLM_TIMEOUT"}},
		{map[string]string{"JOB_DEADLINE": "soon", "LLM_TIMEOUT": "14m", "JOB_LEASE": "-1s"}, []string{"JOB_DEADLINE", "JOB_LEASE", "LLM_TIMEOUT"}},
		{map[string]string{"JOB_DEADLINE": "20m", "LLM_TIMEOUT": "13m", "JOB_LEASE": "1m"}, []string{"JOB_DEADLINE"}},
		{map[string]string{"JOB_DEADLINE": "0s"}, []string{"JOB_DEADLINE"}},
		{map[string]string{"REDIS_MODE": "cluster", "REDIS_TLS": "on", "REDIS_AUTH": "password", "JOB_LEASE": "x"},
			[]string{"JOB_LEASE", "REDIS_AUTH", "REDIS_MODE", "REDIS_PASSWORD", "REDIS_TLS"}},
		{map[string]string{"REDIS_ADDR": "r:1", "REDIS_AUTH": "aws", "REDIS_IAM_CACHE_NAME": "Big"}, []string{"REDIS_AUTH", "REDIS_IAM_CACHE_NAME"}},
	} {
		_, err := Load[Local](row.env)
		assert.Equal(t, row.want, sortedKeys(anyMap(problemsOf(t, err))), "%v", row.env)
	}
	_, err := Load[Local](map[string]string{"REDIS_MODE": "standalone", "REDIS_TLS": "off", "REDIS_AUTH": "none"})
	require.NoError(t, err, "what the embedded Redis is may be said")
}

func TestLocal_FunctionNames(t *testing.T) {
	for value, want := range map[string]string{
		"sunhwa-worker": "sunhwa-worker", "w:live": "w", "123456789012:function:w": "w",
		"arn:aws:lambda:eu-west-1:123456789012:function:w:live": "w",
	} {
		c, err := Load[Local](map[string]string{"WORKER_FUNCTION_NAME": value})
		require.NoError(t, err, value)
		names := c.FunctionNames()
		assert.Equal(t, want, names["worker"])
		distinct := map[string]bool{}
		for _, name := range names {
			distinct[name] = true
		}
		assert.Len(t, distinct, 6)
	}
	// In the cloud the other functions have other names.
	_, err := Load[Start](start("WORKER_FUNCTION_NAME", "sunhwa-start"))
	require.NoError(t, err)
}

func TestLoad_iam(t *testing.T) {
	good := []string{"REDIS_AUTH", "iam", "REDIS_TLS", "on", "REDIS_USERNAME", "app", "REDIS_IAM_CACHE_NAME", "my-cache"}
	_, err := Load[Status](with(start(), good))
	require.NoError(t, err)
	for _, row := range [][3]string{
		{"REDIS_TLS", "off", "REDIS_TLS"},
		{"REDIS_USERNAME", "", "REDIS_USERNAME"},
		{"REDIS_IAM_CACHE_NAME", "", "REDIS_IAM_CACHE_NAME"},
		{"REDIS_IAM_CACHE_NAME", "My-Cache", "REDIS_IAM_CACHE_NAME"},
		{"REDIS_PASSWORD", "x", "REDIS_PASSWORD"},
	} {
		_, err := Load[Status](with(with(start(), good), []string{row[0], row[1]}))
		p := problemsOf(t, err)
		assert.Len(t, p, 1, row)
		assert.Contains(t, p, row[2])
	}
}

func TestLoad_reportsAllTogetherAndNoSecret(t *testing.T) {
	_, err := Load[Worker](map[string]string{
		"REDIS_ADDR": "redis://u:marker1@r:6379", "REDIS_PASSWORD": "marker2", "REDIS_MODE": "x",
		"LLM_API_KEY": "marker3\n", "LLM_API_KEY_SECRET_ARN": "marker4", "LLM_BASE_URL": "https://u:marker5@h/v1",
		"JOB_DEADLINE": "1h", "JOB_LEASE": "soon", "LLM_CONCURRENCY": "0", "LOG_LEVEL": "loud",
	})
	p := problemsOf(t, err)
	assert.Len(t, p, 10)
	assert.NotContains(t, err.Error(), "marker")
	assert.Contains(t, p["JOB_LEASE"], "45s or 10m", "says what to write")
}

func TestSecret_isNeverShown(t *testing.T) {
	c, err := Load[Worker](worker("LLM_API_KEY", "marker"))
	require.NoError(t, err)
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "cfg", c, "key", c.LLMAPIKey)
	assert.NotContains(t, log.String()+fmt.Sprintf("%v %+v %#v %s", c, c, c, c.LLMAPIKey), "marker")
	assert.Equal(t, "marker", c.LLMAPIKey.Reveal())
}

func TestLocal_aKeyAloneIsOpenAI(t *testing.T) {
	c, err := Load[Local](map[string]string{"LLM_API_KEY": "k", "LLM_MODEL": "m"})
	require.NoError(t, err)
	assert.Equal(t, "https://api.openai.com/v1", c.LLMBaseURL)
	_, err = Load[Local](map[string]string{"LLM_API_KEY": "k"})
	assert.Contains(t, problemsOf(t, err), "LLM_MODEL")
}

func TestFields_areUnique(t *testing.T) {
	for _, c := range []any{Start{}, Worker{}, Status{}, Apply{}, Comments{}, Sweeper{}, Local{}} {
		typ := reflect.TypeOf(c)
		assert.Len(t, variables(typ), countFields(typ), typ.Name())
	}
}

func countFields(t reflect.Type) int {
	n := 0
	for i := range t.NumField() {
		if f := t.Field(i); f.Anonymous {
			n += countFields(f.Type)
		} else {
			n++
		}
	}
	return n
}

func anyMap(m map[string]string) map[string]any {
	out := map[string]any{}
	for k, v := range m {
		out[k] = v
	}
	return out
}
