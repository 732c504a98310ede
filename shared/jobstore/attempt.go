package jobstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"sunhwa/shared/job"
)

func isNotFound(err error) bool { return errors.Is(err, job.ErrNotFound) }

// Begin takes the job for attempt a, or refuses and writes nothing:
// job.ErrNotFound, job.ErrSchema, *job.StateError, job.ErrOverdue,
// job.ErrClaimLost, job.ErrBusy (another attempt's lease is live),
// job.ErrExhausted, job.ErrStale (a has no token). A repeat with the same token answers the same and extends
// the lease.
func (s *Store) Begin(ctx context.Context, a job.Attempt) (*job.Begun, error) {
	keys := []string{jobKey(a.ID), runKey(a.Target), inKey(a.ID), outKey(a.ID), keptKey(a.Target)}
	r, err := s.run(ctx, "begin", keys, string(a.ID), a.Token, ms(a.Lease), s.o.MaxAttempts, schema)
	if err != nil {
		return nil, err
	}
	if err := r.want(12); err != nil {
		return nil, err
	}
	comments, err := decodeComments(r.text(9))
	if err != nil {
		return nil, err
	}
	if total := r.number(2); total != int64(len(comments)) {
		return nil, fmt.Errorf("jobstore: job %s has %d comments, want %d", a.ID, len(comments), total)
	}
	recorded, err := decodeResults(r.pairs(11), len(comments))
	if err != nil {
		return nil, err
	}
	var kept job.ID
	if s := r.text(8); s != "" {
		if kept, err = storedID(s); err != nil {
			return nil, err
		}
	}
	return &job.Begun{
		Comments: comments, Recorded: recorded, Usage: r.usage(10), Attempt: int(r.number(1)),
		Remaining: time.Duration(r.number(3)) * time.Millisecond, Fresh: r.text(4) == "1",
		Spec: job.Spec{Model: r.text(5), PromptVersion: r.text(6), Options: r.text(7)}, Kept: kept,
	}, nil
}

// Recall returns the answers remembered for t, by memo key. Keys that are not
// remembered are absent.
func (s *Store) Recall(ctx context.Context, t job.Target, memoKeys []string) (map[string]string, error) {
	found := map[string]string{}
	for len(memoKeys) > 0 {
		chunk := memoKeys[:min(500, len(memoKeys))]
		memoKeys = memoKeys[len(chunk):]
		values, err := s.recall(ctx, t, chunk)
		if err != nil {
			return nil, err
		}
		for i, v := range values {
			stored, ok := v.(string)
			if !ok {
				continue // not remembered
			}
			text, err := decodeResult(stored)
			if err != nil {
				return nil, err
			}
			found[chunk[i]] = text
		}
	}
	return found, nil
}

func (s *Store) recall(ctx context.Context, t job.Target, memoKeys []string) ([]any, error) {
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	values, err := s.rdb.HMGet(asking, memoKey(t), memoKeys...).Result()
	if err == nil && len(values) != len(memoKeys) {
		return nil, fmt.Errorf("jobstore: hmget answers %d values, want %d", len(values), len(memoKeys))
	}
	return values, classify(ctx, "hmget", err)
}

// Record stores results, each once, and renews the lease. A result's usage is
// added only when the result is new; x's once per sequence number. Refusals,
// nothing written: job.ErrNotFound, *job.StateError, job.ErrOverdue,
// job.ErrClaimLost, job.ErrStale, job.ErrOutOfRange. Many results go in several
// steps; the answer is that of the last.
func (s *Store) Record(ctx context.Context, a job.Attempt, results []job.Result, x job.Extra) (job.Progress, error) {
	keys := []string{jobKey(a.ID), runKey(a.Target), outKey(a.ID), memoKey(a.Target)}
	for {
		chunk := results[:min(maxGroups, len(results))]
		results = results[len(chunk):]
		args := append([]any{string(a.ID), a.Token, ms(a.Lease), s.o.MemoLimit}, extraArgs(x)...)
		for _, res := range chunk {
			value, err := encodeResult(res.Text)
			if err != nil {
				return job.Progress{}, fmt.Errorf("jobstore: encode result: %w", err)
			}
			args = append(append(args, strconv.Itoa(res.Index), value, res.MemoKey), usageArgs(res.Usage)...)
		}
		r, err := s.run(ctx, "record", keys, args...)
		if err != nil {
			return job.Progress{}, err
		}
		if err := r.want(3); err != nil {
			return job.Progress{}, err
		}
		if len(results) == 0 {
			return job.Progress{Done: int(r.number(1)), Usage: r.usage(2)}, nil
		}
	}
}

// Renew extends the lease. Refusals as Record's.
func (s *Store) Renew(ctx context.Context, a job.Attempt) error {
	_, err := s.run(ctx, "renew", []string{jobKey(a.ID), runKey(a.Target)}, string(a.ID), a.Token, ms(a.Lease))
	return err
}

// Finish makes the job SUCCESS. kept is what Begin gave: the texts of that job
// are freed. nil also when this attempt has finished it already. Refusals,
// nothing written: as Record's, and job.ErrIncomplete.
func (s *Store) Finish(ctx context.Context, a job.Attempt, kept job.ID, x job.Extra) error {
	keys := []string{
		jobKey(a.ID), runKey(a.Target), inKey(a.ID), outKey(a.ID), keptKey(a.Target), watchKey(a.ID.Shard()),
	}
	if kept != "" {
		keys = append(keys, inKey(kept), outKey(kept))
	}
	args := append([]any{string(a.ID), a.Token, s.now(), string(kept)}, extraArgs(x)...)
	_, err := s.run(ctx, "finish", keys, args...)
	return err
}

// Fail makes the job FAILED with f, if g holds. nil also when it is FAILED with
// the same code already. job.ErrOverdue: it is FAILED(DEADLINE_EXCEEDED), by this
// call or before. Refusals, nothing written: job.ErrNotFound, *job.StateError,
// job.ErrStale (worker's guard), job.ErrBegun (start's guard). token matters to
// the worker's guard alone.
func (s *Store) Fail(ctx context.Context, ref job.Ref, g job.Guard, token string, f job.Failure, x job.Extra) error {
	keys := []string{
		jobKey(ref.ID), runKey(ref.Target), inKey(ref.ID), outKey(ref.ID), watchKey(ref.ID.Shard()),
	}
	args := append([]any{string(ref.ID), string(g), token, string(f.Code), s.now(), f.Detail, f.CommentID}, extraArgs(x)...)
	_, err := s.run(ctx, "fail", keys, args...)
	return err
}
