package explore

import (
	"context"
	"slices"
	"sync"
)

// Kill is what became of one mutant.
type Kill struct {
	Mutant    Mutant
	Violation *Violation // nil: it survived every scenario
	Err       error      // the hunt itself failed
}

// ScenarioNamed returns the scenario of that name, nil when there is none.
func ScenarioNamed(name string) *Scenario {
	for _, sc := range Scenarios() {
		if sc.Name == name {
			return sc
		}
	}
	return nil
}

// MutantNamed returns the mutant of that name, nil when there is none.
func MutantNamed(name string) *Mutant {
	for _, m := range Mutants() {
		if m.Name == name {
			return &m
		}
	}
	return nil
}

// Hunt walks the scenarios with each mutant's scripts until one shows it, hands
// mutants side by side. The channel gives the mutants in the table's order and is
// closed after the last.
func Hunt(ctx context.Context, hands int) <-chan Kill {
	mutants := Mutants()
	results := make([]chan Kill, len(mutants))
	for i := range results {
		results[i] = make(chan Kill, 1)
	}
	go func() {
		var wg sync.WaitGroup
		free := make(chan struct{}, hands)
		for i, m := range mutants {
			free <- struct{}{}
			wg.Add(1)
			go func() {
				defer wg.Done()
				results[i] <- hunt(ctx, m)
				<-free
			}()
		}
		wg.Wait()
	}()
	out := make(chan Kill)
	go func() {
		defer close(out)
		for _, r := range results {
			select {
			case k := <-r:
				out <- k
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

// hunt tries the scenario a mutant is expected to show in, then all others.
func hunt(ctx context.Context, m Mutant) Kill {
	scripts, err := m.Scripts()
	if err != nil {
		return Kill{Mutant: m, Err: err}
	}
	scenarios := Scenarios()
	slices.SortStableFunc(scenarios, func(a, b *Scenario) int {
		return int(flag(b.Name == m.In)) - int(flag(a.Name == m.In))
	})
	for _, sc := range scenarios {
		rep, err := Walk(ctx, sc, scripts, 1)
		if err != nil {
			return Kill{Mutant: m, Err: err}
		}
		if rep.Violation != nil {
			rep.Violation.Mutant = m.Name
			return Kill{Mutant: m, Violation: rep.Violation}
		}
	}
	return Kill{Mutant: m}
}
