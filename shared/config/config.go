// Package config reads what a function needs from the environment, once, into a
// typed struct: one struct a function, composed of small groups, and Local for
// the local stack. It imports no adapter; what turns these values into clients
// is package wire.
//
// An empty variable counts as unset. Durations are Go's ("10m", "45s").
package config

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	"github.com/caarlos0/env/v11"
)

// checked is what every struct of this package is: it looks at its own values
// after all of them were read, fills in the defaults that depend on others, and
// reports what is wrong.
type checked interface{ check(p *problems) }

// Load reads a T (Start, Worker, Status, Apply, Comments, Sweeper or Local) from
// environ; nil means the environment of the process. It returns the struct with
// every default filled in, or an *Error that names every bad variable at once.
func Load[T any, P interface {
	*T
	checked
}](environ map[string]string) (*T, error) {
	if environ == nil {
		environ = env.ToMap(os.Environ())
	}
	given := make(map[string]string, len(environ))
	for k, v := range environ {
		if v != "" {
			given[k] = v
		}
	}
	cfg := new(T)
	p := &problems{given: given, byVar: map[string]string{}}
	err := env.ParseWithOptions(cfg, env.Options{Environment: given, FuncMap: parsers()})
	if err := p.parsed(err, variables(reflect.TypeOf(*cfg))); err != nil {
		return nil, err
	}
	P(cfg).check(p)
	if len(p.byVar) > 0 {
		return nil, p.err()
	}
	return cfg, nil
}

// Error says everything that is wrong with an environment. It holds no secret's
// value.
type Error struct {
	Problems []Problem // ordered by variable, one a variable
}

// Problem is one bad variable.
type Problem struct {
	Variable string
	Reason   string // what is wrong and what to do
}

func (e *Error) Error() string {
	lines := make([]string, 0, len(e.Problems)+1)
	lines = append(lines, fmt.Sprintf("config: %d bad variable(s)", len(e.Problems)))
	for _, p := range e.Problems {
		lines = append(lines, p.Variable+": "+p.Reason)
	}
	return strings.Join(lines, "\n  ")
}

// problems gathers at most one problem a variable: the first one found.
type problems struct {
	given map[string]string // variables that are set and not empty
	byVar map[string]string
}

func (p *problems) set(variable string) bool { return p.given[variable] != "" }

func (p *problems) bad(variable string) bool { return p.byVar[variable] != "" }

func (p *problems) add(variable, format string, args ...any) {
	if !p.bad(variable) {
		p.byVar[variable] = fmt.Sprintf(format, args...)
	}
}

// require reports a variable that is not set; why says who needs it.
func (p *problems) require(variable, why string) {
	if !p.set(variable) {
		p.add(variable, "is not set; %s", why)
	}
}

// parsed takes over what the parser found. It returns an error only for a fault
// of this package itself (a struct it cannot fill).
func (p *problems) parsed(err error, variableOf map[string]string) error {
	if err == nil {
		return nil
	}
	var all env.AggregateError
	if !errors.As(err, &all) {
		return fmt.Errorf("config: read the environment: %w", err)
	}
	for _, e := range all.Errors {
		var parse env.ParseError
		var reason valueError
		if !errors.As(e, &parse) || !errors.As(parse.Err, &reason) || variableOf[parse.Name] == "" {
			return fmt.Errorf("config: read the environment: %w", e)
		}
		p.add(variableOf[parse.Name], "%s", reason)
	}
	return nil
}

func (p *problems) err() *Error {
	e := &Error{}
	for v, r := range p.byVar {
		e.Problems = append(e.Problems, Problem{Variable: v, Reason: r})
	}
	sort.Slice(e.Problems, func(i, j int) bool { return e.Problems[i].Variable < e.Problems[j].Variable })
	return e
}

// variables maps the field names of t and its groups to their variables; field
// names are unique inside one struct (TestFields_areUnique).
func variables(t reflect.Type) map[string]string {
	m := map[string]string{}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			for name, v := range variables(f.Type) {
				m[name] = v
			}
			continue
		}
		m[f.Name] = f.Tag.Get("env")
	}
	return m
}
