package redisclient

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/shared/config"
)

func provider() tokens {
	return tokens{
		cache: "my-cache", user: "app", region: "eu-west-1",
		credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", "session"),
		now:         func() time.Time { return time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC) },
	}
}

func TestTokens_haveTheDocumentedForm(t *testing.T) {
	for _, isServerless := range []bool{false, true} {
		p := provider()
		p.serverless = isServerless
		user, token, err := p.next(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "app", user)
		assert.True(t, strings.HasPrefix(token, "my-cache/?"), "no scheme: %s", token)
		u, err := url.Parse("https://" + token)
		require.NoError(t, err)
		q := u.Query()
		for k, v := range map[string]string{
			"Action": "connect", "User": "app", "X-Amz-Expires": "900", "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
			"X-Amz-Date": "20300102T030405Z", "X-Amz-Credential": "AKID/20300102/eu-west-1/elasticache/aws4_request",
			"X-Amz-SignedHeaders": "host", "X-Amz-Security-Token": "session",
		} {
			assert.Equal(t, v, q.Get(k), k)
		}
		assert.Len(t, q.Get("X-Amz-Signature"), 64)
		assert.Equal(t, isServerless, q.Get("ResourceType") == "ServerlessCache")
	}
}

func TestTokens_credentialsFailureStaysVisible(t *testing.T) {
	p := provider()
	p.credentials = aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		return aws.Credentials{}, ctx.Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := p.next(ctx)
	assert.True(t, errors.Is(err, context.Canceled))
}

func TestServerless_byHostName(t *testing.T) {
	assert.True(t, serverless([]string{"c-abc123.serverless.euw1.cache.amazonaws.com:6379"}))
	assert.False(t, serverless([]string{"clustercfg.c.abc123.euw1.cache.amazonaws.com:6379"}))
}

func TestNew_followsTheConfiguration(t *testing.T) {
	one, err := New(t.Context(), config.Redis{
		RedisAddrs: []string{"r:1"}, RedisMode: config.Standalone, RedisTLS: true,
		RedisAuth: config.AuthPassword, RedisUsername: "u", RedisPassword: "p",
	}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { _ = one.Close() })
	single, ok := one.(*redis.Client)
	require.True(t, ok, "%T", one)
	assert.Equal(t, "p", single.Options().Password)
	assert.NotNil(t, single.Options().TLSConfig)

	t.Setenv("AWS_REGION", "eu-west-1")
	many, err := New(t.Context(), config.Redis{
		RedisAddrs: []string{"r:1"}, RedisMode: config.Cluster, RedisTLS: true,
		RedisAuth: config.AuthIAM, RedisUsername: "u", RedisCacheName: "c",
	}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { _ = many.Close() })
	cluster, ok := many.(*redis.ClusterClient)
	require.True(t, ok, "%T: one address is a cluster all the same", many)
	assert.NotNil(t, cluster.Options().CredentialsProviderContext)
}
