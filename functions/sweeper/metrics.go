package main

import (
	"context"

	"sunhwa/shared/handler"
	"sunhwa/shared/job"
	"sunhwa/shared/obs"
)

// counted returns pass with its counts as metrics, written also when they are 0,
// so that an alarm can tell "none" from "the sweeper does not run".
func counted(m *obs.Metrics, pass func(context.Context) (handler.SweepCounts, error)) func(context.Context) (handler.SweepCounts, error) {
	return func(ctx context.Context) (handler.SweepCounts, error) {
		defer m.Flush()
		c, err := pass(ctx)
		m.Count("JobsRedispatched", int64(c.Redispatched))
		m.Count("JobsOverdue", int64(c.Ended[job.CodeDeadlineExceeded]))
		for code, n := range c.Ended {
			m.Count("JobsFailed", int64(n), obs.Dimension{Name: "Code", Value: string(code)})
		}
		m.Count("SweepErrors", int64(c.Errors))
		m.Count("JobsRunning", int64(c.Left+c.Redispatched))
		m.Took("OldestRunning", c.OldestRunning)
		return c, err
	}
}
