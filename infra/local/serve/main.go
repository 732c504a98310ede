// Command serve keeps the local stack up on HTTP_ADDR until it is told to end by
// SIGTERM or Ctrl-C; it then drains and exits with 0. A second signal ends it at
// once.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"sunhwa/infra/local"
	"sunhwa/shared/config"
)

func main() {
	cfg, err := config.Load[config.Local](nil)
	if err != nil {
		fail(err)
	}
	logger := local.NewLogger(os.Stderr, cfg.LogLevel)

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // from then on a signal has its usual effect
	if err := local.Run(ctx, cfg, logger); err != nil {
		fail(err)
	}
}

// fail tells a person, line by line, what was wrong.
func fail(err error) {
	fmt.Fprintln(os.Stderr, "serve failed:", err)
	os.Exit(1)
}
