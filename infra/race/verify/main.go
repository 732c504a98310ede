// Verify walks every order of the scenarios' events on the shipped scripts,
// replays a sample of them on real servers, and demands that every deliberate
// fault in the scripts is noticed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"time"

	"sunhwa/infra/race/explore"
)

// The least a full run must have walked: what a trial of such scripts reached.
const (
	leastWorlds = 300_000
	leastSteps  = 1_000_000
)

type options struct {
	scenario, order, mutant string
	samples                 int
	seed                    uint64
	walk, mutants           bool
	hands                   int
	out                     io.Writer
}

func main() {
	o := options{out: os.Stdout}
	flag.StringVar(&o.scenario, "scenario", "", "walk this one alone")
	flag.StringVar(&o.order, "order", "", "with -scenario: take this order again and show its steps")
	flag.StringVar(&o.mutant, "mutant", "", "with -order: on this mutant's scripts")
	flag.IntVar(&o.samples, "samples", 30, "orders a scenario to replay on each real server")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().Unix()), "chooses the orders to replay") //nolint:gosec // the clock is positive
	flag.BoolVar(&o.walk, "walk", true, "walk every order, and replay a sample on real servers")
	flag.BoolVar(&o.mutants, "mutants", true, "kill the mutants")
	flag.IntVar(&o.hands, "hands", runtime.NumCPU(), "worlds walked side by side")
	flag.Parse()
	debug.SetGCPercent(300) // the walk makes much garbage and keeps little of it
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "verify:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	scenarios := explore.Scenarios()
	if o.scenario != "" {
		sc := explore.ScenarioNamed(o.scenario)
		if sc == nil {
			return fmt.Errorf("no scenario is called %q", o.scenario)
		}
		scenarios = []*explore.Scenario{sc}
	}
	if o.order != "" {
		return again(ctx, scenarios[0], o)
	}
	began := time.Now()
	if o.walk {
		servers, stop, err := startAll()
		if err != nil {
			return err
		}
		defer stop()
		if err := walkAll(ctx, scenarios, o); err != nil {
			return err
		}
		if err := replayAll(ctx, servers, scenarios, o); err != nil {
			return err
		}
	}
	if o.mutants && o.scenario == "" {
		if err := killAll(ctx, o); err != nil {
			return err
		}
	}
	fmt.Fprintf(o.out, "verified in %s\n", time.Since(began).Round(time.Second))
	return nil
}

// again shows one order, step by step.
func again(ctx context.Context, sc *explore.Scenario, o options) error {
	order, err := explore.ParseOrder(o.order)
	if err != nil {
		return err
	}
	var scripts map[string]string
	if o.mutant != "" {
		m := explore.MutantNamed(o.mutant)
		if m == nil {
			return fmt.Errorf("no mutant is called %q", o.mutant)
		}
		if scripts, err = m.Scripts(); err != nil {
			return err
		}
	}
	text, err := explore.Replay(ctx, sc, scripts, order)
	fmt.Fprint(o.out, text)
	return err
}

// walkAll walks every order of every scenario, and checks how much that was.
func walkAll(ctx context.Context, scenarios []*explore.Scenario, o options) error {
	fmt.Fprintln(o.out, "every order of every scenario, each step checked")
	fmt.Fprintf(o.out, "  %-16s %9s %9s %8s %24s %s\n", "scenario", "worlds", "steps", "calls", "orders", "")
	worlds, steps := 0, 0
	for _, sc := range scenarios {
		began := time.Now()
		rep, err := explore.Walk(ctx, sc, nil, o.hands)
		if err != nil {
			return err
		}
		if rep.Violation != nil {
			fmt.Fprint(o.out, rep.Violation)
			return fmt.Errorf("scenario %q breaks an invariant", sc.Name)
		}
		worlds, steps = worlds+rep.Worlds, steps+rep.Steps
		fmt.Fprintf(o.out, "  %-16s %9d %9d %8d %24s %s\n", sc.Name, rep.Worlds, rep.Steps, rep.Calls, rep.Orders, time.Since(began).Round(100*time.Millisecond))
	}
	fmt.Fprintf(o.out, "  %-16s %9d %9d   0 violations of %d invariants\n", "all", worlds, steps, len(explore.Invariants()))
	if len(scenarios) > 1 && (worlds < leastWorlds || steps < leastSteps) {
		return fmt.Errorf("walked %d worlds and %d steps, want %d and %d at least", worlds, steps, leastWorlds, leastSteps)
	}
	return nil
}

// killAll runs every mutant and prints who killed it.
func killAll(ctx context.Context, o options) error {
	fmt.Fprintln(o.out, "mutants: deliberate faults, the promise each breaks, and the invariant that notices")
	survivors := 0
	for r := range explore.Hunt(ctx, o.hands) {
		switch {
		case r.Err != nil:
			return r.Err
		case r.Violation == nil:
			survivors++
			fmt.Fprintf(o.out, "  SURVIVED %s (promise %s)\n", r.Mutant.Name, promise(r.Mutant.Promise))
		default:
			fmt.Fprintf(o.out, "  killed   %-68s promise %s  by %q after %d steps\n", r.Mutant.Name, promise(r.Mutant.Promise), r.Violation.Invariant.Name, len(r.Violation.Order))
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if survivors > 0 {
		return errors.New("a mutant survived: the checks would not notice that fault")
	}
	fmt.Fprintf(o.out, "  all %d mutants killed\n", len(explore.Mutants()))
	return nil
}

func promise(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}
