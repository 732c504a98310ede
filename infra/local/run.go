package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"sunhwa/shared/config"
)

// drainLimit is how long Run waits for work under way once it is told to end.
const drainLimit = 20 * time.Second

// Run serves the local stack until ctx ends, then drains it. It returns nil when
// it was told to end, also when the drain's 20 s were not enough for a job: that
// is logged.
func Run(ctx context.Context, cfg *config.Local, logger *slog.Logger) error {
	s, err := Start(ctx, Options{Config: cfg, Logger: logger})
	if err != nil {
		return err
	}
	var fault error
	select {
	case <-ctx.Done():
		logger.Info("draining; press Ctrl-C again to end at once", "limit", drainLimit.String(), "invocations", s.invoke.Pending())
	case fault = <-s.Failed():
	}
	// The request to end must not end the drain with it.
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainLimit)
	defer cancel()
	switch err := s.Close(drain); {
	case err != nil && errors.Is(err, context.DeadlineExceeded):
		logger.Warn("drain ended early; jobs under way are taken up again where Redis outlives this process", "error", err)
	case err != nil:
		fault = errors.Join(fault, err)
	}
	if fault != nil {
		return fmt.Errorf("local stack: %w", fault)
	}
	logger.Info("drained")
	return nil
}
