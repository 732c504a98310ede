package jobstore

import (
	"encoding/base64"
	"fmt"
	"strings"

	"sunhwa/shared/job"
)

// This is the only place that builds keys. All keys of a target share the hash
// tag {s}, so that every script touches one Redis Cluster slot.

// tag returns the prefix `{s}:`.
func tag(shard string) string { return "{" + shard + "}:" }

func jobKey(id job.ID) string      { return tag(id.Shard()) + "job:" + string(id) }
func inKey(id job.ID) string       { return tag(id.Shard()) + "in:" + string(id) }
func outKey(id job.ID) string      { return tag(id.Shard()) + "out:" + string(id) }
func watchKey(shard string) string { return tag(shard) + "watch" }

func targetKey(kind string, t job.Target) string {
	return tag(t.Shard()) + kind + ":" + t.TenantKey() + ":" + t.ID
}

func runKey(t job.Target) string  { return targetKey("run", t) }
func memoKey(t job.Target) string { return targetKey("memo", t) }
func lastKey(t job.Target) string { return targetKey("last", t) }
func keptKey(t job.Target) string { return targetKey("kept", t) }

// member is a job's entry in its shard's watch set.
func member(r job.Ref) string {
	return string(r.ID) + ":" + r.Target.TenantKey() + ":" + r.Target.ID
}

// parseMember reads a watch entry of one shard back. It fails on anything that
// member does not write, an id of another shard among it.
func parseMember(s, shard string) (job.Ref, error) {
	parts := strings.SplitN(s, ":", 3)
	if len(parts) != 3 {
		return job.Ref{}, fmt.Errorf("jobstore: watch member has %d parts, want 3", len(parts))
	}
	id, err := job.ParseID(parts[0])
	if err != nil {
		return job.Ref{}, fmt.Errorf("jobstore: watch member: %w", err)
	}
	tenant, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return job.Ref{}, fmt.Errorf("jobstore: watch member's tenant: %w", err)
	}
	r := job.Ref{ID: id, Target: job.Target{Tenant: string(tenant), ID: parts[2]}}
	if id.Shard() != shard || r.Target.Shard() != shard {
		return job.Ref{}, fmt.Errorf("jobstore: watch member of another shard in %s", shard)
	}
	return r, nil
}

// Keys are all keys of one job and its target, for programs that check what the
// store wrote. Nothing else needs them.
type Keys struct {
	Job, In, Out          string // the job's own
	Run, Memo, Last, Kept string // its target's
	Watch                 string // its shard's
	Member                string // its entry in Watch
}

// KeysOf returns the keys of r.
func KeysOf(r job.Ref) Keys {
	return Keys{
		Job: jobKey(r.ID), In: inKey(r.ID), Out: outKey(r.ID),
		Run: runKey(r.Target), Memo: memoKey(r.Target), Last: lastKey(r.Target), Kept: keptKey(r.Target),
		Watch: watchKey(r.ID.Shard()), Member: member(r),
	}
}
