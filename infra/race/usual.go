package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// usual is the usual way, written out plainly: look whether a job runs, decide,
// write the job, point at it. Nothing ties the look to the write.
type usual struct {
	rdb    redis.UniversalClient
	prefix string // of every key, so that they can be told from a server's own
}

func (u usual) pointer(target int) string { return fmt.Sprintf("%s{%d}:current", u.prefix, target) }
func (u usual) job(target int, id string) string {
	return fmt.Sprintf("%s{%d}:job:%s", u.prefix, target, id)
}

// start claims the target for id unless a job is named already. looked is where
// the two starts of a scenario wait for each other, between look and write.
func (u usual) start(ctx context.Context, target int, id string, looked *sync.WaitGroup) error {
	current, err := u.rdb.Get(ctx, u.pointer(target)).Result()
	if err != nil && err != redis.Nil { //nolint:errorlint // as the usual way has it
		looked.Done()
		return fmt.Errorf("usual start: get: %w", err)
	}
	looked.Done()
	looked.Wait()
	if current != "" {
		return nil
	}
	if err := u.rdb.HSet(ctx, u.job(target, id), "status", "RUNNING").Err(); err != nil {
		return fmt.Errorf("usual start: hset: %w", err)
	}
	if err := u.rdb.Expire(ctx, u.job(target, id), time.Hour).Err(); err != nil {
		return fmt.Errorf("usual start: expire: %w", err)
	}
	if err := u.rdb.Set(ctx, u.pointer(target), id, time.Hour).Err(); err != nil {
		return fmt.Errorf("usual start: set: %w", err)
	}
	return nil
}

// finish is the usual worker's last word: SUCCESS, whatever happened meanwhile.
func (u usual) finish(ctx context.Context, target int, id string) error {
	return u.rdb.HSet(ctx, u.job(target, id), "status", "SUCCESS").Err()
}

// fail is the usual deadline: whoever polls marks the job.
func (u usual) fail(ctx context.Context, target int, id string) error {
	return u.rdb.HSet(ctx, u.job(target, id), "status", "FAILED").Err()
}

// claims runs two starts that both look before either writes, and counts the job
// hashes left and those no pointer names.
func (u usual) claims(ctx context.Context, target int) (hashes, unreferenced int, err error) {
	ids := []string{"a", "b"}
	if err := together(ids, func(id string, looked *sync.WaitGroup) error { return u.start(ctx, target, id, looked) }); err != nil {
		return 0, 0, err
	}
	current, err := u.rdb.Get(ctx, u.pointer(target)).Result()
	if err != nil {
		return 0, 0, fmt.Errorf("usual claims: %w", err)
	}
	for _, id := range ids {
		n, err := u.rdb.Exists(ctx, u.job(target, id)).Result()
		if err != nil {
			return 0, 0, fmt.Errorf("usual claims: %w", err)
		}
		hashes += int(n)
		if n == 1 && id != current {
			unreferenced++
		}
	}
	return hashes, unreferenced, nil
}

// late lets the deadline mark a job and its worker finish after that; it reports
// whether readers now see SUCCESS.
func (u usual) late(ctx context.Context, target int) (bool, error) {
	current, err := u.rdb.Get(ctx, u.pointer(target)).Result()
	if err != nil {
		return false, fmt.Errorf("usual late: %w", err)
	}
	if err := u.fail(ctx, target, current); err != nil {
		return false, fmt.Errorf("usual late: fail: %w", err)
	}
	if err := u.finish(ctx, target, current); err != nil {
		return false, fmt.Errorf("usual late: finish: %w", err)
	}
	status, err := u.rdb.HGet(ctx, u.job(target, current), "status").Result()
	return status == "SUCCESS", err
}

// together runs f for every name at once, with one barrier they all reach, and
// returns the first error.
func together[T any](names []T, f func(T, *sync.WaitGroup) error) error {
	var barrier, all sync.WaitGroup
	barrier.Add(len(names))
	errs := make(chan error, len(names))
	for _, name := range names {
		all.Add(1)
		go func() {
			defer all.Done()
			errs <- f(name, &barrier)
		}()
	}
	all.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
