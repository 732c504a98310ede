package local

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"sunhwa/infra/local/invoke"
)

// schedule invokes the sweeper every so often until ctx ends, as EventBridge
// would. A pass that takes longer than the interval delays the next one.
func (s *Stack) schedule(ctx context.Context, every time.Duration) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case at := <-t.C:
			s.sweep(ctx, at)
		}
	}
}

func (s *Stack) sweep(ctx context.Context, at time.Time) {
	payload, err := json.Marshal(events.CloudWatchEvent{
		Version: "0", DetailType: "Scheduled Event", Source: "aws.events", Region: region,
		Time: at.UTC().Truncate(time.Second), Detail: json.RawMessage(`{}`),
	})
	if err == nil {
		_, err = s.invoke.Call(ctx, s.sweeper, payload)
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, invoke.ErrClosing) {
		s.log.Error("sweeper could not be run", "error", err)
	}
}
