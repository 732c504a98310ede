// Command worker runs a job: one call of the model for each comment.
package main

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"

	"sunhwa/shared/config"
	"sunhwa/shared/handler"
	"sunhwa/shared/jobstore"
	"sunhwa/shared/obs"
	"sunhwa/shared/rewrite"
	"sunhwa/shared/wire/boot"
	"sunhwa/shared/wire/llmkey"
	"sunhwa/shared/wire/redisclient"
)

func main() {
	ctx := context.Background()
	cfg := boot.Must(config.Load[config.Worker](nil))
	log, metrics := boot.Tools(cfg.LogLevel)
	rdb := boot.Must(redisclient.New(ctx, cfg.Redis, log))
	key := llmkey.Fixed(cfg.LLMAPIKey.Reveal())
	if cfg.LLMAPIKeySecret != "" {
		key = boot.Must(llmkey.Open(ctx, cfg.LLMAPIKeySecret, boot.Must(awsconfig.LoadDefaultConfig(ctx))))
	}
	store := jobstore.New(rdb, jobstore.Options{
		MemoLimit: cfg.MaxComments, MaxAttempts: cfg.JobMaxAttempts, Logger: log, Timing: obs.Scripts(metrics),
	})
	llm := rewrite.New(rewrite.Options{
		BaseURL: cfg.LLMBaseURL, Key: key.Key, RefreshKey: key.Refresh, Timeout: cfg.LLMTimeout, MaxRetries: cfg.LLMMaxRetries, Logger: log,
	})
	lambda.Start(handler.NewWorker(store, llm, handler.WorkerOptions{
		Concurrency: cfg.LLMConcurrency, Lease: cfg.JobLease, MaxJobTokens: int64(cfg.MaxJobTokens), Logger: log, Observe: observe(metrics),
	}).Handle)
}
