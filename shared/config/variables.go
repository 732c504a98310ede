package config

import (
	"errors"
	"maps"
	"reflect"
	"slices"
)

// Variables returns, sorted, every variable that a T (Start, Worker, Status,
// Apply, Comments, Sweeper or Local) reads.
func Variables[T any]() []string {
	return slices.Sorted(maps.Values(variables(reflect.TypeFor[T]())))
}

// Required returns, sorted, the variables without which no T loads. Of those of
// which one will do it names the plainest: LLM_API_KEY stands for the key's ARN too.
func Required[T any, P interface {
	*T
	checked
}]() []string {
	_, err := Load[T, P](map[string]string{})
	var bad *Error
	if !errors.As(err, &bad) {
		return nil
	}
	names := make([]string, 0, len(bad.Problems))
	for _, p := range bad.Problems {
		names = append(names, p.Variable)
	}
	return names
}
