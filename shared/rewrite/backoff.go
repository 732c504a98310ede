package rewrite

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	backoffBase = 500 * time.Millisecond
	backoffMost = 20 * time.Second
)

// backoff returns the limit under which the pause before repeat n (from 0) is
// drawn: full jitter
// (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
func backoff(n int) time.Duration {
	if n >= 6 { // 500 ms << 6 is over the most already
		return backoffMost
	}
	return min(backoffBase<<n, backoffMost)
}

// jitter returns a random duration in [0, limit).
func jitter(limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	return rand.N(limit)
}

// sleep waits for d or for ctx, whichever ends first, and returns ctx's error in
// the second case.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
