package jobstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"sunhwa/shared/job"
)

// Acquire claims c's target and creates its job. nil means created, also when
// this is a repeat and the job exists already. Otherwise *job.HeldError (another
// job holds the claim) or *job.StaleIDError (mint a later id), and nothing is
// written. c.Missing, when it still is the holder and still has no job, counts
// as no holder.
func (s *Store) Acquire(ctx context.Context, c job.Creation) error {
	comments, err := json.Marshal(c.Comments)
	if err != nil {
		return fmt.Errorf("jobstore: encode comments: %w", err)
	}
	keys := []string{jobKey(c.ID), runKey(c.Target), inKey(c.ID), lastKey(c.Target), watchKey(c.ID.Shard())}
	if m, err := storedID(string(c.Missing)); err == nil && m.Shard() == c.ID.Shard() {
		keys = append(keys, jobKey(c.Missing))
	}
	fresh := 0
	if c.Fresh {
		fresh = 1
	}
	_, err = s.run(ctx, "acquire", keys, string(c.ID), string(c.Missing), ms(c.Deadline), ms(c.Retention), ms(c.Lease),
		s.now(), c.Target.TenantKey(), c.Target.ID, len(c.Comments), c.Digest, fresh,
		c.Spec.Model, c.Spec.PromptVersion, c.Spec.Options, schema, comments)
	return err
}

// Read returns the job, its deadline applied first: from the deadline on nobody
// reads RUNNING. job.ErrNotFound when there is none.
func (s *Store) Read(ctx context.Context, id job.ID) (*job.Job, error) {
	r, err := s.run(ctx, "read", []string{jobKey(id), inKey(id), outKey(id), watchKey(id.Shard())}, string(id))
	if err != nil {
		return nil, err
	}
	if err := r.want(3); err != nil {
		return nil, err
	}
	return decodeJob(id, r.pairs(2), r.number(1))
}

// Newest returns the newest job acquired for t, or job.ErrNotFound.
func (s *Store) Newest(ctx context.Context, t job.Target) (job.ID, error) {
	return s.pointer(ctx, lastKey(t))
}

// pointer reads a key that holds a job id; job.ErrNotFound when it is not there.
func (s *Store) pointer(ctx context.Context, key string) (job.ID, error) {
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	v, err := s.rdb.Get(asking, key).Result()
	if errors.Is(err, redis.Nil) {
		return "", job.ErrNotFound
	}
	if err != nil {
		return "", classify(ctx, "get", err)
	}
	return storedID(v)
}

// Results returns a finished job with every comment before and after, in input
// order, the deadline applied first as in Read. Refusals: *job.StateError (not SUCCESS), job.ErrGone (texts no longer
// kept), both with the job beside them; job.ErrNotFound.
func (s *Store) Results(ctx context.Context, id job.ID) (*job.Job, []job.Rewritten, error) {
	r, refused := s.run(ctx, "results", []string{jobKey(id), inKey(id), outKey(id), watchKey(id.Shard())}, string(id))
	if r == nil {
		return nil, nil, refused
	}
	at := map[code]int{codeOK: 1, codeGone: 1, codeState: 3}[r.code()]
	if at == 0 {
		return nil, nil, refused
	}
	if err := r.want(at + 1); err != nil {
		return nil, nil, err
	}
	j, err := decodeJob(id, r.pairs(at), 0)
	if err != nil || refused != nil {
		return j, nil, cmp.Or(err, refused)
	}
	comments, err := decodeComments(r.text(2))
	if err != nil {
		return nil, nil, err
	}
	texts, err := decodeResults(r.pairs(3), len(comments))
	if err != nil {
		return nil, nil, err
	}
	if len(comments) != j.Total {
		return nil, nil, fmt.Errorf("jobstore: job %s has %d comments, want %d", id, len(comments), j.Total)
	}
	all := make([]job.Rewritten, len(comments))
	for i, c := range comments {
		text, ok := texts[i]
		if !ok {
			return nil, nil, fmt.Errorf("jobstore: job %s: no result at %d", id, i)
		}
		all[i] = job.Rewritten{ID: c.ID, Before: c.Text, After: text}
	}
	return j, all, nil
}

// Applied notes that the job is published and since when, at being the head's
// AppliedAt, kept in milliseconds. The first note stands. The texts live one hour
// more at most, from the note. *job.StateError when the job is not SUCCESS,
// job.ErrNotFound.
func (s *Store) Applied(ctx context.Context, id job.ID, at time.Time) error {
	_, err := s.run(ctx, "applied", []string{jobKey(id), inKey(id), outKey(id)}, millis(at), ms(textsAfterApply))
	return err
}

// Erase forgets what is kept of t's texts: the memo, the texts of the newest job
// and of the last finished one; a RUNNING newest job is canceled. newest is what
// Newest answered, empty for none; if it is another by now, *job.ChangedError and
// nothing is deleted. The pointer to the newest job stays until its own expiry.
func (s *Store) Erase(ctx context.Context, t job.Target, newest job.ID) error {
	kept, err := s.pointer(ctx, keptKey(t))
	if err != nil && !isNotFound(err) {
		return err
	}
	keys := []string{lastKey(t), keptKey(t), memoKey(t), runKey(t), watchKey(t.Shard())}
	if newest != "" {
		keys = append(keys, jobKey(newest), inKey(newest), outKey(newest))
	}
	if kept != "" {
		keys = append(keys, inKey(kept), outKey(kept))
	}
	_, err = s.run(ctx, "erase", keys, string(newest), string(kept), s.now())
	return err
}
