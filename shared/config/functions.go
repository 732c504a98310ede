package config

import "time"

// Start is what functions/start reads. It needs no key and no URL of the model.
type Start struct {
	Log
	Redis
	Dispatch
	Model
	Job
	Limits
	Tenant
}

func (c *Start) check(p *problems) {
	inLambda(p, &c.Redis)
	c.Dispatch.check(p)
	p.require("LLM_MODEL", "name the model that jobs are fixed to")
	c.Model.check(p)
	c.Job.check(p)
	c.Limits.check(p)
	c.Tenant.check(p)
}

// Worker is what functions/worker reads. The model's name and sampling come with
// the job, as start fixed them.
type Worker struct {
	Log
	Redis
	LLM
	Calls
	Job
	Memo
}

func (c *Worker) check(p *problems) {
	inLambda(p, &c.Redis)
	p.require("LLM_BASE_URL", "give the URL of the OpenAI-compatible model, ending in /v1 for most")
	if !p.set("LLM_API_KEY_SECRET_ARN") {
		p.require("LLM_API_KEY", "give LLM_API_KEY_SECRET_ARN (better) or the key itself")
	}
	c.LLM.check(p)
	c.Job.check(p)
	c.checkWithin(p, c.JobDeadline)
	c.Memo.check(p)
}

// Status is what functions/status reads.
type Status struct {
	Log
	Redis
	Tenant
}

func (c *Status) check(p *problems) {
	inLambda(p, &c.Redis)
	c.Tenant.check(p)
}

// Apply is what functions/apply reads.
type Apply struct {
	Log
	Redis
	Table
	Job
	Tenant
}

func (c *Apply) check(p *problems) {
	inLambda(p, &c.Redis)
	c.Table.check(p)
	c.Job.check(p)
	c.Tenant.check(p)
}

// Comments is what functions/comments reads.
type Comments struct {
	Log
	Redis
	Table
	Job
	Tenant
}

func (c *Comments) check(p *problems) { (*Apply)(c).check(p) }

// Sweeper is what functions/sweeper reads.
type Sweeper struct {
	Log
	Redis
	Dispatch
	Job
}

func (c *Sweeper) check(p *problems) {
	inLambda(p, &c.Redis)
	c.Dispatch.check(p)
	c.Job.check(p)
}

func inLambda(p *problems, r *Redis) {
	p.require("REDIS_ADDR", "give the host:port of Redis")
	r.check(p)
}

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

	HTTPAddr string `env:"HTTP_ADDR" envDefault:"127.0.0.1:8080"`
	// RetryDelays are the waits before an asynchronous invocation is repeated.
	RetryDelays []time.Duration `env:"LOCAL_INVOKE_RETRY_DELAYS" envDefault:"1s,2s"`
	// Duplicates is the share of events delivered twice, 0 to 1.
	Duplicates   float64       `env:"LOCAL_INVOKE_DUPLICATES" envDefault:"0"`
	TenantHeader Switch        `env:"LOCAL_TENANT_HEADER" envDefault:"off"`
	SweepEvery   time.Duration `env:"SWEEP_EVERY" envDefault:"5s"`

	// The SDK reads these itself; the stack only asks whether they are given.
	LambdaEndpoint   string `env:"AWS_ENDPOINT_URL_LAMBDA"`
	DynamoDBEndpoint string `env:"AWS_ENDPOINT_URL_DYNAMODB"`
}

// openAI is where a key without a URL belongs.
const openAI = "https://api.openai.com/v1"

// StandInLLM reports whether no model is configured, so that the offline
// stand-in answers.
func (c *Local) StandInLLM() bool { return c.LLMBaseURL == "" }

func (c *Local) check(p *problems) {
	c.Redis.check(p)
	c.Table.check(p)
	c.Dispatch.check(p)
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
