// Command sweeper finds jobs that nobody runs, and dispatches or ends them.
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
)

func main() {
	ctx := context.Background()
	cfg := boot.Must(config.Load[config.Sweeper](nil))
	log, metrics := boot.Tools(cfg.LogLevel)
	rdb := boot.Must(redisclient.New(ctx, cfg.Redis, log))
	sdk := boot.Must(awsconfig.LoadDefaultConfig(ctx))
	store := jobstore.New(rdb, jobstore.Options{MaxAttempts: cfg.JobMaxAttempts, Logger: log, Timing: obs.Scripts(metrics)})
	worker := dispatch.New(lambdaclient.NewFromConfig(sdk, dispatch.Options), cfg.WorkerFunctionName)
	sweeper := handler.NewSweeper(store, worker, handler.SweeperOptions{Lease: cfg.JobLease, Logger: log})
	lambda.Start(counted(metrics, sweeper.Handle))
}
