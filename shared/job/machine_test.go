package job

import (
	_ "embed"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// machineTable has a line for every cell: from, move, what it answers and makes of job A.
//
//go:embed testdata/machine.txt
var machineTable string

// The states that a table's rows start from, as calls on an empty Machine: what
// leads there is itself read from the table's other rows.
func machineFroms() []struct {
	name  string
	calls []Call
} {
	const a, z = ID("A"), ID("")
	acquire := Call{Move: MoveAcquire, ID: a, Total: 2}
	begin := func(token string) Call { return Call{Move: MoveBegin, ID: a, Token: token, Attempts: 2} }
	record := func(i int) Call {
		return Call{Move: MoveRecord, ID: a, Token: "t", Results: []Result{{Index: i, Text: fmt.Sprint("text ", i)}}}
	}
	finish := Call{Move: MoveFinish, ID: a, Token: "t"}
	pass := func(m Move) Call { return Call{Move: m, ID: z} }
	done := []Call{acquire, begin("t"), record(0), record(1), finish}
	with := func(cs []Call, more ...Call) []Call { return append(slices.Clone(cs), more...) }
	return []struct {
		name  string
		calls []Call
	}{
		{"nothing", nil},
		{"unbegun", []Call{acquire}},
		{"rested", []Call{acquire, pass(MoveLapse)}},
		{"begun", []Call{acquire, begin("t")}},
		{"complete", done[:4]},
		{"lapsed", with(done[:3], pass(MoveLapse))},
		{"replaced", with(done[:3], pass(MoveLapse), begin("u"))},
		{"exhausted", with(done[:3], pass(MoveLapse), begin("u"), pass(MoveLapse))},
		{"unclaimed", with(done[:4], pass(MoveLoseClaim))},
		{"overdue", with(done[:4], pass(MoveDeadline))},
		{"SUCCESS", done},
		{"faded", with(done, Call{Move: MoveApplied, ID: a}, pass(MoveFade))},
		{"FAILED", []Call{acquire, begin("t"), {Move: MoveFail, ID: a, Guard: GuardCancel, Code: CodeCanceled}}},
		{"vanished", []Call{acquire, begin("t"), pass(MoveVanish)}},
	}
}

// machineMoves are the columns: what is done to job A, or to its target.
func machineMoves() []struct {
	name string
	call Call
} {
	const a = ID("A")
	return []struct {
		name string
		call Call
	}{
		{"acquire", Call{Move: MoveAcquire, ID: a, Total: 2}},
		{"acquire B", Call{Move: MoveAcquire, ID: "B", Total: 2}},
		{"acquire B, A missing", Call{Move: MoveAcquire, ID: "B", Other: a, Total: 2}},
		{"acquire 0", Call{Move: MoveAcquire, ID: "0", Total: 2}},
		{"begin t", Call{Move: MoveBegin, ID: a, Token: "t", Attempts: 2}},
		{"begin v", Call{Move: MoveBegin, ID: a, Token: "v", Attempts: 2}},
		{"begin no token", Call{Move: MoveBegin, ID: a, Attempts: 2}},
		{"record", Call{Move: MoveRecord, ID: a, Token: "t", Results: []Result{{Index: 0, Text: "again"}}}},
		{"record 2", Call{Move: MoveRecord, ID: a, Token: "t", Results: []Result{{Index: 2, Text: "beyond"}}}},
		{"renew", Call{Move: MoveRenew, ID: a, Token: "t"}},
		{"finish", Call{Move: MoveFinish, ID: a, Token: "t"}},
		{"fail worker", Call{Move: MoveFail, ID: a, Guard: GuardWorker, Token: "t", Code: CodeLLMFailed}},
		{"fail start", Call{Move: MoveFail, ID: a, Guard: GuardStart, Code: CodeDispatchFailed}},
		{"cancel", Call{Move: MoveFail, ID: a, Guard: GuardCancel, Code: CodeCanceled}},
		{"read", Call{Move: MoveRead, ID: a}},
		{"results", Call{Move: MoveResults, ID: a}},
		{"applied", Call{Move: MoveApplied, ID: a}},
		{"erase", Call{Move: MoveErase, ID: a, Other: a}},
		{"erase none", Call{Move: MoveErase}},
		{"inspect", Call{Move: MoveInspect, ID: a, Attempts: 2}},
		{"newest", Call{Move: MoveNewest}},
	}
}

// run makes the calls one after the other.
func run(calls ...Call) (m Machine, a Answer) {
	for _, c := range calls {
		m, a = m.Step(c)
	}
	return m, a
}

// cell says in a few words what a call answered and what it made of job A: the
// arrow is there exactly when the job's status changed.
func cell(before, after Machine, a Answer) string {
	s := string(a.Reply)
	if a.Code != "" {
		s += " " + string(a.Code)
	} else if a.Status != "" {
		s += " " + string(a.Status)
	}
	was, is := standing(before), standing(after)
	if was != is {
		s += " -> " + is
	}
	return s
}

func standing(m Machine) string {
	l := m.life("A")
	switch {
	case l == nil:
		return "missing"
	case l.Code != "":
		return string(l.Code)
	}
	return string(l.Status)
}

func TestMachine_everyFromTimesTo(t *testing.T) {
	want := map[string]string{}
	for line := range strings.Lines(machineTable) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		from, rest, _ := strings.Cut(line, "|")
		move, expected, _ := strings.Cut(rest, "|")
		want[strings.TrimSpace(from)+"/"+strings.TrimSpace(move)] = strings.TrimSpace(expected)
	}
	count := 0
	for _, from := range machineFroms() {
		for _, move := range machineMoves() {
			count++
			name := from.name + "/" + move.name
			before, _ := run(from.calls...)
			after, a := before.Step(move.call)
			if got := cell(before, after, a); got != want[name] {
				t.Errorf("%-9s | %-20s | %s\n\twant %q", from.name, move.name, got, want[name])
			}
			if again, _ := run(from.calls...); !before.Equal(again) {
				t.Errorf("%s: Step changed the Machine it was called on", name)
			}
			refused := a.Reply != ReplyOK && a.Reply != ReplyEnded && a.Reply != ReplyRedispatch && standing(before) == standing(after)
			if refused && !before.Equal(after) {
				t.Errorf("%s: a refusal changed something", name)
			}
			if twice, b := after.Step(move.call); move.call.Move != MoveInspect && (!twice.Equal(after) || !a.Equal(b)) {
				t.Errorf("%s: a repeat is answered %v, the first time %v", name, b, a)
			}
		}
	}
	if count != len(want) {
		t.Errorf("the table has %d cells, want %d", len(want), count)
	}
}

// What a table of single steps cannot say: long random walks never break what
// Sunhwa promises.
func TestMachine_promisesOnRandomWalks(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		var m Machine
		for step := range 200 {
			c := randomCall(random, m)
			next, a := m.Step(c)
			if fault := brokenPromise(m, c, next, a); fault != "" {
				t.Fatalf("seed %d, step %d, %+v answered %+v: %s", seed, step, c, a, fault)
			}
			m = next
		}
	}
}

func randomCall(random *rand.Rand, m Machine) Call {
	moves := []Move{
		MoveAcquire, MoveAcquire, MoveBegin, MoveBegin, MoveRecord, MoveRecord, MoveRecord, MoveRenew, MoveFinish, MoveFinish,
		MoveFail, MoveRead, MoveResults, MoveApplied, MoveErase, MoveInspect, MoveNewest,
		MoveLapse, MoveDeadline, MoveFade, MoveVanish, MoveLoseClaim,
	}
	c := Call{
		Move: moves[random.IntN(len(moves))], ID: ID(fmt.Sprintf("%03d", len(m.Jobs)+random.IntN(3))),
		Token: []string{"t", "u", ""}[random.IntN(3)], Total: 2, Attempts: 3, Other: m.Kept,
		Results: []Result{{Index: random.IntN(2), Text: fmt.Sprint("text ", random.IntN(100)), Usage: Usage{Calls: 1}}},
		Guard:   []Guard{GuardWorker, GuardStart, GuardCancel}[random.IntN(3)], Code: CodeCanceled,
	}
	if len(m.Jobs) > 0 && (c.Move != MoveAcquire || random.IntN(2) == 0) {
		c.ID = m.Jobs[max(0, len(m.Jobs)-1-random.IntN(2))].ID
	}
	if c.Move == MoveErase {
		c.Other = m.Last
	}
	if (c.Move == MoveVanish || c.Move == MoveLoseClaim) && random.IntN(4) > 0 {
		c.Move = MoveRead
	}
	return c
}

func brokenPromise(m Machine, c Call, next Machine, a Answer) string {
	kept := 0
	for _, l := range next.Jobs {
		if l.Status.Terminal() && next.Claim == l.ID {
			return "the claim names a terminal job"
		}
		if l.Status == Success && !l.Gone {
			kept++
		}
		if l.Status == Failed && slices.ContainsFunc(l.Texts, func(s string) bool { return s != "" }) {
			return "a FAILED job has texts"
		}
		if old := m.life(l.ID); old != nil && old.Status.Terminal() && (old.Status != l.Status || old.Code != l.Code) {
			return "a terminal job moved"
		}
	}
	switch {
	case kept > 1:
		return "the texts of two finished jobs are kept"
	case next.Last < m.Last:
		return "ids do not order as acquired"
	case c.Move == MoveRead && a.Status == Running && m.life(c.ID).Overdue:
		return "RUNNING was read after the deadline"
	case c.Move == MoveResults && a.Reply == ReplyOK && slices.Contains(a.Texts, ""):
		return "a result is missing from a SUCCESS"
	}
	return ""
}
