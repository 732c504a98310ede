// Package redisclient makes the Redis client that configuration asks for: TLS,
// and a password or an IAM token of ElastiCache.
package redisclient

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/redis/go-redis/v9"

	"sunhwa/shared/config"
	"sunhwa/shared/jobstore"
	"sunhwa/shared/obs"
)

// New returns a client for c, which must have an address. It dials on first use;
// only with REDIS_AUTH=iam does it load the AWS configuration, which may fail.
// The client's own log goes to logger. Closing the client is the caller's.
func New(ctx context.Context, c config.Redis, logger *slog.Logger) (redis.UniversalClient, error) {
	o := jobstore.ClientOptions{
		Addrs:    c.RedisAddrs,
		Cluster:  c.RedisMode == config.Cluster,
		Username: c.RedisUsername,
		Password: c.RedisPassword.Reveal(),
	}
	if c.RedisTLS {
		o.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if c.RedisAuth == config.AuthIAM {
		sdk, err := awsconfig.LoadDefaultConfig(ctx)
		if err != nil {
			return nil, fmt.Errorf("redis client: load the AWS configuration: %w", err)
		}
		o.Credentials = tokens{
			cache: c.RedisCacheName, user: c.RedisUsername, region: sdk.Region,
			serverless: serverless(c.RedisAddrs), credentials: sdk.Credentials, now: time.Now,
		}.next
	}
	redis.SetLogger(obs.Printf{Logger: logger, Source: "redis"})
	return jobstore.NewClient(o), nil
}

// serverless reports whether the addresses are of an ElastiCache Serverless
// cache, whose tokens say so: its hosts have a label "serverless"
// (https://docs.aws.amazon.com/AmazonElastiCache/latest/dg/GettingStarted.html).
func serverless(addrs []string) bool {
	for _, a := range addrs {
		if strings.Contains(a, ".serverless.") {
			return true
		}
	}
	return false
}

// tokens makes ElastiCache's IAM tokens: a presigned request without its scheme,
// good for 15 minutes, made anew for each connection.
// https://docs.aws.amazon.com/AmazonElastiCache/latest/dg/auth-iam.html
type tokens struct {
	cache, user, region string
	serverless          bool
	credentials         aws.CredentialsProvider
	now                 func() time.Time
}

const tokenSeconds = "900"

func (t tokens) next(ctx context.Context) (username, password string, err error) {
	credentials, err := t.credentials.Retrieve(ctx)
	if err != nil {
		return "", "", fmt.Errorf("redis client: credentials for the IAM token: %w", err)
	}
	q := url.Values{"Action": {"connect"}, "User": {t.user}, "X-Amz-Expires": {tokenSeconds}}
	if t.serverless {
		q.Set("ResourceType", "ServerlessCache")
	}
	u := url.URL{Scheme: "https", Host: t.cache, Path: "/", RawQuery: q.Encode()}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", "", fmt.Errorf("redis client: IAM token: %w", err)
	}
	nothing := sha256.Sum256(nil)
	signed, _, err := v4.NewSigner().PresignHTTP(ctx, credentials, req, hex.EncodeToString(nothing[:]), "elasticache", t.region, t.now())
	if err != nil {
		return "", "", fmt.Errorf("redis client: sign the IAM token: %w", err)
	}
	return t.user, strings.TrimPrefix(signed, "https://"), nil
}
