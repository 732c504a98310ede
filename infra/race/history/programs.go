package history

import (
	"context"
	"fmt"

	"sunhwa/shared/job"
)

// start is the start function again and again, with every third id, so that a
// starter that lags behind the others is refused as stale.
func (c *client) start(ctx context.Context) error {
	for i := c.number; i < len(c.ids); i += 3 {
		in := job.Call{Move: job.MoveAcquire, ID: c.ids[i], Total: comments}
		for tries := 0; tries < 3; tries++ {
			out, err := c.do(ctx, in)
			if err != nil {
				return err
			}
			if out.Reply == job.ReplyStaleID {
				break
			}
			if out.Reply == job.ReplyOK {
				if err := c.started(ctx, in); err != nil {
					return err
				}
				break
			}
			holder, err := c.do(ctx, job.Call{Move: job.MoveRead, ID: out.Other})
			if err != nil {
				return err
			}
			if holder.Reply == job.ReplyNotFound {
				in.Other = out.Other
			} else if holder.Status == job.Running {
				c.await(3 + c.random.IntN(12))
			}
		}
	}
	return c.read(ctx) // its ids are used up
}

// started is what may follow an acquire: its repeat, or Lambda's refusal.
func (c *client) started(ctx context.Context, in job.Call) error {
	if c.chance(15) {
		if _, err := c.do(ctx, in); err != nil {
			return err
		}
	}
	if c.chance(10) {
		in = job.Call{Move: job.MoveFail, ID: in.ID, Guard: job.GuardStart, Code: job.CodeDispatchFailed}
		if _, err := c.do(ctx, in); err != nil {
			return err
		}
	}
	c.await(6 + c.random.IntN(16))
	return nil
}

// work is one invocation of the worker after the other, each with a token of its
// own. Some stop half-way, some fall asleep and go on when they are replaced.
func (c *client) work(ctx context.Context) error {
	c.await(1 + c.random.IntN(3))
	for n := 1; ; n++ {
		in := job.Call{Move: job.MoveBegin, ID: c.one(c.random, 10), Token: fmt.Sprintf("%s%d", c.who[len(c.who)-1:], n), Attempts: attempts}
		out, err := c.do(ctx, in)
		if err != nil {
			return err
		}
		if out.Reply != job.ReplyOK {
			c.await(3 + c.random.IntN(8))
			continue
		}
		if err := c.attempt(ctx, in, out); err != nil {
			return err
		}
	}
}

// attempt is one worker's way from begin to finish.
func (c *client) attempt(ctx context.Context, begun job.Call, out job.Answer) error {
	in := job.Call{ID: begun.ID, Token: begun.Token}
	kept, texts := out.Other, out.Texts
	step := func(move job.Move) (stop bool, err error) {
		in.Move = move
		if out, err = c.do(ctx, in); err != nil || out.Reply == job.ReplyOK {
			return err != nil, err
		}
		if out.Reply == job.ReplyOverdue {
			in = job.Call{Move: job.MoveFail, ID: in.ID, Token: in.Token, Guard: job.GuardWorker, Code: job.CodeDeadlineExceeded}
			_, err = c.do(ctx, in)
		}
		return out.Reply != job.ReplyIncomplete, err
	}
	for i := range texts {
		if texts[i] != "" && !c.chance(20) {
			continue // recorded already; to send it again must change nothing
		}
		in.Results = append(in.Results, job.Result{
			Index: i, Text: in.Token + fmt.Sprint(" rewrites ", i), MemoKey: fmt.Sprint("memo ", i), Usage: job.Usage{Calls: 1, TotalTokens: 10},
		})
		if i+1 < len(texts) && c.chance(40) {
			continue // both in one call
		}
		if c.chance(25) {
			in.Extra = job.Extra{Seq: int64(i + 1), Usage: job.Usage{Calls: 1}}
		}
		if stop, err := step(job.MoveRecord); stop {
			return err
		}
		in.Results, in.Extra = nil, job.Extra{}
		if c.chance(25) {
			c.await(4 + c.random.IntN(10))
		}
		if c.chance(15) {
			if stop, err := step(job.MoveRenew); stop {
				return err
			}
		}
		if c.chance(15) {
			return nil // killed
		}
		if c.chance(6) {
			break // believes that it has recorded everything
		}
	}
	if c.chance(10) {
		in.Guard, in.Code = job.GuardWorker, job.CodeLLMFailed
		_, err := step(job.MoveFail)
		return err
	}
	in.Other = kept
	if stop, err := step(job.MoveFinish); stop || out.Reply == job.ReplyOK && !c.chance(25) {
		return err
	}
	if out.Reply == job.ReplyIncomplete {
		in.Guard, in.Code = job.GuardWorker, job.CodeInternal
		_, err := step(job.MoveFail)
		return err
	}
	_, err := step(job.MoveFinish) // again, as after a lost reply
	return err
}

// cancel ends a job now and then, and forgets the target once in a while.
func (c *client) cancel(ctx context.Context) error {
	for {
		c.await(8 + c.random.IntN(12))
		in := job.Call{Move: job.MoveFail, ID: c.one(c.random, 3), Guard: job.GuardCancel, Code: job.CodeCanceled}
		if c.chance(40) {
			newest, err := c.do(ctx, job.Call{Move: job.MoveNewest})
			if err != nil {
				return err
			}
			in = job.Call{Move: job.MoveErase, Other: newest.Other}
		}
		if _, err := c.do(ctx, in); err != nil {
			return err
		}
	}
}

// read polls jobs, and publishes what it finds finished.
func (c *client) read(ctx context.Context) error {
	for {
		c.await(1 + c.random.IntN(5))
		in := job.Call{Move: job.MoveRead, ID: c.one(c.random, 3)}
		if c.chance(40) {
			in.Move = job.MoveResults
		}
		out, err := c.do(ctx, in)
		if err != nil {
			return err
		}
		if in.Move == job.MoveResults && (out.Reply == job.ReplyOK || c.chance(5)) {
			in.Move = job.MoveApplied
			if _, err := c.do(ctx, in); err != nil {
				return err
			}
		}
	}
}

// sweep inspects jobs, as the sweeper does, and as two sweepers at once would.
func (c *client) sweep(ctx context.Context) error {
	for {
		c.await(2 + c.random.IntN(5))
		if _, err := c.do(ctx, job.Call{Move: job.MoveInspect, ID: c.one(c.random, 3), Attempts: attempts}); err != nil {
			return err
		}
	}
}
