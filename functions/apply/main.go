// Command apply publishes a finished job.
package main

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"sunhwa/shared/comments"
	"sunhwa/shared/config"
	"sunhwa/shared/handler"
	"sunhwa/shared/jobstore"
	"sunhwa/shared/obs"
	"sunhwa/shared/wire/boot"
	"sunhwa/shared/wire/redisclient"
)

func main() {
	ctx := context.Background()
	cfg := boot.Must(config.Load[config.Apply](nil))
	log, metrics := boot.Tools(cfg.LogLevel)
	rdb := boot.Must(redisclient.New(ctx, cfg.Redis, log))
	sdk := boot.Must(awsconfig.LoadDefaultConfig(ctx))
	store := jobstore.New(rdb, jobstore.Options{Logger: log, Timing: obs.Scripts(metrics)})
	table := comments.New(dynamodb.NewFromConfig(sdk, comments.Tune), comments.Options{Table: cfg.TableName, Retention: cfg.JobRetention, Logger: log})
	h := handler.NewApply(store, table, handler.ApplyOptions{TenantClaim: cfg.TenantClaim, Logger: log})
	lambda.Start(obs.HTTP(metrics, h.Handle, nil))
}
