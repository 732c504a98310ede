// Package dispatch invokes the worker asynchronously: the event carries ids
// only, and Lambda answers as soon as it has queued it.
package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"sunhwa/shared/job"
)

// MaxEvent is how many bytes an asynchronous event may have: less than 1 MiB
// (https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html).
const MaxEvent = 1 << 20

// Invoker is the Lambda client, as far as it is used.
type Invoker interface {
	Invoke(ctx context.Context, in *lambda.InvokeInput, o ...func(*lambda.Options)) (*lambda.InvokeOutput, error)
}

var _ Invoker = (*lambda.Client)(nil)

// Dispatcher invokes one function.
type Dispatcher struct {
	client   Invoker
	function string
}

// New returns a Dispatcher of the function named (or aliased, or by ARN).
func New(client Invoker, functionName string) *Dispatcher {
	return &Dispatcher{client: client, function: functionName}
}

// Options bounds the SDK's own retry, which cannot tell an accepted invocation
// whose answer was lost from one that never arrived: the second try may invoke
// twice, which the attempt's token makes harmless. The caller's context bounds
// the whole. Pass it to lambda.NewFromConfig.
func Options(o *lambda.Options) { o.RetryMaxAttempts = 2 }

// Dispatch asks for a worker for the job. nil means that Lambda has queued the
// event. job.ErrRefused means that it definitely has not and will not: a 4xx
// other than 408 and 429, or an event over MaxEvent. Every other error is
// ambiguous: the worker may run. Cancellation stays visible.
func (d *Dispatcher) Dispatch(ctx context.Context, ref job.Ref) error {
	payload, err := json.Marshal(ref.Event())
	if err != nil {
		return fmt.Errorf("dispatch: encode the event: %w", err)
	}
	if len(payload) >= MaxEvent {
		return fmt.Errorf("dispatch: event of %d bytes: %w", len(payload), job.ErrRefused)
	}
	out, err := d.client.Invoke(ctx, &lambda.InvokeInput{
		FunctionName:   &d.function,
		InvocationType: types.InvocationTypeEvent,
		Payload:        payload,
	})
	if err != nil {
		if refused(err) {
			return fmt.Errorf("dispatch: invoke %s: %w: %w", d.function, job.ErrRefused, err)
		}
		return fmt.Errorf("dispatch: invoke %s: %w", d.function, err)
	}
	if out.StatusCode != http.StatusAccepted {
		return fmt.Errorf("dispatch: invoke %s: status %d, not 202", d.function, out.StatusCode)
	}
	return nil
}

// refused reports whether the last answer was a definite no. An earlier try of
// the SDK may have got through only if it was ambiguous, and a definite 4xx after
// an ambiguous try is rare enough to be left to the start guard of fail, which
// refuses once an attempt has begun.
func refused(err error) bool {
	var answer *smithyhttp.ResponseError
	if !errors.As(err, &answer) {
		return false
	}
	s := answer.HTTPStatusCode()
	return s >= 400 && s < 500 && s != http.StatusRequestTimeout && s != http.StatusTooManyRequests
}
