// Command start claims a target, makes its job and invokes the worker.
package main

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	lambdaclient "github.com/aws/aws-sdk-go-v2/service/lambda"

	"sunhwa/shared/config"
	"sunhwa/shared/dispatch"
	"sunhwa/shared/handler"
	"sunhwa/shared/jobstore"
	"sunhwa/shared/obs"
	"sunhwa/shared/wire/boot"
	"sunhwa/shared/wire/redisclient"
	"sunhwa/shared/wire/spec"
)

func main() {
	ctx := context.Background()
	cfg := boot.Must(config.Load[config.Start](nil))
	log, metrics := boot.Tools(cfg.LogLevel)
	rdb := boot.Must(redisclient.New(ctx, cfg.Redis, log))
	sdk := boot.Must(awsconfig.LoadDefaultConfig(ctx))
	store := jobstore.New(rdb, jobstore.Options{
		MemoLimit: cfg.MaxComments, MaxAttempts: cfg.JobMaxAttempts, Logger: log, Timing: obs.Scripts(metrics),
	})
	worker := dispatch.New(lambdaclient.NewFromConfig(sdk, dispatch.Options), cfg.WorkerFunctionName)
	start := handler.NewStart(store, worker, handler.StartOptions{
		TenantClaim: cfg.TenantClaim, Spec: spec.Of(cfg.Model), Logger: log,
		MaxComments: cfg.MaxComments, MaxCommentChars: cfg.MaxCommentChars, MaxBodyBytes: cfg.MaxBodyBytes,
		Deadline: cfg.JobDeadline, Retention: cfg.JobRetention, Lease: cfg.JobLease,
	})
	lambda.Start(obs.HTTP(metrics, start.Handle, map[int]string{202: "JobsStarted", 200: "JobsReused"}))
}
