package testkit

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// eachPrimary calls f on every running node that is a primary.
func (e *Engine) eachPrimary(t testing.TB, f func(context.Context, *redis.Client) error) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // clean-ups look at keys too
	for _, n := range e.nodes {
		if n.proc.ended() {
			continue
		}
		role, err := n.info(ctx, "replication")
		if err == nil && role["role"] == "master" {
			err = f(ctx, n.admin)
		}
		if err != nil {
			t.Fatalf("testkit: %s: %v", n.Addr, err)
		}
	}
}

// Keys returns every key that matches the pattern (Redis's glob), on all nodes,
// with what is left of its life; a negative one means that it has no TTL.
func (e *Engine) Keys(t testing.TB, pattern string) map[string]time.Duration {
	t.Helper()
	keys := map[string]time.Duration{}
	e.eachPrimary(t, func(ctx context.Context, c *redis.Client) error {
		return scan(ctx, c, pattern, func(key string) error {
			left, err := c.PTTL(ctx, key).Result()
			if err == nil && left != -2 { // -2: it expired between the two commands
				keys[key] = left
			}
			return err
		})
	})
	return keys
}

// Snapshot returns every matching key with its whole value as one string, so that
// two moments can be compared key by key. TTLs are left out: they move by
// themselves.
func (e *Engine) Snapshot(t testing.TB, pattern string) map[string]string {
	t.Helper()
	values := map[string]string{}
	e.eachPrimary(t, func(ctx context.Context, c *redis.Client) error {
		return scan(ctx, c, pattern, func(key string) error {
			v, err := value(ctx, c, key)
			if v != "" {
				values[key] = v
			}
			return err
		})
	})
	return values
}

func scan(ctx context.Context, c *redis.Client, pattern string, visit func(string) error) error {
	keys := c.Scan(ctx, 0, pattern, 1000).Iterator()
	for keys.Next(ctx) {
		if err := visit(keys.Val()); err != nil {
			return err
		}
	}
	return keys.Err()
}

// value returns a key's type and content as JSON; empty when it is gone.
func value(ctx context.Context, c *redis.Client, key string) (string, error) {
	kind, err := c.Type(ctx, key).Result()
	if err != nil {
		return "", err
	}
	var content any
	switch kind {
	case "none":
		return "", nil
	case "string":
		content, err = c.Get(ctx, key).Result()
	case "hash":
		content, err = c.HGetAll(ctx, key).Result() // json sorts a map's keys
	case "set":
		var members []string
		members, err = c.SMembers(ctx, key).Result()
		slices.Sort(members)
		content = members
	default:
		return "", fmt.Errorf("testkit: key %s of unexpected type %s", key, kind)
	}
	if err != nil {
		return "", err
	}
	b, err := json.Marshal(content)
	return kind + " " + string(b), err
}

// ConfigSet sets a server parameter on every running node and sets the old value
// again when the test ends. `maxmemory` of 1 makes a server full at once.
func (e *Engine) ConfigSet(t testing.TB, name, value string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	for _, n := range e.nodes {
		if n.proc.ended() {
			continue
		}
		old, err := n.admin.ConfigGet(ctx, name).Result()
		if err == nil {
			err = n.admin.ConfigSet(ctx, name, value).Err()
		}
		if err != nil {
			t.Fatalf("testkit: set %s on %s: %v", name, n.Addr, err)
		}
		t.Cleanup(func() {
			if n.proc.ended() {
				return
			}
			if err := n.admin.ConfigSet(ctx, name, old[name]).Err(); err != nil {
				t.Errorf("testkit: set %s back on %s: %v", name, n.Addr, err)
			}
		})
	}
}
