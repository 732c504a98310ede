package jobstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"sunhwa/shared/job"
)

// passing are the starts of error replies that say "not now" and nothing of the
// job: overload, failover, migration, authentication, and two that ElastiCache
// Serverless was reported to answer under traffic spikes
// (https://github.com/redisson/redisson/issues/6718).
var passing = []string{
	"OOM", "READONLY", "TRYAGAIN", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "BUSY", "MISCONF", "NOREPLICAS",
	"MOVED", "ASK", "NOAUTH", "WRONGPASS", "NOPERM", "UNKILLABLE", "UNBLOCKED",
	"ERR max number of clients reached",
	"ERR Script attempted to access a non local key in a cluster node",
	"ERR AUTH", "ERR invalid password",
}

// classify turns a failed call into an error of package job. Whatever leaves the
// outcome unknown or says "not now" is job.ErrUnavailable; the cause stays
// visible to errors.Is, and so does the end of the caller's own ctx, which a
// socket reports as a mere time-out. The rest (a script's own fault) is passed on
// as it is.
func classify(ctx context.Context, move string, err error) error {
	if err == nil {
		return nil
	}
	if end := ended(ctx); end != nil && !errors.Is(err, end) {
		err = fmt.Errorf("%w: %w", end, err)
	}
	if unavailable(err) {
		return fmt.Errorf("%s: %w: %w", move, job.ErrUnavailable, err)
	}
	return fmt.Errorf("jobstore: %s: %w", move, err)
}

// unavailable is true for every error that is no reply: a socket's, TLS's, the
// pool's, the context's, and that of whoever gives credentials.
func unavailable(err error) bool {
	var reply redis.Error
	return !errors.As(err, &reply) ||
		slices.ContainsFunc(passing, func(start string) bool { return strings.HasPrefix(reply.Error(), start) })
}

// ended is ctx's own error; past its deadline, also before its timer has fired.
func ended(ctx context.Context) error {
	if d, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(d) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// migrating reports TRYAGAIN: a slot is on its way between two nodes and the
// script named a key that is not there, or not yet.
func migrating(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && strings.HasPrefix(reply.Error(), "TRYAGAIN")
}
