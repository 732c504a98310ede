// Command status answers what is asked about jobs, and cancels them.
package main

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"sunhwa/shared/config"
	"sunhwa/shared/handler"
	"sunhwa/shared/jobstore"
	"sunhwa/shared/obs"
	"sunhwa/shared/wire/boot"
	"sunhwa/shared/wire/redisclient"
)

func main() {
	cfg := boot.Must(config.Load[config.Status](nil))
	log, metrics := boot.Tools(cfg.LogLevel)
	rdb := boot.Must(redisclient.New(context.Background(), cfg.Redis, log))
	store := jobstore.New(rdb, jobstore.Options{Logger: log, Timing: obs.Scripts(metrics)})
	status := handler.NewStatus(store, handler.StatusOptions{TenantClaim: cfg.TenantClaim, Logger: log})
	lambda.Start(obs.HTTP(metrics, status.Handle, nil))
}
