package config

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
