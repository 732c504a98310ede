package config

import "time"

// Local is what the local stack reads: everything, and its own variables.
type Local struct {
	Log
	Redis
	Table
	Dispatch
	Model
	LLM
	Calls
	Job
	Limits
	Tenant

	HTTPAddr string `env:"HTTP_ADDR" envDefault:"127.0.0.1:8080"`
	// RetryDelays are the waits before an asynchronous invocation is repeated.
	RetryDelays []time.Duration `env:"LOCAL_INVOKE_RETRY_DELAYS" envDefault:"1s,2s"`
	// Duplicates is the share of events delivered twice, 0 to 1.
	Duplicates float64 `env:"LOCAL_INVOKE_DUPLICATES" envDefault:"0"`
	// TenantHeader makes the header X-Sunhwa-Tenant the caller's identity.
	TenantHeader Switch        `env:"LOCAL_TENANT_HEADER" envDefault:"off"`
	SweepEvery   time.Duration `env:"SWEEP_EVERY" envDefault:"5s"`

	// URLs of what takes the place of the embedded endpoints; empty: embedded.
	LambdaEndpoint   string `env:"AWS_ENDPOINT_URL_LAMBDA"`
	DynamoDBEndpoint string `env:"AWS_ENDPOINT_URL_DYNAMODB"`
}

// openAI is where a key without a URL belongs.
const openAI = "https://api.openai.com/v1"

// StandInLLM reports whether no model is configured, so that the offline
// stand-in answers.
func (c *Local) StandInLLM() bool { return c.LLMBaseURL == "" }

// FunctionNames maps the functions' short names to those under which the local
// stack invokes them. No two are the same once c was loaded.
func (c *Local) FunctionNames() map[string]string {
	names := map[string]string{"worker": c.WorkerName()}
	for _, short := range []string{"start", "status", "apply", "comments", "sweeper"} {
		names[short] = "sunhwa-" + short
	}
	return names
}

func (c *Local) check(p *problems) {
	c.Redis.check(p)
	c.embeddedRedis(p)
	c.Table.check(p)
	c.Dispatch.check(p)
	for short, name := range c.FunctionNames() {
		if short != "worker" && name == c.WorkerName() {
			p.add("WORKER_FUNCTION_NAME", "%s is the local stack's own %s function; give the worker another name", quoted(name), short)
		}
	}
	c.Model.check(p)
	c.LLM.check(p)
	if p.set("LLM_API_KEY") || p.set("LLM_API_KEY_SECRET_ARN") || p.set("LLM_BASE_URL") {
		p.require("LLM_MODEL", "a model is configured by LLM_API_KEY or LLM_BASE_URL; name it")
		if c.LLMBaseURL == "" {
			c.LLMBaseURL = openAI
		}
	}
	c.Job.check(p)
	c.checkWithin(p, c.JobDeadline)
	c.Limits.check(p)
	c.Tenant.check(p)
	p.httpURL("AWS_ENDPOINT_URL_LAMBDA", c.LambdaEndpoint, "write it as http://127.0.0.1:3001")
	p.httpURL("AWS_ENDPOINT_URL_DYNAMODB", c.DynamoDBEndpoint, "write it as http://127.0.0.1:8000")
	if _, _, ok := split(c.HTTPAddr); !ok {
		p.add("HTTP_ADDR", "%s is not host:port; write it as 127.0.0.1:8080", quoted(c.HTTPAddr))
	}
	if c.Duplicates < 0 || c.Duplicates > 1 {
		p.add("LOCAL_INVOKE_DUPLICATES", "%v is not a share; give 0 to 1", c.Duplicates)
	}
	if c.SweepEvery <= 0 {
		p.add("SWEEP_EVERY", "%s is not positive; write it as 5s", c.SweepEvery)
	}
}

// embeddedRedis refuses what says how to reach a Redis when none is named: the
// embedded one would silently ignore it.
func (c *Local) embeddedRedis(p *problems) {
	if p.set("REDIS_ADDR") {
		return
	}
	for variable, asked := range map[string]bool{
		"REDIS_MODE": c.RedisMode != Standalone,
		"REDIS_TLS":  bool(c.RedisTLS),
		"REDIS_AUTH": c.RedisAuth != AuthNone,
	} {
		if asked {
			p.add(variable, "is for a real Redis, not for the embedded one; name yours by REDIS_ADDR, or unset it")
		}
	}
}
