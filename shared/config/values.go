package config

import (
	"log/slog"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
)

// Secret is a value that must not be shown: it prints and logs as "(secret)".
type Secret string

func (Secret) String() string { return "(secret)" }

// GoString keeps %#v from showing the value.
func (Secret) GoString() string { return "(secret)" }

// LogValue keeps slog from showing the value.
func (Secret) LogValue() slog.Value { return slog.StringValue("(secret)") }

// MarshalText keeps JSON from showing the value.
func (Secret) MarshalText() ([]byte, error) { return []byte("(secret)"), nil }

// Reveal returns the value itself.
func (s Secret) Reveal() string { return string(s) }

// Switch is a variable that is on or off.
type Switch bool

// RedisMode says how Redis is addressed.
type RedisMode string

// The modes of REDIS_MODE.
const (
	Standalone RedisMode = "standalone" // one server
	Cluster    RedisMode = "cluster"    // Redis Cluster, also with one address
)

// RedisAuth says how a connection to Redis authenticates.
type RedisAuth string

// The ways of REDIS_AUTH.
const (
	AuthNone     RedisAuth = "none"
	AuthPassword RedisAuth = "password" // REDIS_PASSWORD, with REDIS_USERNAME or as the default user
	AuthIAM      RedisAuth = "iam"      // a signed token a connection, for ElastiCache
)

// Level is the least level that is logged; it is a slog.Leveler.
type Level slog.Level

// Level returns it as slog knows it.
func (l Level) Level() slog.Level { return slog.Level(l) }

// ResponseFormat is the response_format type sent to the model; empty sends none.
type ResponseFormat string

// valueError is what a parser of this package says about a value.
type valueError string

func (e valueError) Error() string { return string(e) }

// quoted shows a value in a message, cut off so that no log line grows long.
func quoted(s string) string {
	const most = 60
	if len(s) > most {
		return strconv.QuoteToASCII(s[:most]) + "…"
	}
	return strconv.QuoteToASCII(s)
}

// parsers replace the library's own, whose messages name a Go type where ours
// say what may stand there.
func parsers() map[reflect.Type]env.ParserFunc {
	return map[reflect.Type]env.ParserFunc{
		reflect.TypeFor[int]():             number,
		reflect.TypeFor[float64]():         decimal,
		reflect.TypeFor[time.Duration]():   duration,
		reflect.TypeFor[[]time.Duration](): durations,
		reflect.TypeFor[Switch]():          oneOf(map[string]any{"on": Switch(true), "off": Switch(false)}),
		reflect.TypeFor[RedisMode]():       oneOf(map[string]any{"standalone": Standalone, "cluster": Cluster}),
		reflect.TypeFor[RedisAuth]():       oneOf(map[string]any{"none": AuthNone, "password": AuthPassword, "iam": AuthIAM}),
		reflect.TypeFor[ResponseFormat]():  oneOf(map[string]any{"text": ResponseFormat("text"), "json_object": ResponseFormat("json_object"), "json_schema": ResponseFormat("json_schema")}),
		reflect.TypeFor[Level]():           oneOf(map[string]any{"debug": Level(slog.LevelDebug), "info": Level(slog.LevelInfo), "warn": Level(slog.LevelWarn), "error": Level(slog.LevelError)}),
	}
}

func oneOf(values map[string]any) env.ParserFunc {
	names := sortedKeys(values)
	return func(s string) (any, error) {
		if v, ok := values[s]; ok {
			return v, nil
		}
		return nil, valueError("unknown value " + quoted(s) + "; use " + strings.Join(names, ", "))
	}
}

func number(s string) (any, error) {
	n, err := strconv.Atoi(s)
	if err != nil {
		return nil, valueError(quoted(s) + " is not a whole number; write digits only, as 16")
	}
	return n, nil
}

func decimal(s string) (any, error) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != f {
		return nil, valueError(quoted(s) + " is not a number; write it as 0.3")
	}
	return f, nil
}

func duration(s string) (any, error) {
	d, err := time.ParseDuration(s)
	if err != nil {
		return nil, valueError(quoted(s) + " is not a duration; write it as 45s or 10m")
	}
	return d, nil
}

func durations(s string) (any, error) {
	var ds []time.Duration
	for part := range strings.SplitSeq(s, ",") {
		d, err := time.ParseDuration(strings.TrimSpace(part))
		if err != nil || d < 0 {
			return nil, valueError(quoted(s) + " is not a list of durations; write it as 1s,2s")
		}
		ds = append(ds, d)
	}
	return ds, nil
}
