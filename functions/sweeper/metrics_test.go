package main

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sunhwa/shared/handler"
	"sunhwa/shared/job"
	"sunhwa/shared/obs"
)

func TestCounted_writesCountsAlsoWhenZero(t *testing.T) {
	for _, row := range []struct {
		counts handler.SweepCounts
		err    error
		want   []string
	}{
		{handler.SweepCounts{}, nil, []string{`"JobsRedispatched":0`, `"JobsOverdue":0`, `"OldestRunning":0`}},
		{
			handler.SweepCounts{Redispatched: 2, Left: 1, OldestRunning: time.Minute, Ended: map[job.Code]int{job.CodeDeadlineExceeded: 3}}, errors.New("x"),
			[]string{`"JobsRedispatched":2`, `"JobsOverdue":3`, `"OldestRunning":60000`, `"JobsRunning":3`, `"Code":"DEADLINE_EXCEEDED"`},
		},
	} {
		var b bytes.Buffer
		got, err := counted(obs.NewMetrics(&b, "sweeper", nil), func(context.Context) (handler.SweepCounts, error) {
			return row.counts, row.err
		})(t.Context())
		assert.Equal(t, row.err, err)
		assert.Equal(t, row.counts, got)
		for _, w := range row.want {
			assert.Contains(t, b.String(), w)
		}
	}
}
