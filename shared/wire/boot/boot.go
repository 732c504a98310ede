// Package boot is the first and the last of a function's main: what it logs
// with, and how it gives up.
package boot

import (
	"io"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"sunhwa/shared/obs"
)

// Tools returns the logger and the metrics of this process, both on standard
// output, where Lambda gathers them, and makes the logger slog's default.
func Tools(level slog.Leveler) (*slog.Logger, *obs.Metrics) {
	log := obs.NewLogger(os.Stdout, level)
	slog.SetDefault(log)
	return log, obs.NewMetrics(os.Stdout, lambdacontext.FunctionName, nil)
}

// Must returns v, or, when err is not nil, logs it and ends the process with
// status 1: Lambda then answers 5xx or retries the event, and starts anew.
func Must[T any](v T, err error) T {
	if err != nil {
		report(os.Stdout, err)
		os.Exit(1)
	}
	return v
}

func report(w io.Writer, err error) {
	obs.NewLogger(w, slog.LevelInfo).Error("start-up failed", "error", err.Error())
}
