package explore

import (
	"fmt"
	"strings"

	"sunhwa/shared/jobstore"
)

// edit is one change of one script's text: old must stand there exactly once.
type edit struct{ script, old, new string }

// Mutant is a deliberate fault in the scripts. A verification that does not
// notice it is worth nothing.
type Mutant struct {
	Name    string
	Promise int    // of the README's seven, the one the fault breaks; 0: housekeeping
	In      string // the scenario it is expected to show in; all are tried
	edits   []edit
}

// Scripts returns the texts this mutant changes, or an error when the scripts no
// longer hold what it changes.
func (m *Mutant) Scripts() (map[string]string, error) {
	texts, out := jobstore.Sources(), map[string]string{}
	for _, e := range m.edits {
		text := texts[e.script]
		if n := strings.Count(text, e.old); n != 1 {
			return nil, fmt.Errorf("mutant %q: %s.lua holds the text to change %d times, want once: %s", m.Name, e.script, n, e.old)
		}
		texts[e.script] = strings.Replace(text, e.old, e.new, 1)
		out[e.script] = texts[e.script]
	}
	return out, nil
}

func mutant(promise int, in, name, script, old, with string) Mutant {
	return Mutant{Name: name, Promise: promise, In: in, edits: []edit{{script, old, with}}}
}

// The checks of lib.lua's fence that stand behind each other at the deadline.
var (
	noDeadline = edit{"lib", "if left <= 0 then return {OVERDUE} end", ""}
	noClaim    = edit{"lib", "if redis.call('GET', run) ~= id then return {CLAIM_LOST} end", ""}
)

// Mutants is the table of faults.
func Mutants() []Mutant {
	return []Mutant{
		// acquire
		mutant(1, "lost reply", "acquire does not know its own job", "acquire", "if redis.call('EXISTS', job) == 1 then return {OK} end", ""),
		mutant(1, "re-dispatch", "acquire ignores the holder", "acquire", "if not gone then return {HELD, holder} end", ""),
		mutant(1, "faulty callers", "acquire believes who says the holder is missing", "acquire", "and redis.call('EXISTS', absent) == 0", ""),
		mutant(5, "dangling claim", "acquire never frees a claim without a job", "acquire", "local gone = absent and", "local gone = false and"),
		mutant(7, "cancel", "acquire takes ids in any order", "acquire", "if newest and not after(id, newest) then return {STALE_ID, newest} end", ""),
		mutant(7, "cancel", "acquire compares ids the wrong way round", "acquire", "return x > y", "return x < y"),
		mutant(0, "lost reply", "acquire leaves the job without a TTL", "acquire", "redis.call('PEXPIRE', job, life)", ""),
		mutant(5, "lost reply", "acquire lets the claim live as long as the job", "acquire", "redis.call('SET', run, id, 'PX', ARGV[3])", "redis.call('SET', run, id, 'PX', life)"),
		mutant(5, "lost reply", "acquire leaves the claim without a TTL", "acquire", "redis.call('SET', run, id, 'PX', ARGV[3])", "redis.call('SET', run, id)"),
		mutant(1, "lost reply", "acquire writes no claim", "acquire", "redis.call('SET', run, id, 'PX', ARGV[3])", ""),
		mutant(0, "lost reply", "acquire leaves the texts without a TTL", "acquire", "redis.call('SET', input, ARGV[16], 'PX', life)", "redis.call('SET', input, ARGV[16])"),
		mutant(7, "lost reply", "acquire does not note the newest job", "acquire", "redis.call('SET', last, id, 'PX', life)", ""),
		mutant(5, "lost reply", "acquire does not watch the job", "acquire", "redis.call('SADD', watch, id .. ':' .. ARGV[7] .. ':' .. ARGV[8])", ""),
		mutant(5, "lost reply", "acquire lets the sweeper dispatch at once", "acquire", "int(deadline + retention - lease)", "int(deadline + retention)"),
		// begin
		mutant(6, "re-dispatch", "begin ignores a live lease", "begin", "if f[4] ~= '' and pttl > tonumber(f[5]) then return {BUSY} end", ""),
		mutant(5, "re-dispatch", "begin compares the lease the wrong way round", "begin", "pttl > tonumber(f[5])", "pttl < tonumber(f[5])"),
		mutant(5, "lost worker", "begin allows any number of attempts", "begin", "if attempt >= tonumber(ARGV[4]) then return {EXHAUSTED} end", ""),
		mutant(5, "lost reply", "begin does not count the attempt", "begin", "attempt = attempt + 1", ""),
		mutant(6, "lost reply", "begin does not know its own token", "begin", "if f[4] ~= token then", "if true then"),
		mutant(5, "lost reply", "begin takes no lease", "begin", "redis.call('HSET', job, 'leaseAt', int(pttl - lease))", ""),
		mutant(3, "faulty callers", "begin takes an attempt without a token", "begin", "if token == '' then return {STALE} end", ""),
		mutant(3, "another schema", "begin takes a job of an unknown schema", "begin", "if f[3] ~= ARGV[5] then return {SCHEMA, f[3] or ''} end", ""),
		mutant(2, "cancel", "begin takes a finished job", "begin", "if f[1] ~= 'RUNNING' then return {STATE, f[1], f[2] or ''} end", ""),
		mutant(4, "deadline", "begin takes an overdue job", "begin", "if left <= 0 then return {OVERDUE} end", ""),
		mutant(3, "failover", "begin takes a job without a claim", "begin", "if redis.call('GET', run) ~= id then return {CLAIM_LOST} end", ""),
		mutant(6, "re-dispatch", "begin goes on with the old attempt's sequence", "begin", "'attempt', attempt, 'seq', 0)", "'attempt', attempt)"),
		// the fence
		mutant(2, "cancel", "the fence ignores the state", "lib", "if now[1] ~= 'RUNNING' then return {STATE, now[1], now[2] or ''} end", ""),
		mutant(3, "failover", "the fence ignores the claim", "lib", noClaim.old, noClaim.new),
		mutant(3, "re-dispatch", "the fence ignores the token", "lib", "if token == '' or now[3] ~= token then return {STALE} end", ""),
		mutant(4, "deadline", "the fence ignores the deadline (the claim expired with it is its second)", "lib", noDeadline.old, noDeadline.new),
		{Name: "the fence ignores the deadline and the claim: both defences together", Promise: 4, In: "deadline", edits: []edit{noDeadline, noClaim}},
		mutant(4, "deadline", "the fence lets the very deadline pass", "lib", "if left <= 0 then return {OVERDUE} end", "if left < 0 then return {OVERDUE} end"),
		mutant(4, "lost worker", "the clock forgets the retention", "lib", "return pttl, pttl - tonumber(redis.call('HGET', job, 'retention'))", "return pttl, pttl"),
		// record and renew
		mutant(3, "re-dispatch", "record writes although refused", "record", "if refused then return refused end", "pttl = pttl or redis.call('PTTL', job)"),
		mutant(3, "failures", "record takes any index", "record", "index < 0 or index >= total or ARGV[i] ~= int(index)", "false"),
		mutant(6, "lost reply", "record replaces results and counts them again", "record", "redis.call('HSETNX', out, ARGV[i], ARGV[i + 1]) == 1", "redis.call('HSET', out, ARGV[i], ARGV[i + 1]) >= 0"),
		mutant(6, "lost reply", "record counts before it knows the result is new", "record", "  if redis.call('HSETNX', out", "  spend(job, ARGV[i + 3], ARGV[i + 4], ARGV[i + 5], ARGV[i + 6], ARGV[i + 7])\n  if redis.call('HSETNX', out"),
		mutant(0, "failures", "record fills the memo over its limit", "record", "(not known and size < limit)", "not known"),
		mutant(6, "lost reply", "record remembers nothing", "record", "if (known and fresh) or (not known and size < limit) then", "if false then"),
		mutant(0, "lost reply", "record leaves the memo without a TTL", "record", "if memo_born then redis.call('PEXPIRE', memo, f[3]) end", ""),
		mutant(0, "re-dispatch", "record renews the memo's life", "record", "if memo_born then redis.call('PEXPIRE', memo, f[3]) end", "redis.call('PEXPIRE', memo, f[3])"),
		mutant(6, "dangling claim", "a fresh run does not refresh the memo", "record", "(known and fresh) or ", ""),
		mutant(6, "re-dispatch", "any run overwrites the memo", "record", "(known and fresh) or ", "known or "),
		mutant(0, "lost reply", "record leaves the results without a TTL", "record", "if out_born then redis.call('PEXPIRE', out, pttl) end", ""),
		mutant(5, "re-dispatch", "record does not renew the lease", "record", "redis.call('HSET', job, 'leaseAt', int(pttl - tonumber(ARGV[3])))", ""),
		mutant(6, "lost reply", "usage without a result is added at every repeat", "lib", "if tonumber(a[i]) <= tonumber(redis.call('HGET', job, 'seq')) then return end", ""),
		mutant(6, "lost reply", "usage without a result is never added", "record", "spend_extra(job, ARGV, 5)", ""),
		mutant(5, "lost worker", "renew does not renew", "renew", "redis.call('HSET', job, 'leaseAt', int(pttl - tonumber(ARGV[3])))", ""),
		mutant(5, "lost worker", "renew moves the deadline", "renew", "return {OK}", "redis.call('PEXPIRE', job, pttl + 1000)\nreturn {OK}"),
		// finish
		mutant(2, "lost reply", "finish does not know its own success", "finish", "if f[1] == 'SUCCESS' and f[2] == token then return {OK} end", ""),
		mutant(2, "cancel", "finish goes through although refused", "finish", "if refused then return refused end", ""),
		mutant(7, "faulty callers", "finish does not count the results", "finish", "if done ~= tonumber(f[5]) then return {INCOMPLETE, done} end", ""),
		mutant(5, "lost reply", "finish leaves the job watched", "finish", "redis.call('SREM', watch, id .. ':' .. f[3] .. ':' .. f[4])", ""),
		mutant(5, "lost reply", "finish keeps the claim", "finish", "redis.call('DEL', run)", ""),
		mutant(0, "two successes", "finish keeps the old job's texts", "finish", "if replaces then redis.call('DEL', KEYS[7], KEYS[8]) end", ""),
		mutant(0, "lost reply", "finish lets the job live on", "finish", "redis.call('PEXPIRE', job, f[6], 'LT')", ""),
		mutant(0, "lost reply", "finish lets the comments live on", "finish", "redis.call('PEXPIRE', input, f[6], 'LT')", ""),
		mutant(0, "lost reply", "finish lets the results live on", "finish", "redis.call('PEXPIRE', out, f[6], 'LT')", ""),
		mutant(0, "lost reply", "finish does not say whose texts are kept", "finish", "redis.call('SET', kept, id, 'PX', f[6])", ""),
		mutant(0, "lost reply", "finish leaves kept without a TTL", "finish", "redis.call('SET', kept, id, 'PX', f[6])", "redis.call('SET', kept, id)"),
		mutant(6, "lost reply", "finish does not copy the count", "finish", "'done', done,", ""),
		// fail
		mutant(2, "cancel", "fail overwrites a finished job", "fail", "if f[1] ~= 'RUNNING' then", "if false then"),
		mutant(2, "lost reply", "fail does not know its own failure", "fail", "if f[2] == code then return {OK} end", ""),
		mutant(4, "deadline", "fail writes what was asked after the deadline", "fail", "if left <= 0 then", "if false then"),
		mutant(3, "failures", "fail ignores the worker's token", "fail", "if guard == 'worker' and (token == '' or f[3] ~= token) then return {STALE} end", ""),
		mutant(3, "failures", "fail ignores that somebody has begun", "fail", "if guard == 'start' and f[4] ~= '0' then return {BEGUN} end", ""),
		mutant(1, "deadline", "an old job's end deletes the new owner's claim", "lib", "local mine = k.run and redis.call('GET', k.run) == id", "local mine = k.run"),
		mutant(5, "cancel", "a failed job keeps its claim", "lib", "if mine then redis.call('DEL', k.run) end", ""),
		mutant(7, "cancel", "a failed job's texts stay", "lib", "redis.call('DEL', k.input, k.out)", ""),
		mutant(5, "cancel", "a failed job stays watched", "lib", "redis.call('SREM', k.watch, id .. ':' .. f[1] .. ':' .. f[2])", ""),
		mutant(0, "cancel", "a failed job lives on", "lib", "redis.call('PEXPIRE', k.job, f[3], 'LT')", ""),
		mutant(6, "cancel", "a failed job forgets how far it came", "lib", "'finishedAt', now, 'done', done)", "'finishedAt', now)"),
		// read, results, applied
		mutant(4, "deadline", "read shows an overdue job as RUNNING", "read", "apply_deadline(k, ARGV[1])", ""),
		mutant(4, "published", "results calls an overdue job RUNNING", "results", "apply_deadline(k, ARGV[1])", ""),
		mutant(2, "cancel", "read fails a job that runs", "lib", "if left <= 0 then to_failed", "if true then to_failed"),
		mutant(7, "published", "results shows what is not finished", "results", "if f[1] ~= 'SUCCESS' then", "if f[1] == 'FAILED' then"),
		mutant(0, "published", "applied lets the comments live on", "applied", "redis.call('PEXPIRE', input, ARGV[2], 'LT')", ""),
		mutant(0, "published", "applied lets the results live on", "applied", "redis.call('PEXPIRE', out, ARGV[2], 'LT')", ""),
		mutant(0, "published", "applied makes the texts live longer", "applied", "redis.call('PEXPIRE', input, ARGV[2], 'LT')", "redis.call('PEXPIRE', input, 2 * ARGV[2] * 24)"),
		mutant(7, "published", "applied notes nothing", "applied", "redis.call('HSET', job, 'appliedAt', ARGV[1])", ""),
		// what calls answer
		mutant(7, "published", "results never shows any", "results", "if not comments or redis.call('HLEN', k.out) ~= tonumber(f[3]) then", "if true then"),
		mutant(2, "deadline", "read finds nothing", "read", "if redis.call('EXISTS', k.job) == 0 then", "if true then"),
		mutant(5, "deadline", "read shows no progress", "read", "return {OK, redis.call('HLEN', k.out)", "return {OK, 0"),
		mutant(6, "lost reply", "begin hides what is recorded", "begin", "usage(job), redis.call('HGETALL', out)}", "usage(job), {}}"),
		mutant(4, "lost reply", "begin tells the time to the end of the retention", "begin", "tonumber(f[7]), left, f[8]", "tonumber(f[7]), pttl, f[8]"),
		mutant(7, "published", "applied finds nothing", "applied", "if not f[1] then", "if true then"),
		mutant(6, "published", "record tells no progress", "record", "return {OK, redis.call('HLEN', out), usage(job)}", "return {OK, 0, {0, 0, 0, 0, 0}}"),
		mutant(3, "deadline", "begin writes when it is too late", "begin", "if left <= 0 then return {OVERDUE} end", "if left <= 0 then redis.call('HSET', job, 'model', 'x') return {OVERDUE} end"),
		mutant(4, "deadline", "the fence knows the very deadline only", "lib", "if left <= 0 then return {OVERDUE} end", "if left == 0 then return {OVERDUE} end"),
		mutant(4, "deadline", "begin knows the very deadline only", "begin", "if left <= 0 then return {OVERDUE} end", "if left == 0 then return {OVERDUE} end"),
		mutant(3, "faulty callers", "the fence takes an empty token", "lib", "if token == '' or now[3] ~= token then return {STALE} end", "if now[3] ~= token then return {STALE} end"),
		mutant(3, "faulty callers", "fail takes an empty token", "fail", "(token == '' or f[3] ~= token)", "f[3] ~= token"),
		// what must stay
		mutant(2, "published", "erase deletes the job", "erase", "redis.call('HDEL', k.job, 'errorComment', 'inputDigest')", "redis.call('DEL', k.job)"),
		mutant(0, "published", "erase keeps the digest of the texts", "erase", "redis.call('HDEL', k.job, 'errorComment', 'inputDigest')", ""),
		mutant(7, "late sweeper", "the sweeper deletes a finished job's texts", "inspect", "redis.call('SREM', k.watch, member)", "redis.call('SREM', k.watch, member)\n  redis.call('DEL', k.input, k.out)"),
		mutant(0, "published", "applied deletes the texts at once", "applied", "redis.call('PEXPIRE', input, ARGV[2], 'LT')", "redis.call('DEL', input, out)"),
		mutant(2, "published", "a failed job is gone at once", "lib", "redis.call('PEXPIRE', k.job, f[3], 'LT')", "redis.call('PEXPIRE', k.job, 1)"),
		mutant(7, "late sweeper", "the newest job is forgotten at its deadline", "acquire", "redis.call('SET', last, id, 'PX', life)", "redis.call('SET', last, id, 'PX', ARGV[3])"),
		mutant(4, "published", "erase calls an overdue job canceled", "erase", "if left <= 0 then", "if false then"),
		mutant(4, "deadline", "an overdue job ended at no time", "lib", "if now == '' then now = f[4] end", "if now == '' then now = '0' end"),
		// erase
		mutant(7, "two successes", "erase does not look whether a newer job came", "erase", "if now_last ~= newest then return {CHANGED, now_last} end", ""),
		mutant(7, "published", "erase lets the running job go on", "erase", "if redis.call('HGET', k.job, 'status') == 'RUNNING' then", "if false then"),
		mutant(7, "published", "erase keeps the memo and the pointer to the texts", "erase", "redis.call('DEL', memo, kept)", ""),
		mutant(7, "two successes", "erase keeps the older job's texts", "erase", "if old ~= '' then redis.call('DEL', KEYS[texts], KEYS[texts + 1]) end", ""),
		{
			Name: "erase keeps every text: the newest job's and, its second defence, those kept names", Promise: 7, In: "published",
			edits: []edit{
				{"erase", "redis.call('DEL', k.input, k.out)", ""},
				{"erase", "if old ~= '' then redis.call('DEL', KEYS[texts], KEYS[texts + 1]) end", ""},
			},
		},
		mutant(7, "published", "erase forgets which job came last", "erase", "redis.call('DEL', memo, kept)", "redis.call('DEL', memo, kept, last)"),
		// inspect
		mutant(5, "re-dispatch", "the sweeper takes no lease for live", "inspect", "local live = f[2] ~= '' and pttl > tonumber(f[3])", "local live = false"),
		mutant(2, "late sweeper", "the sweeper ends finished jobs", "inspect", "if f[1] ~= 'RUNNING' or", "if not f[1] or"),
		mutant(5, "re-dispatch", "the sweeper dispatches again and again", "inspect", "redis.call('HSET', k.job, 'dispatchAt', int(pttl - lease))", ""),
		mutant(5, "re-dispatch", "the sweeper does not wait for the last dispatch", "inspect", "if not live and pttl <= tonumber(f[5]) then", "if not live then"),
		mutant(5, "lost worker", "the sweeper never gives up", "inspect", "elseif not live and tonumber(f[4]) >= allowed then", "elseif false then"),
		mutant(5, "lost worker", "the sweeper gives up a live last attempt", "inspect", "elseif not live and tonumber(f[4]) >= allowed then", "elseif tonumber(f[4]) >= allowed then"),
		mutant(4, "lost worker", "the sweeper overlooks the deadline", "inspect", "if left <= 0 then", "if false then"),
		mutant(3, "failover", "the sweeper overlooks a lost claim", "inspect", "elseif redis.call('GET', k.run) ~= id then", "elseif false then"),
		mutant(5, "late sweeper", "the sweeper forgets nothing", "inspect", "redis.call('SREM', k.watch, member)", ""),
	}
}
