// Command demo runs the whole flow once, as a client over HTTP against a local
// stack in this process: two starts at once, progress, before and after, apply,
// and the published version read back. It exits with 1 when anything is not as
// promised.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	var o options
	flag.StringVar(&o.input, "input", "events/comments.json", "file with the comments: .json, .jsonl or .csv with id and text")
	flag.StringVar(&o.output, "out", "", "file that gets the published result as JSON")
	flag.BoolVar(&o.verbose, "v", false, "write the stack's log to standard error")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	unwatch := context.AfterFunc(ctx, func() {
		stop() // from then on a signal has its usual effect
		fmt.Fprintln(os.Stderr, "ending; press Ctrl-C again to end at once")
	})
	err := run(ctx, o, os.Stdout, os.Stderr)
	unwatch()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo failed:", err)
		os.Exit(1)
	}
}
