package local

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"sunhwa/infra/local/dynamo"
	"sunhwa/infra/local/llm"
	"sunhwa/shared/comments"
	"sunhwa/shared/config"
	"sunhwa/shared/dispatch"
	"sunhwa/shared/jobstore"
	"sunhwa/shared/rewrite"
	"sunhwa/shared/wire/llmkey"
	"sunhwa/shared/wire/redisclient"
)

// region is what local endpoints are told; none of them cares.
const region = "us-east-1"

// deps are the adapters that the functions share.
type deps struct {
	store      *jobstore.Store
	table      *comments.Table
	dispatcher *dispatch.Dispatcher
	rewriter   *rewrite.Client
	model      string
}

// adapters starts the stand-ins that cfg asks for, connects to what it names
// instead, and notes every part.
func (s *Stack) adapters(ctx context.Context, cfg *config.Local) (*deps, error) {
	d := &deps{}
	var err error
	if d.store, err = s.redis(ctx, cfg); err != nil {
		return nil, err
	}
	if d.table, err = s.dynamo(ctx, cfg); err != nil {
		return nil, err
	}
	if d.dispatcher, err = s.lambda(ctx, cfg); err != nil {
		return nil, err
	}
	if d.rewriter, d.model, err = s.llm(ctx, cfg); err != nil {
		return nil, err
	}
	return d, nil
}

// redis returns a store on REDIS_ADDR, or on an embedded miniredis whose TTLs
// follow the wall clock.
func (s *Stack) redis(ctx context.Context, cfg *config.Local) (*jobstore.Store, error) {
	rc := cfg.Redis
	if len(rc.RedisAddrs) > 0 {
		s.part("Redis", fmt.Sprintf("%s (%s)", strings.Join(rc.RedisAddrs, ","), rc.RedisMode), false)
	} else {
		m := miniredis.NewMiniRedis()
		m.ClockTTL(true)
		if err := m.Start(); err != nil {
			return nil, fmt.Errorf("start the embedded Redis: %w", err)
		}
		s.onClose(func() error { m.Close(); return nil })
		rc = config.Redis{RedisAddrs: []string{m.Addr()}, RedisMode: config.Standalone, RedisAuth: config.AuthNone}
		s.log.Warn("Redis is an embedded stand-in: it forgets everything at the end, refuses nothing that a cluster would (CROSSSLOT) or a full server (OOM), and is slower than Redis; REDIS_ADDR names a real one")
		s.part("Redis", "miniredis in this process", true)
	}

	rdb, err := redisclient.New(ctx, rc, s.log)
	if err != nil {
		return nil, fmt.Errorf("REDIS_ADDR: %w", err)
	}
	s.onClose(rdb.Close)
	store := jobstore.New(rdb, jobstore.Options{
		MemoLimit: cfg.MaxComments, MaxAttempts: cfg.JobMaxAttempts, Logger: s.log,
	})
	if err := reach(ctx, rdb, store, rc, len(cfg.RedisAddrs) == 0); err != nil {
		return nil, err
	}
	return store, nil
}

// dynamo returns the table, made if it is absent, on AWS_ENDPOINT_URL_DYNAMODB
// or on an embedded server.
func (s *Stack) dynamo(ctx context.Context, cfg *config.Local) (*comments.Table, error) {
	endpoint := cfg.DynamoDBEndpoint
	if endpoint == "" {
		srv, err := dynamo.Start(s.log)
		if err != nil {
			return nil, fmt.Errorf("start the embedded DynamoDB: %w", err)
		}
		s.onClose(srv.Close)
		endpoint = srv.URL()
		s.part("DynamoDB", "minidyn in this process", true)
	} else {
		s.part("DynamoDB", endpoint, false)
	}
	ac, err := awsFor(ctx, endpoint)
	if err != nil {
		return nil, err
	}
	client := dynamodb.NewFromConfig(ac, comments.Tune, func(o *dynamodb.Options) { o.BaseEndpoint = &endpoint })
	table := comments.New(client, comments.Options{
		Table: cfg.TableName, Retention: cfg.JobRetention, Logger: s.log,
	})
	ensure, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := table.EnsureTable(ensure); err != nil {
		return nil, fmt.Errorf("table %s at %s: %w", cfg.TableName, endpoint, err)
	}
	return table, nil
}

// lambda returns the dispatcher on AWS_ENDPOINT_URL_LAMBDA or on this stack's
// own Invoke endpoint; either way the AWS SDK makes the call.
func (s *Stack) lambda(ctx context.Context, cfg *config.Local) (*dispatch.Dispatcher, error) {
	endpoint := cfg.LambdaEndpoint
	if endpoint == "" {
		endpoint = s.invokeURL
		s.part("Lambda", "Invoke endpoint of this process, "+endpoint, true)
	} else {
		s.part("Lambda", endpoint+" (the worker; the rest runs in this process)", false)
	}
	ac, err := awsFor(ctx, endpoint)
	if err != nil {
		return nil, err
	}
	client := lambda.NewFromConfig(ac, dispatch.Options, func(o *lambda.Options) { o.BaseEndpoint = &endpoint })
	return dispatch.New(client, cfg.WorkerFunctionName), nil
}

// llm returns a client of the configured model, or of the offline stand-in, and
// the model's name.
func (s *Stack) llm(ctx context.Context, cfg *config.Local) (*rewrite.Client, string, error) {
	o := rewrite.Options{
		BaseURL: cfg.LLMBaseURL, Timeout: cfg.LLMTimeout, MaxRetries: cfg.LLMMaxRetries, Logger: s.log,
	}
	if !cfg.StandInLLM() {
		key := llmkey.Fixed(cfg.LLMAPIKey.Reveal())
		if cfg.LLMAPIKeySecret != "" {
			sdk, err := awsconfig.LoadDefaultConfig(ctx)
			if err != nil {
				return nil, "", fmt.Errorf("AWS configuration for LLM_API_KEY_SECRET_ARN: %w", err)
			}
			if key, err = llmkey.Open(ctx, cfg.LLMAPIKeySecret, sdk); err != nil {
				return nil, "", fmt.Errorf("LLM_API_KEY_SECRET_ARN: %w", err)
			}
		}
		o.Key, o.RefreshKey = key.Key, key.Refresh
		s.part("LLM", cfg.LLMModel+" at "+cfg.LLMBaseURL, false)
		return rewrite.New(o), cfg.LLMModel, nil
	}
	srv, err := llm.Start(s.log)
	if err != nil {
		return nil, "", fmt.Errorf("start the stand-in for a model: %w", err)
	}
	s.onClose(srv.Close)
	o.BaseURL = srv.URL()
	s.part("LLM", "a table of rules in this process, no model", true)
	// Never LLM_MODEL: a real Redis would keep these answers as that model's.
	return rewrite.New(o), llm.Model, nil
}

// awsFor returns the SDK's configuration for an endpoint: made-up credentials
// for one on this machine, the user's own for any other.
func awsFor(ctx context.Context, endpoint string) (aws.Config, error) {
	if isLoopback(endpoint) {
		return aws.Config{Region: region, Credentials: credentials.NewStaticCredentialsProvider("local", "local", "")}, nil
	}
	c, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithDefaultRegion(region))
	if err != nil {
		return aws.Config{}, fmt.Errorf("AWS configuration for %s: %w", endpoint, err)
	}
	return c, nil
}

func isLoopback(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

func (s *Stack) part(name, what string, standIn bool) {
	s.parts = append(s.parts, Part{Name: name, What: what, StandIn: standIn})
}
