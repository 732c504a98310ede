package jobstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"sunhwa/shared/job"
)

// Inspect decides on one watched job and does it: see job.VerdictKind. lease is
// how long a job rests between two dispatches.
func (s *Store) Inspect(ctx context.Context, ref job.Ref, lease time.Duration) (job.Verdict, error) {
	keys := []string{
		jobKey(ref.ID), runKey(ref.Target), inKey(ref.ID), outKey(ref.ID), watchKey(ref.ID.Shard()),
	}
	r, err := s.run(ctx, "inspect", keys, string(ref.ID), member(ref), ms(lease), s.o.MaxAttempts, s.now())
	if err != nil {
		return job.Verdict{}, err
	}
	switch r.code() {
	case codeForgotten:
		return job.Verdict{Kind: job.Forgotten}, nil
	case codeEnded:
		return job.Verdict{Kind: job.Ended, Code: job.Code(r.text(1))}, nil
	case codeRedispatch, codeLeft:
		kind := job.Left
		if r.code() == codeRedispatch {
			kind = job.Redispatch
		}
		return job.Verdict{Kind: kind, Age: time.Duration(r.number(1)) * time.Millisecond}, nil
	}
	return job.Verdict{}, fmt.Errorf("jobstore: inspect: unexpected reply code %d", r.code())
}

var errNoReply = errors.New("no reply")

const (
	shardsAtOnce = 128 // watch sets read in one pipeline
	scanCount    = 500 // members asked for a step
)

// Watched visits every watched job, from the shard of index start round through
// all of them, reading the sets in pipelines (one a node). A set that cannot be
// read and a visit that fails do not end the walk; their errors come back joined,
// the first ten of them. It ends early when ctx does, and when of one pipeline's
// sets, which lie on all nodes, none can be read. shards is how many sets were
// read.
func (s *Store) Watched(ctx context.Context, start int, visit func(context.Context, job.Ref) error) (shards int, err error) {
	var errs []error
	note := func(err error) {
		if err != nil && len(errs) < 10 {
			errs = append(errs, err)
		}
	}
	for first := 0; first < job.Shards; first += shardsAtOnce {
		refs, read := s.watchedIn(ctx, start+first, min(shardsAtOnce, job.Shards-first), note)
		shards += read
		for _, ref := range refs {
			if ctx.Err() != nil {
				return shards, errors.Join(append(errs, ctx.Err())...)
			}
			note(visit(ctx, ref))
		}
		if ctx.Err() != nil {
			return shards, errors.Join(append(errs, ctx.Err())...)
		}
		if read == 0 {
			break // Redis is down; the rest would only wait for it
		}
	}
	return shards, errors.Join(errs...)
}

// watchedIn reads n watch sets whole before anybody acts on them: a scan over a
// set that shrinks meanwhile may miss members on some servers.
func (s *Store) watchedIn(ctx context.Context, first, n int, note func(error)) (refs []job.Ref, read int) {
	type page struct {
		shard  string
		cursor uint64
	}
	todo := make([]page, n)
	for i := range todo {
		todo[i] = page{shard: job.ShardAt((first + i) % job.Shards)}
	}
	seen := map[string]bool{}
	for len(todo) > 0 && ctx.Err() == nil {
		asking, cancel := context.WithTimeout(ctx, askTimeout)
		pipe := s.rdb.Pipeline()
		cmds := make([]*redis.ScanCmd, len(todo))
		for i, p := range todo {
			cmds[i] = pipe.SScan(asking, watchKey(p.shard), p.cursor, "", scanCount)
		}
		_, execErr := pipe.Exec(asking)
		cancel()
		var next []page
		for i, p := range todo {
			members, cursor, err := cmds[i].Result()
			if err == nil && members == nil {
				// An empty set is not nil: go-redis leaves the commands as they were
				// when the connection's authentication is refused.
				err = cmp.Or(execErr, errNoReply)
			}
			if err != nil {
				note(classify(ctx, "sscan", err))
				continue
			}
			for _, m := range members {
				if seen[m] {
					continue
				}
				seen[m] = true
				ref, err := parseMember(m, p.shard)
				if err != nil {
					s.o.Logger.Warn("a watch set holds a member nobody wrote", slog.String("shard", p.shard), slog.Any("error", err))
					continue
				}
				refs = append(refs, ref)
			}
			if cursor == 0 {
				read++
			} else {
				next = append(next, page{p.shard, cursor})
			}
		}
		todo = next
	}
	return refs, read
}
