package explore

import (
	"fmt"
	"strconv"
	"time"

	"sunhwa/shared/job"
)

// claim: run names a job that runs, and ends exactly when its deadline comes. A
// claim that named nothing from the start may stand until somebody takes it.
func claim(s *stepped) string {
	k := s.sc.names("")
	id := s.after.keys.text(k.Run)
	if id == "" {
		for _, v := range s.jobs(s.after) {
			if s.sc.job(s.before.keys, v.id).status == "" && v.running {
				return short(v.id) + " was born without a claim"
			}
		}
		return ""
	}
	v := s.sc.job(s.after.keys, job.ID(id))
	switch {
	case v.status == "" && s.sc.dangling && s.before.keys.text(k.Run) == id && s.before.keys[v.keys.Job] == nil:
		return ""
	case v.status != "RUNNING":
		return fmt.Sprintf("run names %s, which is %q", short(v.id), v.status)
	case s.after.keys.ttl(k.Run) != v.left:
		return fmt.Sprintf("run lives %d ms, the deadline is in %d", s.after.keys.ttl(k.Run), v.left)
	}
	return ""
}

// counts: what is recorded is what is counted and what is paid for.
func counts(s *stepped) string {
	for _, v := range s.jobs(s.after) {
		was := s.sc.job(s.before.keys, v.id)
		if was.status == "" {
			continue
		}
		key, fresh := v.keys.Job, 0
		if s.after.keys[v.keys.Out] != nil {
			fresh = s.after.keys.size(v.keys.Out) - s.before.keys.size(v.keys.Out)
		}
		paid := s.after.keys.number(key, "calls") - s.before.keys.number(key, "calls")
		due := int64(fresh)
		if s.op.move == "record" && s.reply.err == nil && s.op.ref.ID == v.id && s.op.first {
			due += 10 // sent once by each attempt
		}
		if paid != due {
			return fmt.Sprintf("%s: %d calls added for %d new results, want %d", short(v.id), paid, fresh, due)
		}
		if s.op.move == "record" && s.reply.err == nil && s.op.ref.ID == v.id {
			if _, ok := s.after.keys[v.keys.Out].fieldsOf()[fmt.Sprint(s.op.index)]; !ok {
				return "a result that was recorded is not there"
			}
		}
		if done := s.after.keys.number(key, "done"); v.terminal && !was.terminal && done != int64(s.before.keys.size(v.keys.Out)) {
			return fmt.Sprintf("%s says %d done of %d results", short(v.id), done, s.before.keys.size(v.keys.Out))
		}
	}
	return ""
}

func (e *entry) fieldsOf() map[string]string {
	if e == nil {
		return nil
	}
	return e.fields
}

// memo: what a target remembers.
func memo(s *stepped) string {
	k := s.sc.names("").Memo
	was, is := s.before.keys[k], s.after.keys[k]
	if is != nil && len(is.fields) > s.sc.Memo {
		return fmt.Sprintf("%d answers remembered, the limit is %d", len(is.fields), s.sc.Memo)
	}
	if s.op.move == "clock" || s.op.move == "failover" || is == nil {
		return ""
	}
	if was == nil {
		retention := s.before.keys.number(s.at().keys.Job, "retention")
		if is.ttl != retention {
			return fmt.Sprintf("born with %d ms, want %d", is.ttl, retention)
		}
	} else if was.ttl != is.ttl {
		return fmt.Sprintf("lived %d ms and now %d", was.ttl, is.ttl)
	}
	return ""
}

// remembered: a new answer is in the memo unless that is full.
func remembered(s *stepped) string {
	if s.op.move != "record" || s.reply.err != nil {
		return ""
	}
	k := s.sc.names(s.op.ref.ID)
	key := fmt.Sprint("memo", s.op.index)
	_, had := s.before.keys[k.Out].fieldsOf()[fmt.Sprint(s.op.index)]
	_, knew := s.before.keys[k.Memo].fieldsOf()[key]
	stored := s.after.keys[k.Memo].fieldsOf()[key]
	switch {
	case had:
		return ""
	case stored == "" && s.before.keys.size(k.Memo) < s.sc.Memo:
		return "a new answer is not remembered"
	case s.before.keys.field(k.Job, "fresh") == "1" && knew && stored != s.after.keys[k.Out].fieldsOf()[fmt.Sprint(s.op.index)]:
		return "a fresh answer did not replace the remembered one"
	}
	return ""
}

// texts: whose texts are kept.
func texts(s *stepped) string {
	if wrong := remembered(s); wrong != "" {
		return wrong
	}
	for _, v := range s.jobs(s.before) { // only time, an erase and the next success free them
		free := s.op.move == "clock" || s.op.move == "erase" || s.op.move == "finish" && s.op.ref.ID != v.id
		if v.status == "SUCCESS" && !free && s.before.keys[v.keys.In] != nil && s.after.keys[v.keys.In] == nil {
			return "the texts of " + short(v.id) + " are gone"
		}
	}
	n := 0
	for _, v := range s.jobs(s.after) {
		in, out := s.after.keys[v.keys.In] != nil, s.after.keys[v.keys.Out] != nil
		if v.status == "SUCCESS" && (in || out) {
			n++
			if kept := s.after.keys.text(v.keys.Kept); kept != string(v.id) {
				return "kept names " + short(job.ID(kept)) + ", the texts are of " + short(v.id)
			}
		}
		if v.status == "SUCCESS" && in != out || v.status == "RUNNING" && !in && !s.sc.foreign {
			return fmt.Sprintf("%s is %s; in: %t, out: %t", short(v.id), v.status, in, out)
		}
	}
	for _, v := range s.ended() {
		if s.op.move == "finish" && s.after.keys[v.keys.In] == nil {
			return "a finished job's texts are gone at once"
		}
	}
	if n > 1 {
		return fmt.Sprintf("texts of %d finished jobs", n)
	}
	return ""
}

// lifetimes: they only shrink, and an ended job lives its retention at most.
func lifetimes(s *stepped) string {
	if s.op.move == "clock" {
		return ""
	}
	for k, e := range s.after.keys {
		was := s.before.keys[k]
		switch kindOf(k) {
		case "run", "last", "kept", "watch":
			continue // set anew by the next job
		}
		if was != nil && e.ttl > was.ttl && was.ttl != 0 {
			return fmt.Sprintf("%s lived %d ms and now %d", k, was.ttl, e.ttl)
		}
	}
	for _, v := range s.ended() {
		retention := s.before.keys.number(v.keys.Job, "retention")
		if is := s.after.keys.ttl(v.keys.Job); is != min(retention, v.ttl) {
			return fmt.Sprintf("%s lives %d ms after the end, want %d", v.keys.Job, is, min(retention, v.ttl))
		}
		at := "1000000" // the displayed time of every store here
		if v.left <= 0 {
			at = s.before.keys.field(v.keys.Job, "deadlineAt")
		}
		if is := s.after.keys.field(v.keys.Job, "finishedAt"); is != at {
			return want(is, at)
		}
		for _, k := range []string{v.keys.Job, v.keys.In, v.keys.Out} {
			if e := s.after.keys[k]; e != nil && (e.ttl > retention || e.ttl == 0) {
				return fmt.Sprintf("%s lives %d ms after the end, the retention is %d", k, e.ttl, retention)
			}
		}
		if kept := s.after.keys[v.keys.Kept]; s.op.move == "finish" && (kept == nil || kept.ttl != retention) {
			return "kept does not live the retention"
		}
	}
	for _, v := range s.jobs(s.after) { // in and out live as their job, or less
		for _, k := range []string{v.keys.In, v.keys.Out} {
			e := s.after.keys[k]
			if e != nil && (e.ttl > v.ttl || e.ttl == 0 || v.status == "RUNNING" && e.ttl != v.ttl && !s.sc.foreign) {
				return fmt.Sprintf("%s lives %d ms, its job %d", k, e.ttl, v.ttl)
			}
		}
	}
	if s.op.move == "applied" && s.reply.err == nil {
		for _, k := range []string{s.at().keys.In, s.at().keys.Out} {
			if e := s.after.keys[k]; e != nil && e.ttl > hour.Milliseconds() {
				return k + " lives longer than an hour after apply"
			}
		}
		if s.after.keys.field(s.at().keys.Job, "appliedAt") != strconv.FormatInt(publishedAt.UnixMilli(), 10) {
			return "appliedAt is not the time given"
		}
	}
	return ""
}

// told: what a call says beside its code, checked against the keys.
func told(s *stepped) string {
	v, b, a := s.at(), s.before.keys, s.after.keys
	status, code := a.field(v.keys.Job, "status"), a.field(v.keys.Job, "error")
	state := answer(&job.StateError{Status: job.Status(status), Code: job.Code(code)})
	shown := func() string {
		done := a.number(v.keys.Job, "done")
		if status == "RUNNING" {
			done = int64(a.size(v.keys.Out))
		}
		t := status
		if code != "" {
			t += "(" + code + ")"
		}
		return fmt.Sprintf("%s %d/%d, calls %d", t, done, a.number(v.keys.Job, "total"), a.number(v.keys.Job, "calls"))
	}
	switch s.op.move {
	case "renew":
		return want(s.reply.text, "OK")
	case "record":
		return want(s.reply.text, fmt.Sprintf("OK: done %d, calls %d", a.size(v.keys.Out), a.number(v.keys.Job, "calls")))
	case "begin":
		recorded := map[int]string{}
		for f := range b[v.keys.Out].fieldsOf() {
			n, _ := strconv.Atoi(f)
			recorded[n] = ""
		}
		return want(s.reply.text, fmt.Sprintf("OK: attempt %d, recorded %v, kept %s, %s left", a.number(v.keys.Job, "attempt"),
			sortedKeys(recorded), b.text(v.keys.Kept), time.Duration(v.left)*time.Millisecond))
	case "newest":
		if last := b.text(s.sc.names("").Last); last != "" {
			return want(s.reply.text, "OK: "+last)
		}
		return want(s.reply.text, answer(job.ErrNotFound))
	case "read", "results", "applied":
		if v.status == "" {
			return want(s.reply.text, answer(job.ErrNotFound))
		}
	}
	switch s.op.move {
	case "read":
		return want(s.reply.text, "OK: "+shown())
	case "applied":
		if status != "SUCCESS" {
			return want(s.reply.text, state)
		}
		return want(s.reply.text, "OK")
	case "results":
		switch {
		case status != "SUCCESS":
			return want(s.reply.text, state)
		case b[v.keys.In] == nil || b.size(v.keys.Out) != int(b.number(v.keys.Job, "total")):
			return want(s.reply.text, answer(job.ErrGone))
		case s.reply.err != nil:
			return want(s.reply.text, "OK")
		}
	}
	return ""
}
