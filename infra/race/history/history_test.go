package history

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sunhwa/infra/testkit"
	"sunhwa/shared/job"
	"sunhwa/shared/jobstore"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// A run is bounded in count and in time, whichever comes first.
var (
	targets = flag.Int("targets", 60, "histories recorded on each deployment")
	within  = flag.Duration("within", 30*time.Second, "no history is begun on a deployment after this long")
	seed    = flag.Uint64("seed", 1, "what the clients of the first history do; the next ones count up")
)

// searchLimit is how long porcupine may look for one order: it needs milliseconds.
const searchLimit = time.Minute

func TestHistories_areLinearizable(t *testing.T) {
	for _, e := range testkit.Engines(t) {
		t.Run(e.Name, func(t *testing.T) {
			began, seen, calls, count := time.Now(), map[string]int{}, 0, 0
			s := servers(t, e)
			for ; count < *targets && (count < 20 || time.Since(began) < *within); count++ {
				h, err := Record(t.Context(), s, fmt.Sprintf("%s-%d", t.Name(), count), *seed+uint64(count))
				require.NoError(t, err)
				calls += len(h.Ops)
				tally(seen, h)
				if err := Check(h, searchLimit); err != nil {
					show(t, err, *seed+uint64(count))
				}
			}
			t.Logf("%d histories, %d calls: %v", count, calls, seen)
			// A history in which nothing happens is explained by any machine.
			for _, must := range []string{"acquire OK", "begin OK", "record OK", "finish OK", "read OK", "results STATE", "overlapping"} {
				require.Positive(t, seen[must], "no %q in any history", must)
			}
		})
	}
}

// servers connects twice: two stores with a pool each.
func servers(t *testing.T, e *testkit.Engine) Servers {
	var s Servers
	for range 2 {
		c := jobstore.NewClient(jobstore.ClientOptions{Addrs: e.Addrs, Cluster: e.Cluster})
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		s.Clients = append(s.Clients, c)
	}
	return s
}

// tally counts what was asked and answered, and the calls that began before an
// earlier one had ended.
func tally(seen map[string]int, h History) {
	end := int64(-1)
	for _, o := range h.Ops {
		seen[string(o.In.Move)+" "+string(o.Out.Reply)]++
		if o.Call < end {
			seen["overlapping"]++
		}
		end = max(end, o.Return)
	}
}

// show fails the test with the violation as a table, and leaves the history and
// porcupine's page in the test's artifact folder (go test -artifacts keeps it).
func show(t *testing.T, err error, seed uint64) {
	t.Helper()
	var v *Violation
	if !errors.As(err, &v) {
		t.Fatal(err)
	}
	dir := t.ArtifactDir()
	require.NoError(t, v.History.Save(filepath.Join(dir, "history.json")))
	page, err := os.Create(filepath.Join(dir, "history.html"))
	require.NoError(t, err)
	require.NoError(t, v.Page(page))
	require.NoError(t, page.Close())
	t.Fatalf("seed %d\n%s\nThe history is in %s.", seed, v.Table(), dir)
}

// The checker is checked: histories written by hand, each of which shows one
// thing that must, or must not, be explained.
func TestFixtures(t *testing.T) {
	for _, kind := range []string{"good", "bad"} {
		files, err := filepath.Glob(filepath.Join("testdata", kind, "*.json"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			t.Run(kind+"/"+strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
				h, err := Load(file)
				require.NoError(t, err)
				require.NotEmpty(t, h.Why)
				err = Check(h, searchLimit)
				if kind == "good" {
					if err != nil {
						show(t, err, 0)
					}
					return
				}
				var v *Violation
				require.ErrorAs(t, err, &v, "accepted: %s", h.Why)
				require.Contains(t, v.Table(), "where the state machine answers")
			})
		}
	}
}

// A fixture is refused for what it shows and nothing else: without its last call,
// which is the impossible one, it is explained.
func TestFixtures_badOnlyByTheirLastCall(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "bad", "*.json"))
	require.NoError(t, err)
	for _, file := range files {
		h, err := Load(file)
		require.NoError(t, err)
		h.Ops = h.Ops[:len(h.Ops)-1]
		require.NoError(t, Check(h, searchLimit), file)
	}
}

// Faulty scripts on a real server: histories recorded on them are refused.
func TestHistories_noticeFaultyScripts(t *testing.T) {
	faults := []struct{ name, script, from, to string }{
		{"two winners of one claim", "acquire", "if not gone then return {HELD, holder} end", ""},
		{"a stale worker's record", "lib", "if token == '' or now[3] ~= token then return {STALE} end", ""},
		{"a second attempt beside a live lease", "begin", "if f[4] ~= '' and pttl > tonumber(f[5]) then return {BUSY} end", ""},
		{"the deadline not applied by read", "read", "apply_deadline(k, ARGV[1])", ""},
		{"a usage added twice", "record", "redis.call('HSETNX', out, ARGV[i], ARGV[i + 1]) == 1", "redis.call('HSET', out, ARGV[i], ARGV[i + 1]) >= 0"},
		{"a claim kept after the end", "finish", "redis.call('DEL', run)", ""},
	}
	s := servers(t, testkit.Redis(t))
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			text := jobstore.Sources()[f.script]
			require.Equal(t, 1, strings.Count(text, f.from), "the script has changed")
			s.Scripts = map[string]string{f.script: strings.Replace(text, f.from, f.to, 1)}
			for i := range 500 {
				h, err := Record(t.Context(), s, fmt.Sprintf("%s-%d", t.Name(), i), uint64(i))
				require.NoError(t, err)
				var v *Violation
				if errors.As(Check(h, searchLimit), &v) {
					t.Logf("noticed in history %d\n%s", i+1, v.Table())
					return
				}
			}
			t.Fatal("500 histories and nothing noticed")
		})
	}
}

// A lost reply may have taken effect or not: both are explained, and what follows
// must agree with one of the two.
func TestCheck_unknownReply(t *testing.T) {
	acquire := job.Call{Move: job.MoveAcquire, ID: "A", Total: 1}
	read := job.Call{Move: job.MoveRead, ID: "A"}
	lost := Op{Who: "starter", Call: 1, Return: 2, In: acquire, Out: job.Answer{Reply: job.ReplyUnknown}}
	there := Op{Who: "reader", Call: 5, Return: 6, In: read, Out: job.Answer{Reply: job.ReplyOK, Status: job.Running, Total: 1}}
	missing := Op{Who: "reader", Call: 3, Return: 4, In: read, Out: job.Answer{Reply: job.ReplyNotFound}}
	late := missing
	late.Call, late.Return = 7, 8
	require.NoError(t, Check(History{Ops: []Op{lost, there}}, searchLimit))
	require.NoError(t, Check(History{Ops: []Op{lost, missing}}, searchLimit))
	require.NoError(t, Check(History{Ops: []Op{lost, missing, there}}, searchLimit))
	require.Error(t, Check(History{Ops: []Op{lost, there, late}}, searchLimit))
}
