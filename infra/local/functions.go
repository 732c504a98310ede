package local

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"sunhwa/infra/local/invoke"
	"sunhwa/shared/config"
	"sunhwa/shared/handler"
	"sunhwa/shared/job"
	"sunhwa/shared/wire/spec"
)

// httpTimeout is the run time of the functions behind the front, which waits no
// longer for them.
const httpTimeout = 30 * time.Second

// functions returns the handlers of the Lambda functions by their short names,
// each behind the SDK's own decoding of events, and their run times.
func (d *deps) functions(cfg *config.Local, log *slog.Logger) (map[string]invoke.Function, map[string]time.Duration) {
	claim, _ := tenancy(cfg)
	start := handler.NewStart(d.store, d.dispatcher, handler.StartOptions{
		TenantClaim: claim, MaxComments: cfg.MaxComments, MaxCommentChars: cfg.MaxCommentChars,
		MaxBodyBytes: cfg.MaxBodyBytes, Spec: d.spec(cfg), Deadline: cfg.JobDeadline,
		Retention: cfg.JobRetention, Lease: cfg.JobLease, Logger: log,
	})
	status := handler.NewStatus(d.store, handler.StatusOptions{TenantClaim: claim, Logger: log})
	apply := handler.NewApply(d.store, d.table, handler.ApplyOptions{TenantClaim: claim, Logger: log})
	comments := handler.NewComments(d.store, d.table, handler.CommentsOptions{TenantClaim: claim, Logger: log})
	worker := handler.NewWorker(d.store, d.rewriter, handler.WorkerOptions{
		Concurrency: cfg.LLMConcurrency, Lease: cfg.JobLease, MaxJobTokens: int64(cfg.MaxJobTokens), Logger: log,
	})
	sweeper := handler.NewSweeper(d.store, d.dispatcher, handler.SweeperOptions{Lease: cfg.JobLease, Logger: log})

	return map[string]invoke.Function{
			"start":    lambda.NewHandler(start.Handle),
			"status":   lambda.NewHandler(status.Handle),
			"apply":    lambda.NewHandler(apply.Handle),
			"comments": lambda.NewHandler(comments.Handle),
			"worker":   lambda.NewHandler(worker.Handle),
			"sweeper": lambda.NewHandler(func(ctx context.Context, _ json.RawMessage) (handler.SweepCounts, error) {
				return sweeper.Handle(ctx)
			}),
		}, map[string]time.Duration{
			"start": httpTimeout, "status": httpTimeout, "apply": httpTimeout, "comments": httpTimeout,
			"worker": invoke.MaxTimeout, "sweeper": time.Minute,
		}
}

// spec is what start fixes in every job.
func (d *deps) spec(cfg *config.Local) job.Spec {
	model := cfg.Model
	model.LLMModel = d.model
	return spec.Of(model)
}

// tenantClaim is the claim that carries X-Sunhwa-Tenant from the front to the
// handlers when LOCAL_TENANT_HEADER is on and TENANT_CLAIM is not set.
const tenantClaim = "tenant"

// tenancy returns the claim that the handlers read, empty for the one tenant
// "default", and the tenant of a call that brings no identity, empty for a 401.
// What a TENANT_CLAIM asks for is never lowered to "default".
func tenancy(cfg *config.Local) (claim, absent string) {
	if cfg.TenantClaim == "" && bool(cfg.TenantHeader) {
		return tenantClaim, "default"
	}
	return cfg.TenantClaim, ""
}

// renamed returns m with its short names replaced.
func renamed[T any](names map[string]string, m map[string]T) map[string]T {
	out := make(map[string]T, len(m))
	for short, v := range m {
		out[names[short]] = v
	}
	return out
}
