package explore

import (
	"fmt"
	"strconv"
	"strings"
)

func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64) // what is no number counts as 0
	return n
}

// tell is one step as a line a person can read.
func tell(s *stepped) string {
	if s.op.move == "crash" {
		return fmt.Sprintf("  %-10s crashes", s.actor)
	}
	line := fmt.Sprintf("  %-10s %s", s.actor, s.op)
	if s.repeat {
		line += " (again)"
	}
	if s.reply.text != "" {
		line = fmt.Sprintf("%-58s %s", line, s.reply.text)
	}
	for _, a := range s.after.actors {
		if a.owed && !s.repeat && s.after.losses < s.before.losses {
			return line + "   [the reply is lost]"
		}
	}
	return line
}

// String shows the shortest order that breaks an invariant, step by step, with
// the keys the last step changed.
func (v *Violation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "broken: %s (%s)\n        %s\n", v.Invariant.Name, v.Invariant.Says, v.Wrong)
	for i, s := range v.Steps {
		fmt.Fprintf(&b, "%3d %s\n", i+1, tell(s))
	}
	if len(v.Steps) > 0 {
		last := v.Steps[len(v.Steps)-1]
		for _, k := range last.differs() {
			fmt.Fprintf(&b, "      %s: %s -> %s\n", k, last.before.keys[k].brief(), last.after.keys[k].brief())
		}
	}
	fmt.Fprintf(&b, "replay: go run ./infra/race/verify -scenario %q -order %s", v.Scenario.Name, OrderText(v.Order))
	if v.Mutant != "" {
		fmt.Fprintf(&b, " -mutant %q", v.Mutant)
	}
	b.WriteString("\n")
	return b.String()
}

// OrderText writes an order as ParseOrder reads it: numbers joined by dots.
func OrderText(order []int) string {
	parts := make([]string, len(order))
	for i, n := range order {
		parts[i] = strconv.Itoa(n)
	}
	return strings.Join(parts, ".")
}

// ParseOrder reads an order back.
func ParseOrder(s string) ([]int, error) {
	var order []int
	for _, part := range strings.Split(s, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil, fmt.Errorf("explore: order %.40q: want numbers joined by dots", s)
		}
		order = append(order, n)
	}
	return order, nil
}

func (e *entry) brief() string {
	if e == nil {
		return "none"
	}
	s := e.text
	if e.kind == "hash" && e.fields["status"] != "" {
		s = strings.TrimSpace(e.fields["status"] + " " + e.fields["error"] + " token=" + e.fields["token"] + " leaseAt=" + e.fields["leaseAt"])
	} else if e.kind != "string" {
		s = strconv.Itoa(len(e.fields)) + " fields"
	}
	return fmt.Sprintf("%.80s (%d ms)", s, e.ttl)
}
