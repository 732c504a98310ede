// Command servers serves what infra/env.local.json names, for `sam local`: a
// redis-server, unless one listens already, and stand-ins, plainly labelled, for
// DynamoDB and the language model. It lets containers reach them, and the endpoint
// of `sam local start-lambda`, which all listen on loopback only. Ctrl-C ends it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"sunhwa/infra/local/dynamo"
	"sunhwa/infra/local/llm"
	"sunhwa/infra/samtest/relay"
	"sunhwa/shared/comments"
)

// Where infra/env.local.json looks for them.
const (
	redisAddr  = "127.0.0.1:6379"
	dynamoAddr = "127.0.0.1:8000"
	llmAddr    = "127.0.0.1:8001"
	lambdaAddr = "127.0.0.1:3001"
	table      = "sunhwa-comments"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx); err != nil {
		slog.Error("servers for sam local", "error", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	redis, err := startRedis(ctx)
	defer func() {
		cancel()
		<-redis
	}()
	if err != nil {
		return err
	}
	store, err := dynamo.Start(nil)
	if err != nil {
		return fmt.Errorf("DynamoDB stand-in: %w", err)
	}
	defer func() { _ = store.Close() }() // the process ends
	client := dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(store.URL()), Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
	if err := comments.New(client, comments.Options{Table: table}).EnsureTable(ctx); err != nil {
		return fmt.Errorf("make the table: %w", err)
	}
	model := llm.New(llm.Options{MinDelay: llm.DefaultMinDelay, MaxDelay: llm.DefaultMaxDelay})
	if err := model.Start(llmAddr); err != nil {
		return fmt.Errorf("model stand-in: %w", err)
	}
	defer func() { _ = model.Close() }()

	relays, err := open(strings.TrimPrefix(store.URL(), "http://"))
	defer func() {
		for _, r := range relays {
			_ = r.Close() // the process ends
		}
	}()
	if err != nil {
		return err
	}
	slog.Info("ready for sam local; Ctrl-C ends it", "redis", redisAddr, "dynamodb", dynamoAddr, "model", llmAddr)
	<-ctx.Done()
	return nil
}

// open opens the way to the table's stand-in, and from containers to everything.
func open(store string) ([]io.Closer, error) {
	var relays []io.Closer
	r, err := relay.Open(dynamoAddr, store)
	if err != nil {
		return nil, err
	}
	relays = append(relays, r)
	gateway, err := relay.Gateway()
	if err != nil {
		return relays, fmt.Errorf("%w (does `docker info` work?)", err)
	}
	for _, to := range []string{redisAddr, dynamoAddr, llmAddr, lambdaAddr} {
		_, port, err := net.SplitHostPort(to)
		if err != nil {
			return relays, fmt.Errorf("address: %w", err)
		}
		r, err := relay.Open(net.JoinHostPort(gateway, port), to)
		switch {
		case errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EADDRINUSE):
			slog.Info("containers reach it without help", "addr", to) // Docker Desktop; a server on all addresses
		case err != nil:
			return relays, err
		default:
			relays = append(relays, r)
		}
	}
	return relays, nil
}

// startRedis runs a redis-server until ctx ends, unless somebody listens already.
// ended is closed once it has.
func startRedis(ctx context.Context) (ended <-chan struct{}, err error) {
	done := make(chan struct{})
	if answers() {
		close(done)
		slog.Info("somebody listens already and is taken for Redis", "addr", redisAddr)
		return done, nil
	}
	_, port, err := net.SplitHostPort(redisAddr)
	if err != nil {
		close(done)
		return done, fmt.Errorf("address: %w", err)
	}
	cmd := exec.CommandContext(ctx, "redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--loglevel", "warning") //nolint:gosec // the port is a constant of this file
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		close(done)
		return done, fmt.Errorf("redis-server (run: make servers): %w", err)
	}
	go func() {
		_ = cmd.Wait() // ended by us
		close(done)
	}()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 500 { // 10 s
		if answers() {
			return done, nil
		}
		select {
		case <-ctx.Done():
			return done, ctx.Err()
		case <-tick.C:
		}
	}
	return done, errors.New("redis-server does not answer")
}

func answers() bool {
	c, err := net.DialTimeout("tcp", redisAddr, time.Second)
	if err != nil {
		return false
	}
	_ = c.Close() // it was opened only to see that it can be
	return true
}
