package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"sunhwa/shared/job"
	"sunhwa/shared/jobstore"
)

// client is one caller: it makes one call at a time.
type client struct {
	*round
	who    string
	number int
	store  *jobstore.Store
	random *rand.Rand
}

// publishedAt is when every head of a round says that its job was published.
var publishedAt = time.UnixMilli(1_893_553_445_678)

// chance is true n times of a hundred.
func (c *client) chance(n int) bool { return c.random.IntN(100) < n }

// do makes one call and notes it. When its reply was lost it makes it again, as
// every caller of Sunhwa does, and returns that answer.
func (c *client) do(ctx context.Context, in job.Call) (job.Answer, error) {
	for {
		if err := c.take(); err != nil {
			return job.Answer{}, err
		}
		within, cancel := c.impatient(ctx, c.random)
		out, err := c.timed(ctx, in, func() (job.Answer, error) { return c.ask(within, in) })
		cancel()
		if err != nil || out.Reply != job.ReplyUnknown {
			return out, err
		}
	}
}

// timed makes one call and notes it.
func (c *client) timed(ctx context.Context, in job.Call, make func() (job.Answer, error)) (job.Answer, error) {
	began := time.Since(c.began)
	out, err := make()
	ended := time.Since(c.began)
	if err != nil {
		return out, err
	}
	c.note(Op{Who: c.who, Call: began.Nanoseconds(), Return: ended.Nanoseconds(), In: in, Out: out})
	if ctx.Err() != nil {
		return out, errOver // whoever asked for the history has gone
	}
	return out, nil
}

// ask makes the call on the shipped store.
func (c *client) ask(ctx context.Context, in job.Call) (job.Answer, error) {
	s, ref := c.store, job.Ref{ID: in.ID, Target: c.target}
	attempt := job.Attempt{Ref: ref, Token: in.Token, Lease: lease}
	var out job.Answer
	var err error
	switch in.Move {
	case job.MoveAcquire:
		err = s.Acquire(ctx, c.creation(in))
	case job.MoveBegin:
		var b *job.Begun
		if b, err = s.Begin(ctx, attempt); err == nil {
			out = job.Answer{Other: b.Kept, Attempt: b.Attempt, Done: len(b.Recorded), Total: len(b.Comments), Usage: b.Usage}
			out.Texts = make([]string, len(b.Comments))
			for i, text := range b.Recorded {
				out.Texts[i] = text
			}
		}
	case job.MoveRecord:
		var p job.Progress
		p, err = s.Record(ctx, attempt, in.Results, in.Extra)
		out = job.Answer{Done: p.Done, Usage: p.Usage}
	case job.MoveRenew:
		err = s.Renew(ctx, attempt)
	case job.MoveFinish:
		err = s.Finish(ctx, attempt, in.Other, in.Extra)
	case job.MoveFail:
		err = s.Fail(ctx, ref, in.Guard, in.Token, job.Failure{Code: in.Code}, in.Extra)
	case job.MoveRead:
		var j *job.Job
		if j, err = s.Read(ctx, in.ID); err == nil {
			out = job.Answer{
				Status: j.Status, Token: j.Token, Attempt: j.Attempt, Done: j.Done, Total: j.Total, Usage: j.Usage, Applied: !j.AppliedAt.IsZero(),
			}
			if j.Failure != nil {
				out.Code = j.Failure.Code
			}
		}
	case job.MoveResults:
		var all []job.Rewritten
		_, all, err = s.Results(ctx, in.ID)
		for _, one := range all {
			out.Texts = append(out.Texts, one.After)
		}
	case job.MoveApplied:
		err = s.Applied(ctx, in.ID, publishedAt)
	case job.MoveErase:
		err = s.Erase(ctx, c.target, in.Other)
	case job.MoveInspect:
		var v job.Verdict
		if v, err = s.Inspect(ctx, ref, lease); err == nil {
			return job.Answer{Reply: job.Reply(strings.ToUpper(string(v.Kind))), Code: v.Code}, nil
		}
	case job.MoveNewest:
		out.Other, err = s.Newest(ctx, c.target)
	}
	if err == nil {
		out.Reply = job.ReplyOK
		return out, nil
	}
	refusal, ok := job.AnswerOf(err)
	if !ok {
		return out, fmt.Errorf("%s: %w", in.Move, err)
	}
	return refusal, nil
}

func (c *client) creation(in job.Call) job.Creation {
	texts := make([]job.Comment, in.Total)
	for i := range texts {
		texts[i] = job.Comment{ID: fmt.Sprint("c", i), Text: fmt.Sprint("comment ", i)}
	}
	return job.Creation{
		Ref: job.Ref{ID: in.ID, Target: c.target}, Comments: texts, Digest: job.InputDigest(texts),
		Deadline: deadline, Retention: retention, Lease: lease, Missing: in.Other,
	}
}
