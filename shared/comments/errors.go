package comments

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"sunhwa/shared/job"
)

// callError is a DynamoDB call that failed. It keeps the vendor's error for
// errors.Is and errors.As, and out of its text: that may quote an item.
type callError struct {
	action string
	reason string
	errs   []error
}

func (e *callError) Error() string   { return "comments: " + e.action + ": " + e.reason }
func (e *callError) Unwrap() []error { return e.errs }

// permanent are the answers that blame the request, so that asking again would
// bring the same. Everything else is job.ErrUnavailable: throttling, faults of
// the server, refused access, a missing table, no connection, no time left.
var permanent = map[string]bool{
	"ValidationException":       true,
	"SerializationException":    true,
	"UnknownOperationException": true,
}

// wrap makes err, from a call to DynamoDB, an error of this package; nil stays nil.
func wrap(action string, err error) error {
	if err == nil {
		return nil
	}
	e := &callError{action: action, errs: []error{err}}
	api, op, invalid := smithy.APIError(nil), (*net.OpError)(nil), (*smithy.InvalidParamsError)(nil)
	switch {
	case errors.Is(err, context.Canceled):
		e.reason = context.Canceled.Error()
	case errors.Is(err, context.DeadlineExceeded):
		e.reason = context.DeadlineExceeded.Error()
	case errors.As(err, &api):
		e.reason = api.ErrorCode()
		if permanent[e.reason] {
			return e
		}
	case errors.As(err, &invalid):
		e.reason = "invalid parameters"
		return e
	case errors.As(err, &op):
		e.reason = op.Error()
	default:
		e.reason = "no answer"
	}
	e.errs = append(e.errs, job.ErrUnavailable)
	return e
}

// refused reports whether a write's condition did not hold.
func refused(err error) bool {
	ccf := (*types.ConditionalCheckFailedException)(nil)
	return errors.As(err, &ccf)
}

// wait returns after d, or earlier with the context's error.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("wait: %w", ctx.Err())
	case <-timer.C:
		return nil
	}
}

// backoff returns a random time below 25 ms doubled per try, at most a second
// (full jitter: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
func backoff(try int) time.Duration {
	ceiling := min(25*time.Millisecond<<min(try, 10), time.Second)
	return rand.N(ceiling) + time.Millisecond //nolint:gosec // spreads load; guards nothing
}
