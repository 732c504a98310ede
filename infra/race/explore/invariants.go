package explore

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sunhwa/shared/job"
)

// invariants is the table; the first that fails is the one a fault is named by,
// so the specific stand before the general.
var invariants = []Invariant{
	{"known answers", "every call answers something its contract lists", 0, func(s *stepped) string {
		if s.reply.known() {
			return ""
		}
		return s.reply.text
	}},
	{"repeat", "a call whose reply was lost, repeated before anything else happened, answers the same and changes nothing", 6, func(s *stepped) string {
		if !s.repeat || !s.untouched {
			return ""
		}
		if d := s.differs(); len(d) > 0 {
			return "the repeat changed " + strings.Join(d, ", ")
		}
		if s.op.move == "fail" && s.op.code == job.CodeDeadlineExceeded && s.reply.err == nil && s.lost == answer(job.ErrOverdue) {
			return "" // both say FAILED(DEADLINE_EXCEEDED): by this call, and already
		}
		return want(s.reply.text, s.lost)
	}},
	{"terminal is final", "a job that is SUCCESS or FAILED stays as it is", 2, func(s *stepped) string {
		for _, v := range s.jobs(s.before) {
			e := s.after.keys[v.keys.Job]
			if e == nil && s.op.move != "clock" {
				return short(v.id) + " is gone"
			}
			if !v.terminal || e == nil {
				continue
			}
			for _, f := range []string{"status", "error", "finishedAt", "token", "done", "total", "calls"} {
				if was, is := s.before.keys.field(v.keys.Job, f), e.fields[f]; was != is {
					return fmt.Sprintf("%s of %s went from %q to %q", f, short(v.id), was, is)
				}
			}
		}
		return ""
	}},
	{"success is earned", "SUCCESS comes from finish alone, before the deadline, with claim, token and every result in hand", 4, func(s *stepped) string {
		for _, v := range s.ended() {
			k := s.before.keys
			if s.after.keys.field(v.keys.Job, "status") != "SUCCESS" {
				continue
			}
			switch {
			case s.op.move != "finish":
				return s.op.move + " made SUCCESS"
			case v.left <= 0:
				return "SUCCESS after the deadline"
			case k.text(v.keys.Run) != string(v.id):
				return "SUCCESS without the claim"
			case v.token == "" || v.token != s.op.token:
				return "SUCCESS without the token"
			case k.size(v.keys.Out) != int(k.number(v.keys.Job, "total")):
				return "SUCCESS without every result"
			}
		}
		return ""
	}},
	{"the fence", "a worker's write that lacks state, time, claim or token changes nothing", 3, func(s *stepped) string {
		if slices.Contains([]string{"record", "renew", "finish"}, s.op.move) && s.refusal() != "" {
			if d := s.differs(); len(d) > 0 {
				return s.refusal() + ", yet it changed " + strings.Join(d, ", ")
			}
		}
		return ""
	}},
	{"refusals write nothing", "what is refused has changed nothing", 3, func(s *stepped) string {
		reads := s.op.move == "read" || s.op.move == "results"
		ends := s.op.move == "fail" && errors.Is(s.reply.err, job.ErrOverdue) && !s.at().terminal
		silent := s.reply.err != nil && !ends && !reads || reads && !overdue(s) || s.op.move == "newest" ||
			s.reply.verdict.Kind == job.Left
		if d := s.differs(); silent && len(d) > 0 {
			return "it changed " + strings.Join(d, ", ")
		}
		return ""
	}},
	{"the right answer", "each call answers by the state it meets, checked in the order missing, state, deadline, claim, token", 3, func(s *stepped) string {
		if e := s.expected(); e != "" {
			return want(s.reply.text, e)
		}
		return told(s)
	}},
	{"one owner", "at most one job of a target is RUNNING before its deadline", 1, func(s *stepped) string {
		n := 0
		for _, v := range s.jobs(s.after) {
			if v.running {
				n++
			}
		}
		if n > 1 && !s.sc.failover {
			return fmt.Sprintf("%d jobs run", n)
		}
		return ""
	}},
	{"the claim", "run names a RUNNING job and ends at its deadline", 1, claim},
	{"the claim is given back", "a job that ends leaves no claim, and only its own", 5, func(s *stepped) string {
		k := s.sc.names("")
		was, is := s.before.keys.text(k.Run), s.after.keys.text(k.Run)
		for _, v := range s.ended() {
			if is == string(v.id) {
				return "run still names " + short(v.id)
			}
		}
		if was != "" && was != is && s.op.move != "clock" && s.op.move != "failover" {
			if v := s.sc.job(s.after.keys, job.ID(was)); v.status == "RUNNING" {
				return "the claim of " + short(v.id) + ", which runs, is gone"
			}
		}
		return ""
	}},
	{"failed is unreadable", "no result of a FAILED job can be read, and none before SUCCESS", 7, func(s *stepped) string {
		for _, v := range s.jobs(s.after) {
			if v.status == "FAILED" && (s.after.keys[v.keys.In] != nil || s.after.keys[v.keys.Out] != nil) {
				return "texts of " + short(v.id) + " are still there"
			}
		}
		if s.op.move == "results" && s.reply.err == nil && s.at().status != "SUCCESS" {
			return "results of a job that is " + s.at().status
		}
		return ""
	}},
	{"nobody reads RUNNING late", "from the deadline on every read says FAILED(DEADLINE_EXCEEDED)", 4, func(s *stepped) string {
		var state *job.StateError
		if s.op.move == "results" && overdue(s) && errors.As(s.reply.err, &state) && state.Status == job.Running {
			return "results say RUNNING"
		}
		if s.op.move != "read" || s.reply.err != nil {
			return ""
		}
		if s.reply.job.Status == job.Running && s.at().left <= 0 {
			return "read RUNNING"
		}
		if overdue(s) && (s.reply.job.Failure == nil || s.reply.job.Failure.Code != job.CodeDeadlineExceeded) {
			return "read " + describe(s.reply.job)
		}
		return ""
	}},
	{"counts", "done, results and cost agree: a result is paid once and counted once", 6, counts},
	{"results stay", "a recorded result and a remembered answer are never replaced", 6, func(s *stepped) string {
		for _, v := range s.jobs(s.before) {
			if a, b := s.before.keys[v.keys.Out], s.after.keys[v.keys.Out]; !keptFields(a, b) {
				return "a result of " + short(v.id) + " was replaced"
			}
		}
		k := s.sc.names("")
		fresh := s.op.move == "record" && s.before.keys.field(s.at().keys.Job, "fresh") == "1"
		if !fresh && !keptFields(s.before.keys[k.Memo], s.after.keys[k.Memo]) {
			return "a remembered answer was replaced"
		}
		return ""
	}},
	{"the memo", "it takes every new answer until it is full, lives from its creation on, and is never renewed", 6, memo},
	{"its own clock", "nothing moves a RUNNING job's time, whatever the configuration of the caller", 5, func(s *stepped) string {
		if s.op.move == "clock" {
			return ""
		}
		for _, v := range s.jobs(s.after) {
			was := s.sc.job(s.before.keys, v.id)
			switch {
			case v.terminal:
			case was.status == "":
				if c := s.op.make; c == nil || v.ttl != (c.Deadline+c.Retention).Milliseconds() || v.left != c.Deadline.Milliseconds() {
					return fmt.Sprintf("%s was born with %d ms, %d to its deadline", short(v.id), v.ttl, v.left)
				}
			case was.ttl != v.ttl || was.left != v.left:
				return fmt.Sprintf("%s had %d ms and now %d", short(v.id), was.ttl, v.ttl)
			}
		}
		return ""
	}},
	{"the lease", "begin, record and renew hold the job for one lease from now; begin alone changes the holder", 5, func(s *stepped) string {
		moved := slices.Contains([]string{"begin", "record", "renew"}, s.op.move) && s.reply.err == nil
		for _, v := range s.jobs(s.after) {
			was := s.sc.job(s.before.keys, v.id)
			mine := moved && v.id == s.op.ref.ID
			if at := s.after.keys.number(v.keys.Job, "leaseAt"); mine && (at != v.ttl-lease.Milliseconds() || v.token != s.op.token) {
				return fmt.Sprintf("leaseAt is %d of %d, holder %s", at, v.ttl, v.token)
			}
			if was.status != "" && was.token != v.token && (s.op.move != "begin" || !mine) {
				return s.op.move + " changed the holder"
			}
			tries, had := s.after.keys.number(v.keys.Job, "attempt"), s.before.keys.number(v.keys.Job, "attempt")
			if was.status != "" && tries != had+int64(flag(was.token != v.token)) {
				return fmt.Sprintf("attempt went from %d to %d", had, tries)
			}
		}
		return ""
	}},
	{"dispatches rest", "between two dispatches of a job lies a lease", 5, func(s *stepped) string {
		if s.reply.verdict.Kind != job.Redispatch {
			if s.op.move == "acquire" && len(s.after.born) > len(s.before.born) {
				v := s.sc.job(s.after.keys, s.op.ref.ID)
				return want(fmt.Sprint(s.after.keys.number(v.keys.Job, "dispatchAt")), fmt.Sprint(v.ttl-lease.Milliseconds()))
			}
			return ""
		}
		v := s.at()
		return want(fmt.Sprint(s.after.keys.number(v.keys.Job, "dispatchAt")), fmt.Sprint(v.ttl-lease.Milliseconds()))
	}},
	{"watched", "every RUNNING job is in its watch set, a finished one is not", 5, func(s *stepped) string {
		for _, v := range s.jobs(s.after) {
			w := s.after.keys[v.keys.Watch]
			in := false
			if w != nil {
				_, in = w.fields[v.keys.Member]
			}
			if in == v.terminal {
				return fmt.Sprintf("%s is %s; watched: %t", short(v.id), v.status, in)
			}
		}
		return ""
	}},
	{"forgotten", "a watch set loses what the sweeper found missing", 5, func(s *stepped) string {
		if w := s.after.keys[s.sc.names("").Watch]; s.reply.verdict.Kind == job.Forgotten && w != nil {
			if _, in := w.fields[s.sc.names(s.op.ref.ID).Member]; in {
				return short(s.op.ref.ID) + " is still watched"
			}
		}
		return ""
	}},
	{"ids order", "ids order as they were acquired, while last lives", 7, func(s *stepped) string {
		n := len(s.after.born)
		if n == len(s.before.born) {
			return ""
		}
		id, last := s.after.born[n-1], s.sc.names("").Last
		if newest := s.before.keys.text(last); string(id) <= newest {
			return short(id) + " came after " + short(job.ID(newest))
		}
		return want(s.after.keys.text(last), string(id))
	}},
	{"one set of texts", "the texts of at most one finished job a target are kept, and kept names it", 0, texts},
	{"lifetimes shrink", "from its end on a job lives its retention at most, and nothing lives longer than before", 0, lifetimes},
	{"last stays", "the newest job is remembered as long as its own clock says", 7, func(s *stepped) string {
		last := s.sc.names("").Last
		was, is := s.before.keys.text(last), s.after.keys.text(last)
		if was != "" && is == "" && s.op.move != "clock" {
			return "last is gone"
		}
		if len(s.after.born) > len(s.before.born) {
			v := s.sc.job(s.after.keys, s.op.ref.ID)
			return want(fmt.Sprint(s.after.keys.ttl(last)), fmt.Sprint(v.ttl))
		}
		if s.op.move != "clock" && s.after.keys.ttl(last) != s.before.keys.ttl(last) {
			return "last's life was changed"
		}
		return ""
	}},
	{"every key ends", "no key but the watch sets is without a TTL", 0, func(s *stepped) string {
		for k, e := range s.after.keys {
			if e.ttl == 0 && kindOf(k) != "watch" {
				return k + " has no TTL"
			}
		}
		return ""
	}},
	{"erased", "after an erase neither memo nor kept texts nor a running job are left", 7, func(s *stepped) string {
		if s.op.move != "erase" || s.reply.err != nil {
			return ""
		}
		k := s.sc.names(s.op.other)
		left := []string{k.Memo, k.Kept}
		if s.op.other != "" {
			left = append(left, k.In, k.Out)
		}
		if old := s.before.keys.text(k.Kept); old != "" {
			n := s.sc.names(job.ID(old))
			left = append(left, n.In, n.Out)
		}
		for _, name := range left {
			if s.after.keys[name] != nil {
				return name + " is still there"
			}
		}
		if v := s.sc.job(s.before.keys, s.op.other); v.status == "RUNNING" {
			code := "CANCELED"
			if v.left <= 0 {
				code = "DEADLINE_EXCEEDED"
			}
			if is := s.after.keys.field(k.Job, "error"); is != code {
				return want(is, code)
			}
		}
		if s.op.other != "" && s.after.keys.field(k.Job, "inputDigest") != "" {
			return "a digest of the texts is still there"
		}
		return want(s.after.keys.text(k.Last), s.before.keys.text(k.Last))
	}},
}

func overdue(s *stepped) bool {
	v := s.at()
	return v.status == "RUNNING" && v.left <= 0
}
