package explore

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"
)

func TestTmpWalk(t *testing.T) {
	for _, sc := range Scenarios() {
		if only := os.Getenv("SC"); only != "" && sc.Name != only {
			continue
		}
		began := time.Now()
		r, err := Walk(context.Background(), sc, nil, 2)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%-16s worlds %7d steps %8d calls %d orders %v %s\n", sc.Name, r.Worlds, r.Steps, r.Calls, r.Orders, time.Since(began))
		if r.Violation != nil {
			fmt.Println(r.Violation.Invariant.Name, r.Violation.Wrong)
			for _, s := range r.Violation.Steps {
				fmt.Println("  ", s.actor, s.op, "->", s.reply.text, s.repeat)
			}
		}
	}
}
