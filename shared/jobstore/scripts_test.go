package jobstore

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/shared/job"
)

// Every script says what it is, is short, asks no clock but PTTL and builds no
// key of its own.
func TestScripts_house(t *testing.T) {
	names, err := fs.Glob(files, "lua/*.lua")
	require.NoError(t, err)
	assert.Len(t, names, len(Moves())+1, "every file is a move, or lib")
	for name, text := range Sources() {
		t.Run(name, func(t *testing.T) {
			lines := strings.Split(strings.TrimSpace(text), "\n")
			assert.True(t, strings.HasPrefix(lines[0], "-- "+name+".lua: "), "the first line says what it does")
			assert.Contains(t, text, "-- Invariant")
			code := regexp.MustCompile(`(?m)--.*$`).ReplaceAllString(text, "")
			for _, banned := range []string{"TIME'", "cjson", "unpack", "redis.error_reply", "return nil\n", "'{", "{'..", "pcall", "KEYS[#", "'KEYS'", "'SCAN'"} {
				if name == "lib" && banned == "return nil\n" {
					continue
				}
				assert.NotContains(t, code, banned)
			}
			for _, call := range regexp.MustCompile(`redis\.call\('\w+', ([^,)]+)`).FindAllStringSubmatch(code, -1) {
				assert.Regexp(t, `^(k\.)?[a-z_]+$|^KEYS\[`, call[1], "a key that came in through KEYS")
				assert.NotContains(t, call[1], "..")
			}
			if name == "lib" {
				return
			}
			assert.Less(t, len(lines), 60)
			for _, word := range []string{"-- KEYS: ", "-- ARGV: ", "-- Returns: "} {
				assert.Contains(t, text, word)
			}
			// The header's codes and those the script returns are the same, lib's aside.
			header := text[strings.Index(text, "-- Returns:"):strings.Index(text, "-- Invariant")]
			for _, returned := range regexp.MustCompile(`return \{([A-Z_]+)`).FindAllStringSubmatch(code, -1) {
				assert.Contains(t, header, "{"+returned[1], "a code the header does not name")
			}
		})
	}
}

// The codes have the same values in Lua and in Go, and every one of them is told
// from every other by its own sentinel or verdict.
func TestScripts_codesAgree(t *testing.T) {
	m := miniredis.RunT(t)
	rdb := redis.NewClient(&redis.Options{Addr: m.Addr()})
	defer rdb.Close()
	require.Equal(t, int(codeLeft)+1, len(codeNames))
	v, err := rdb.Eval(ctx, Sources()["lib"]+"\nreturn {"+strings.Join(codeNames, ",")+"}", nil).Result()
	require.NoError(t, err)
	for i, value := range v.([]any) {
		assert.Equal(t, int64(i), value, codeNames[i])
	}
	inLua := regexp.MustCompile(`\b[A-Z][A-Z_]+\b`).FindAllString(strings.Join(
		regexp.MustCompile(`(?m)^local [A-Z][^=]+=`).FindAllString(Sources()["lib"], -1), " "), -1)
	assert.ElementsMatch(t, codeNames, inLua, "the two tables list the same names")

	id := "01JZZZZZZZZZZZZZZZZZZZZZZZ"
	var errs []string
	for i := range codeNames {
		r := reply{int64(i), id, "x"}
		if err := r.refusal("record"); err != nil {
			errs = append(errs, err.Error())
		}
	}
	assert.Len(t, errs, len(codeNames)-1, "OK alone is no refusal")
	slices.Sort(errs)
	assert.Len(t, slices.Compact(errs), len(codeNames)-1, "no two refusals look alike")
	for _, unknown := range []int64{-1, int64(len(codeNames)), 1 << 40} {
		for _, move := range Moves() {
			assert.ErrorContains(t, reply{unknown}.refusal(move), "unknown code")
		}
	}
}

// A verdict of inspect is no answer to anything else: nothing is taken as done.
func TestScripts_verdictsBelongToInspect(t *testing.T) {
	for _, c := range []code{codeForgotten, codeEnded, codeRedispatch, codeLeft, 99} {
		broken := map[string]string{}
		for _, move := range Moves() {
			if move != "inspect" || c == 99 {
				broken[move] = fmt.Sprintf("return {%d, '', '', {}}", c)
			}
		}
		m := miniredis.RunT(t)
		w := newWorld(t, ClientOptions{Addrs: []string{m.Addr()}}, Options{Scripts: broken})
		for name, call := range methods(w) {
			switch name {
			case "Recall", "Newest", "Watched", "Ping", "EvictionPolicy":
				continue // no script
			case "Inspect":
				if c != 99 {
					continue
				}
			}
			err := call(ctx)
			assert.ErrorContains(t, err, "unknown code", "%s %d", name, c)
			assert.NotErrorIs(t, err, job.ErrUnavailable)
		}
	}
}

// Options.Scripts replaces what a store runs, and only in that store.
func TestScripts_replaced(t *testing.T) {
	onMini(t, func(t *testing.T, w *world) {
		faulty := w.other(Options{Scripts: map[string]string{"renew": "return {STALE}"}})
		c := begunWith(w, 0)
		require.ErrorIs(t, faulty.Renew(ctx, attempt(c, "t")), job.ErrStale)
		require.NoError(t, w.Renew(ctx, attempt(c, "t")))
		Sources()["renew"] = ""
		require.NoError(t, New(w.rdb, Options{}).Renew(ctx, attempt(c, "t")), "the map was a copy")
	})
}
