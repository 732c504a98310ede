package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"sunhwa/infra/local"
	"sunhwa/infra/local/input"
	"sunhwa/shared/config"
	"sunhwa/shared/job"
)

// closeLimit bounds the end of the stack: no job is under way by then, unless
// the demo was interrupted.
const closeLimit = 5 * time.Second

type options struct {
	input   string
	output  string
	verbose bool
	environ map[string]string // nil means the process's
}

// run brings the stack up on a free port, goes through the demo, and takes the
// stack down. Its error says what failed and holds no comment's text.
func run(ctx context.Context, o options, out, logs io.Writer) (err error) {
	comments, err := input.Read(o.input)
	if err != nil {
		return err
	}
	cfg, err := config.Load[config.Local](o.environ)
	if err != nil {
		return err
	}
	file, err := openOutput(o.output, o.input)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.close()) }()
	cfg.HTTPAddr = "127.0.0.1:0"

	level := slog.LevelError // what matters below it, the demo says itself
	if o.verbose {
		level = cfg.LogLevel.Level()
	}
	logger := local.NewLogger(logs, level)

	stack, err := local.Start(ctx, local.Options{Config: cfg, Logger: logger})
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
		defer cancel()
		if closeErr := stack.Close(end); closeErr != nil && err == nil {
			err = fmt.Errorf("close the stack: %w", closeErr)
		}
	}()
	d := &demo{
		screen:   newScreen(out),
		stack:    stack,
		deadline: cfg.JobDeadline,
		comments: comments,
		source:   o.input,
		target:   "demo-" + strings.ToLower(rand.Text()[:8]),
		output:   file,
	}
	if cfg.TenantHeader {
		d.tenant = "demo"
	}
	err = d.play(ctx)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return errors.New("interrupted")
	}
	return d.named(err)
}

// count is a number of things, in the singular where it is one.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// commentAt returns the id of the comment an API error points at.
func commentAt(comments []job.Comment, pointer string) (string, bool) {
	var i int
	if _, err := fmt.Sscanf(pointer, "#/comments/%d", &i); err != nil || i < 0 || i >= len(comments) {
		return "", false
	}
	return comments[i].ID, true
}
