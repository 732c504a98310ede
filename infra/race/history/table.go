package history

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"sunhwa/shared/job"
)

// Table shows the violation to a person: every call, its place in the longest
// order that fits, and why none of the calls that could follow does. Ids are
// J1, J2, … in their own order.
func (v *Violation) Table() string {
	place := make(map[int]int, len(v.Order))
	for i, op := range v.Order {
		place[op] = i + 1
	}
	var b strings.Builder
	short := v.names().Replace // before the columns are measured
	fmt.Fprintf(&b, "Target %s: no order of these %d calls explains their answers.\n\n", v.History.Target, len(v.History.Ops))
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	line := func(format string, a ...any) { _, _ = fmt.Fprintf(w, format, a...) } // a strings.Builder takes everything
	line("#\tclient\tcalled ms\treturned ms\tplace\tcall\tanswer\n")
	for i, o := range v.History.Ops {
		returned, at := fmt.Sprintf("%.3f", float64(o.Return)/1e6), "-"
		if o.Out.Reply == job.ReplyUnknown {
			returned = "never"
		}
		if place[i] > 0 {
			at = fmt.Sprint(place[i])
		}
		line("%d\t%s\t%.3f\t%s\t%s\t%s\t%s\n",
			i+1, o.Who, float64(o.Call)/1e6, returned, at, short(call(o.In)), short(answer(o.Out)))
	}
	_ = w.Flush()

	var m job.Machine
	for _, i := range v.Order {
		m, _ = m.Step(v.History.Ops[i].In)
	}
	fmt.Fprintf(&b, "\nThe longest order that fits has %d calls (column place). After it: %s.\nNone of these can come next:\n",
		len(v.Order), short(machine(m)))
	for _, i := range v.next(place) {
		o := v.History.Ops[i]
		_, want := m.Step(o.In)
		fmt.Fprintf(&b, "  #%d %s: %s answered %s, where the state machine answers %s\n",
			i+1, o.Who, short(call(o.In)), short(answer(o.Out)), short(answer(want)))
	}
	return b.String()
}

// next lists the calls without a place that began before any other such call had
// returned: only these may follow.
func (v *Violation) next(place map[int]int) []int {
	first := int64(math.MaxInt64)
	for i, o := range v.History.Ops {
		if place[i] == 0 && o.Out.Reply != job.ReplyUnknown {
			first = min(first, o.Return)
		}
	}
	var next []int
	for i, o := range v.History.Ops {
		if place[i] == 0 && o.Call <= first && o.Out.Reply != job.ReplyUnknown {
			next = append(next, i)
		}
	}
	return next
}

// names shortens ids.
func (v *Violation) names() *strings.Replacer {
	var ids []string
	for _, o := range v.History.Ops {
		ids = append(ids, string(o.In.ID), string(o.In.Other), string(o.Out.Other))
	}
	slices.Sort(ids)
	var pairs []string
	for _, id := range slices.Compact(ids) {
		if len(id) == 26 { // a fixture's names are short already
			pairs = append(pairs, id, fmt.Sprint("J", len(pairs)/2+1))
		}
	}
	return strings.NewReplacer(pairs...)
}

func call(c job.Call) string {
	s := string(c.Move)
	add := func(format string, a ...any) { s += " " + fmt.Sprintf(format, a...) }
	if c.ID != "" {
		add("%s", c.ID)
	}
	if c.Move == job.MoveFail {
		add("%s (guard %s)", c.Code, c.Guard)
	}
	for _, r := range c.Results {
		add("comment %d", r.Index)
	}
	if c.Token != "" {
		add("by %s", c.Token)
	}
	if c.Extra.Seq != 0 {
		add("with usage %d", c.Extra.Seq)
	}
	switch {
	case c.Move == job.MoveErase:
		add("newest %q", c.Other)
	case c.Move == job.MoveAcquire && c.Other != "":
		add("missing %s", c.Other)
	case c.Move == job.MoveFinish && c.Other != "":
		add("kept %s", c.Other)
	}
	return s
}

func answer(a job.Answer) string {
	s := string(a.Reply)
	add := func(format string, a ...any) { s += " " + fmt.Sprintf(format, a...) }
	switch {
	case a.Code != "" && a.Status != "":
		add("%s(%s)", a.Status, a.Code)
	case a.Code != "":
		add("%s", a.Code)
	case a.Status != "":
		add("%s", a.Status)
	}
	if a.Other != "" {
		add("%s", a.Other)
	}
	if a.Attempt != 0 {
		add("attempt %d", a.Attempt)
	}
	if a.Token != "" {
		add("token %s", a.Token)
	}
	if a.Done != 0 || a.Total != 0 {
		add("done %d", a.Done)
	}
	if a.Usage != (job.Usage{}) {
		add("calls %d", a.Usage.Calls)
	}
	if a.Texts != nil {
		add("%q", a.Texts)
	}
	if a.Applied {
		add("applied")
	}
	return s
}

func machine(m job.Machine) string {
	s := fmt.Sprintf("claim %q, last %q, kept %q", m.Claim, m.Last, m.Kept)
	for _, l := range m.Jobs {
		s += fmt.Sprintf("; %s %s", l.ID, l.Status)
		switch {
		case l.Code != "":
			s += fmt.Sprintf("(%s)", l.Code)
		case l.Overdue:
			s += " overdue"
		case l.Live:
			s += " leased"
		}
		s += fmt.Sprintf(" attempt %d token %q done %d calls %d", l.Attempt, l.Token, l.Done, l.Usage.Calls)
	}
	return s
}
