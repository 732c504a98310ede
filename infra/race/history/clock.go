package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"sunhwa/shared/job"
	"sunhwa/shared/jobstore"
)

// pass makes ARGV[1] ms pass for all KEYS at once: each expires so much sooner.
var pass = redis.NewScript(`
for _, key in ipairs(KEYS) do
  local left = redis.call('PTTL', key)
  if left >= 0 then redis.call('PEXPIRE', key, left - tonumber(ARGV[1])) end
end
return 0`)

// moment is when, counted in calls, the clock does what.
type moment struct {
	place int
	move  job.Move
}

// plan draws what time and failovers do to a history.
func (c *client) plan() []moment {
	var all []moment
	add := func(n int, m job.Move) {
		for range n {
			all = append(all, moment{place: 6 + c.random.IntN(budget-6), move: m})
		}
	}
	add(1+c.random.IntN(maxLapses), job.MoveLapse)
	add(c.random.IntN(maxDeadlines+1), job.MoveDeadline)
	add(c.random.IntN(2), job.MoveFade)
	add(c.random.IntN(8)/7, job.MoveLoseClaim)
	add(c.random.IntN(8)/7, job.MoveVanish)
	slices.SortFunc(all, func(a, b moment) int { return cmp.Compare(a.place, b.place) })
	return all
}

// tick follows the plan.
func (c *client) tick(ctx context.Context) error {
	for _, m := range c.plan() {
		if !c.reach(m.place) {
			return nil
		}
		in := job.Call{Move: m.move}
		if m.move == job.MoveVanish {
			in.ID = c.one(c.random, 3)
		}
		_, err := c.timed(ctx, in, func() (job.Answer, error) {
			return job.Answer{Reply: job.ReplyOK}, c.happen(ctx, in)
		})
		if errors.Is(err, errOver) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("history: clock: %s: %w", in.Move, err)
		}
	}
	return nil
}

// happen does to the server what in says.
func (c *client) happen(ctx context.Context, in job.Call) error {
	switch in.Move {
	case job.MoveLoseClaim:
		return c.rdb.Del(ctx, c.keys()[0]).Err()
	case job.MoveVanish:
		k := jobstore.KeysOf(job.Ref{ID: in.ID, Target: c.target})
		return c.rdb.Del(ctx, k.Job, k.In, k.Out).Err()
	}
	d := map[job.Move]time.Duration{job.MoveLapse: lease, job.MoveDeadline: deadline, job.MoveFade: hour}[in.Move]
	// A second more, so that no millisecond decides.
	return pass.Run(ctx, c.rdb, c.keys(), (d + time.Second).Milliseconds()).Err()
}

// keys lists every key the target may have, but the watch set; run comes first.
func (r *round) keys() []string {
	k := jobstore.KeysOf(job.Ref{ID: r.ids[0], Target: r.target})
	keys := []string{k.Run, k.Memo, k.Last, k.Kept}
	for _, id := range r.ids {
		k := jobstore.KeysOf(job.Ref{ID: id, Target: r.target})
		keys = append(keys, k.Job, k.In, k.Out)
	}
	return keys
}

// clear takes the target off the server. What stays, when it cannot be asked,
// expires by itself.
func (r *round) clear(ctx context.Context) {
	var members []any
	for _, id := range r.ids {
		members = append(members, jobstore.KeysOf(job.Ref{ID: id, Target: r.target}).Member)
	}
	watch := jobstore.KeysOf(job.Ref{ID: r.ids[0], Target: r.target}).Watch
	_ = r.rdb.SRem(ctx, watch, members...).Err()
	_ = r.rdb.Del(ctx, r.keys()...).Err()
}
