package jobstore

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/shared/job"
)

// anything is a server that answers every command with the same value.
type anything struct{ value any }

func (anything) DialHook(next redis.DialHook) redis.DialHook { return next }

func (a anything) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		switch c := cmd.(type) {
		case *redis.Cmd:
			c.SetVal(a.value)
		case *redis.StringCmd:
			s, _ := a.value.(string)
			c.SetVal(s)
		case *redis.SliceCmd:
			list, _ := a.value.([]any)
			c.SetVal(list)
		}
		return nil
	}
}

func (a anything) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(_ context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if c, ok := cmd.(*redis.ScanCmd); ok {
				s, _ := a.value.(string)
				c.SetVal([]string{s}, 0)
			}
		}
		return nil
	}
}

// grow reads a value from bytes: nothing, a number, a string, a list.
func grow(b []byte, depth int) (any, []byte) {
	if len(b) < 2 {
		return nil, nil
	}
	kind, n, rest := b[0]%4, int(b[1]), b[2:]
	switch kind {
	case 1:
		return int64(n) - 3, rest
	case 2:
		n = min(n, len(rest))
		return string(rest[:n]), rest[n:]
	case 3:
		list := []any{}
		for i := 0; i < n%16 && depth < 4; i++ {
			var v any
			v, rest = grow(rest, depth+1)
			list = append(list, v)
		}
		return list, rest
	}
	return nil, rest
}

// shrink is grow's inverse, for seeds.
func shrink(v any) []byte {
	switch v := v.(type) {
	case int64:
		return []byte{1, byte(v + 3)}
	case string:
		return append([]byte{2, byte(len(v))}, v...)
	case []any:
		b := []byte{3, byte(len(v))}
		for _, e := range v {
			b = append(b, shrink(e)...)
		}
		return b
	}
	return []byte{0, 0}
}

// Whatever the server answers, no method panics.
func FuzzReply(f *testing.F) {
	list := func(vs ...any) any { return vs }
	const id = "01JZZZZZZZZZZZZZZZZZZZZZZZ"
	hash := list("status", "SUCCESS", "total", "1", "tenant", "dA", "target", "x")
	for _, v := range []any{
		nil, int64(0), "x", id, list(), list(nil), list("0"), list(int64(0)), list(int64(-1)),
		list(int64(2), "RUNNING", "", hash), list(int64(2)), list(int64(11), "x"), list(int64(11), id), list(int64(12), ""),
		list(int64(15), "Z"), list(int64(14), hash), list(int64(17), "CANCELED"), list(int64(18), "a"), list(int64(8), nil),
		list(int64(0), int64(1), hash), list(int64(0), hash, `[{"id":"a","text":"b"}]`, list("0", `{"text":"c"}`)),
		list(int64(0), hash, "[]", list("0")), list(int64(0), hash, "null", list("-1", "{}")), list(int64(0), hash, "{", nil),
		list(int64(0), int64(1), int64(1), int64(9), "0", "m", "p", "", "k", `[{"id":"a","text":"b"}]`, list(), list()),
		list(int64(0), int64(1), int64(1), int64(9), "0", "m", "p", "", id, `[{}]`, list("x"), list("0", `{"text":1}`)),
	} {
		f.Add(shrink(v))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		value, _ := grow(b, 0)
		rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
		defer rdb.Close()
		rdb.AddHook(anything{value})
		w := &world{Store: New(rdb, Options{Logger: slog.New(slog.DiscardHandler)}), target: job.Target{Tenant: "t", ID: "x"}}
		c := job.Creation{
			Ref:      job.Ref{ID: "01JZZZZZZZZZZZZZZZZZZZZZ" + job.ID(w.target.Shard()), Target: w.target},
			Comments: []job.Comment{{ID: "a", Text: "b"}},
		}
		for name, call := range methodsOf(w, c) {
			if err := call(ctx); errors.Is(err, context.Canceled) {
				t.Error(name, err)
			}
		}
		b2, err := w.Begin(ctx, attempt(c, "t"))
		if err == nil {
			_ = w.Finish(ctx, attempt(c, "t"), b2.Kept, job.Extra{})
		}
		var held *job.HeldError
		if errors.As(w.Acquire(ctx, c), &held) {
			c.Missing = held.Holder
			_ = w.Acquire(ctx, c)
		}
		if j, all, err := w.Results(ctx, c.ID); err == nil && (j == nil || len(all) != j.Total) {
			t.Errorf("results without a job: %v %v", j, all)
		}
	})
}

// A server that speaks another protocol, or Redis's with the wrong things in it,
// is an error on every move and a panic on none.
func TestStore_wrongServer(t *testing.T) {
	for _, said := range []string{
		"+OK\r\n", ":5\r\n", "$-1\r\n", "*-1\r\n", "_\r\n", "#t\r\n", ",1.5\r\n", "%1\r\n+a\r\n+b\r\n", "*0\r\n",
		"*1\r\n$1\r\n0\r\n", "*1\r\n:99\r\n", "*1\r\n*1\r\n:0\r\n", "HTTP/1.1 200 OK\r\n\r\n", "-ERR no\r\n", "", "\r\n", "\x00\r\n",
	} {
		addr := speaking(t, said)
		rdb := NewClient(ClientOptions{Addrs: []string{addr}})
		w := &world{Store: New(rdb, Options{}), t: t, target: job.Target{Tenant: "t", ID: "x"}}
		for name, call := range methods(w) {
			switch name {
			case "Ping", "EvictionPolicy", "Recall", "Watched":
				continue // not of one script's reply
			}
			assert.Error(t, call(ctx), "%s %q", name, said)
		}
		require.NoError(t, rdb.Close())
	}
}

// speaking answers HELLO with an error, as old servers do, and all else with said.
func speaking(t *testing.T, said string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				b := make([]byte, 1<<16)
				_ = c.SetDeadline(time.Now().Add(10 * time.Second))
				if n, err := c.Read(b); err != nil || n == 0 {
					return
				}
				_, _ = c.Write([]byte("-ERR unknown command\r\n"))
				for {
					if _, err := c.Read(b); err != nil {
						return
					}
					if _, err := c.Write([]byte(said)); err != nil || said == "" {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// What Redis answers when it cannot now, in any words, is ErrUnavailable; a fault
// of a script is not.
func TestClassify_replies(t *testing.T) {
	m := miniredis.RunT(t)
	rdb := NewClient(ClientOptions{Addrs: []string{m.Addr()}})
	defer rdb.Close()
	s := New(rdb, Options{})
	target := job.Target{Tenant: "t", ID: "x"}
	for _, text := range []string{
		"OOM command not allowed when used memory > 'maxmemory'.", "READONLY You can't write against a read only replica.",
		"CLUSTERDOWN The cluster is down", "LOADING Redis is loading the dataset in memory",
		"MASTERDOWN Link with MASTER is down", "BUSY Redis is busy running a script", "MISCONF Errors writing to the AOF file",
		"NOAUTH Authentication required.", "WRONGPASS invalid username-password pair or user is disabled.",
		"NOREPLICAS Not enough good replicas to write.", "ERR max number of clients reached",
		"ERR Script attempted to access a non local key in a cluster node script: x", "MOVED 1 127.0.0.1:1",
	} {
		m.SetError(text)
		_, err := s.Newest(ctx, target)
		assert.ErrorIs(t, err, job.ErrUnavailable, text)
		_, err = s.Read(ctx, "01JZZZZZZZZZZZZZZZZZZZZZZZ")
		assert.ErrorIs(t, err, job.ErrUnavailable, text)
	}
	for _, text := range []string{"ERR Error compiling script", "WRONGTYPE Operation against a key", "CROSSSLOT Keys in request don't hash to the same slot"} {
		m.SetError(text)
		_, err := s.Newest(ctx, target)
		require.Error(t, err)
		assert.NotErrorIs(t, err, job.ErrUnavailable, text)
		assert.NotErrorIs(t, err, job.ErrNotFound, text)
	}
	m.SetError("")
	_, err := s.Newest(ctx, target)
	assert.ErrorIs(t, err, job.ErrNotFound)
}
