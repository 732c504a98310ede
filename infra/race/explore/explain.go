package explore

import (
	"context"
	"fmt"
	"slices"
)

// Violation is a broken invariant and the shortest order that breaks it.
type Violation struct {
	Scenario  *Scenario
	Mutant    string // whose scripts ran; empty: as shipped
	Invariant *Invariant
	Wrong     string
	Order     []int      // each step's place among the choices of its world
	Steps     []*stepped // from the first world on
}

// path returns the choices that lead to a world, each as its place among those of
// the world before.
func (k *walk) path(at int32) []int {
	var cs []int
	for ; at > 0; at = k.nodes[at].parent {
		cs = append(cs, int(k.nodes[at].choice))
	}
	slices.Reverse(cs)
	return cs
}

// explain walks the order that broke an invariant again, for the report.
func (k *walk) explain(ctx context.Context, l *lab) (*Violation, error) {
	f := k.broken
	v := &Violation{Scenario: k.sc, Invariant: f.invariant, Wrong: f.wrong, Order: k.path(f.at)}
	if !f.atEnd {
		v.Order = append(v.Order, f.choice)
	}
	var err error
	v.Steps, err = k.sc.follow(ctx, l, v.Order)
	return v, err
}

// follow takes the steps of an order from the first world on.
func (sc *Scenario) follow(ctx context.Context, l *lab, order []int) ([]*stepped, error) {
	var steps []*stepped
	w := sc.first()
	for n, i := range order {
		choices := sc.choices(w)
		if i < 0 || i >= len(choices) {
			return steps, fmt.Errorf("explore: step %d chooses %d of %d", n+1, i, len(choices))
		}
		s, err := sc.take(ctx, w, choices[i], l.serve)
		if err != nil {
			return steps, err
		}
		steps = append(steps, s)
		w = s.after
	}
	return steps, nil
}

// Replay takes one order again, as a violation's report gives it, and returns its
// steps as text with the first invariant broken, if any.
func Replay(ctx context.Context, sc *Scenario, scripts map[string]string, order []int) (string, error) {
	l, err := newLab(sc, scripts)
	if err != nil {
		return "", err
	}
	defer l.close()
	steps, err := sc.follow(ctx, l, order)
	if err != nil {
		return "", err
	}
	v := &Violation{Scenario: sc, Invariant: &Invariant{Name: "none"}, Order: order, Steps: steps}
	for _, s := range steps {
		if s.op.move == "crash" {
			continue
		}
		if inv, wrong := check(s); inv != nil {
			v.Invariant, v.Wrong = inv, wrong
			break
		}
	}
	return v.String(), nil
}
