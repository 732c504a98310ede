package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"sunhwa/shared/job"
	"sunhwa/shared/jobstore"
)

// The times of a scenario's jobs. None of them passes by itself: where the
// deadline matters, the job's keys are moved to it.
const (
	deadline  = time.Minute
	retention = time.Hour
	lease     = 20 * time.Second
)

// race runs both ways on one server, under names of its own.
type race struct {
	rdb   redis.UniversalClient
	store *jobstore.Store
	usual usual
	run   string // names this run's tenant and keys
	mu    sync.Mutex
	refs  []job.Ref // every job minted, for the cleaning
	seen  int       // targets so far
}

func newRace(rdb redis.UniversalClient) *race {
	run := "race-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	return &race{
		rdb: rdb, store: jobstore.New(rdb, jobstore.Options{}), run: run,
		usual: usual{rdb: rdb, prefix: run + ":"},
	}
}

// all forces every order on n targets and returns what it saw.
func (r *race) all(ctx context.Context, n int) (figures, error) {
	f := figures{Scenarios: n}
	for i := range n {
		r.seen = i + 1
		hashes, unreferenced, err := r.usual.claims(ctx, i)
		if err != nil {
			return f, err
		}
		f.UsualHashes, f.Unreferenced = f.UsualHashes+hashes, f.Unreferenced+unreferenced
		late, err := r.usual.late(ctx, i)
		if err != nil {
			return f, err
		}
		f.UsualLate += count(late)
		if err := r.claims(ctx, r.target("claim", i), &f); err != nil {
			return f, err
		}
		if err := r.late(ctx, r.target("late", i), &f); err != nil {
			return f, err
		}
		if err := r.ownership(ctx, r.target("owner", i), &f); err != nil {
			return f, err
		}
	}
	return f, nil
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (r *race) target(kind string, i int) job.Target {
	return job.Target{Tenant: r.run, ID: fmt.Sprintf("%s-%d", kind, i)}
}

// creation mints a job of t. The i-th of a target is given the i-th ms, so that
// ids order as they are meant to be acquired.
func (r *race) creation(t job.Target, i int) (job.Creation, error) {
	id, err := job.NewID(time.UnixMilli(time.Now().UnixMilli()+int64(i)), t)
	if err != nil {
		return job.Creation{}, err
	}
	ref := job.Ref{ID: id, Target: t}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refs = append(r.refs, ref)
	return job.Creation{
		Ref: ref, Comments: []job.Comment{{ID: "1", Text: "text"}}, Digest: "-", Spec: job.Spec{Model: "none", PromptVersion: "none"},
		Deadline: deadline, Retention: retention, Lease: lease,
	}, nil
}

// claims lets two starts ask for one target at once.
func (r *race) claims(ctx context.Context, t job.Target, f *figures) error {
	var mu sync.Mutex
	var minted []job.Ref
	err := together([]int{0, 1}, func(i int, ready *sync.WaitGroup) error {
		c, err := r.creation(t, 0)
		ready.Done()
		if err != nil {
			return err
		}
		ready.Wait()
		err = r.store.Acquire(ctx, c)
		mu.Lock()
		defer mu.Unlock()
		minted = append(minted, c.Ref)
		var held *job.HeldError
		switch {
		case err == nil:
			f.Acquired++
		case errors.As(err, &held):
			f.Reused++
		default:
			return fmt.Errorf("acquire: %w", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, ref := range minted {
		n, err := r.rdb.Exists(ctx, jobstore.KeysOf(ref).Job).Result()
		if err != nil {
			return fmt.Errorf("count jobs: %w", err)
		}
		f.Hashes += int(n)
	}
	return nil
}

// worked acquires the i-th job of t and has an attempt record everything, so that
// nothing but the fence can stop its finish.
func (r *race) worked(ctx context.Context, t job.Target, i int) (job.Attempt, error) {
	c, err := r.creation(t, i)
	if err != nil {
		return job.Attempt{}, err
	}
	if err := r.store.Acquire(ctx, c); err != nil {
		return job.Attempt{}, fmt.Errorf("acquire: %w", err)
	}
	token, err := job.NewToken()
	if err != nil {
		return job.Attempt{}, err
	}
	a := job.Attempt{Ref: c.Ref, Token: token, Lease: lease}
	if _, err := r.store.Begin(ctx, a); err != nil {
		return a, fmt.Errorf("begin: %w", err)
	}
	if _, err := r.store.Record(ctx, a, []job.Result{{Index: 0, Text: "polite", MemoKey: "1"}}, job.Extra{}); err != nil {
		return a, fmt.Errorf("record: %w", err)
	}
	return a, nil
}

// expire moves the job to its deadline: what the server's clock would do.
func (r *race) expire(ctx context.Context, ref job.Ref) error {
	k := jobstore.KeysOf(ref)
	_, err := r.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.PExpire(ctx, k.Job, retention)
		p.Del(ctx, k.Run)
		return nil
	})
	return err
}

// late lets the deadline pass under a worker that has done everything but finish,
// and a reader see it; then the worker finishes.
func (r *race) late(ctx context.Context, t job.Target, f *figures) error {
	a, err := r.worked(ctx, t, 0)
	if err != nil {
		return err
	}
	if err := r.expire(ctx, a.Ref); err != nil {
		return fmt.Errorf("expire: %w", err)
	}
	if err := r.store.Finish(ctx, a, "", job.Extra{}); err == nil { // before anybody has looked
		f.Late++
		return nil
	} else if !errors.Is(err, job.ErrOverdue) {
		return fmt.Errorf("the first late finish was refused for another reason: %w", err)
	}
	j, err := r.store.Read(ctx, a.ID)
	if err != nil {
		return fmt.Errorf("read after the deadline: %w", err)
	}
	if j.Status != job.Failed {
		return fmt.Errorf("read after the deadline: %s", j.Status)
	}
	err = r.store.Finish(ctx, a, "", job.Extra{})
	var state *job.StateError
	switch {
	case err == nil:
		f.Late++
		return nil
	case !errors.As(err, &state) || state.Code != job.CodeDeadlineExceeded:
		return fmt.Errorf("the late finish was refused for another reason: %w", err)
	}
	if j, err = r.store.Read(ctx, a.ID); err != nil {
		return fmt.Errorf("read: %w", err)
	}
	f.Late += count(j.Status == job.Success)
	return nil
}

// ownership lets a job fail, another take the target, and the first one's worker
// finish after that.
func (r *race) ownership(ctx context.Context, t job.Target, f *figures) error {
	a, err := r.worked(ctx, t, 0)
	if err != nil {
		return err
	}
	if err := r.store.Fail(ctx, a.Ref, job.GuardCancel, "", job.Failure{Code: job.CodeCanceled}, job.Extra{}); err != nil {
		return fmt.Errorf("cancel: %w", err)
	}
	b, err := r.worked(ctx, t, 1)
	if err != nil {
		return err
	}
	var state *job.StateError
	err = r.store.Finish(ctx, a, "", job.Extra{})
	f.Rejected += count(errors.As(err, &state) && state.Status == job.Failed)
	current, err := r.rdb.Get(ctx, jobstore.KeysOf(b.Ref).Run).Result()
	f.Preserved += count(err == nil && current == string(b.ID))
	return nil
}

// clean deletes every key of the run.
func (r *race) clean(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for i := range r.seen {
		for _, k := range []string{r.usual.pointer(i), r.usual.job(i, "a"), r.usual.job(i, "b")} {
			r.rdb.Del(ctx, k)
		}
	}
	for _, ref := range r.refs {
		k := jobstore.KeysOf(ref)
		r.rdb.SRem(ctx, k.Watch, k.Member)
		r.rdb.Del(ctx, k.Job, k.In, k.Out, k.Run, k.Memo, k.Last, k.Kept)
	}
}
