package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"sunhwa/infra/local"
	"sunhwa/infra/local/client"
	"sunhwa/shared/job"
)

// pollEvery is how often the demo looks at the job: more often than the API's
// Retry-After asks for, so that the bar moves.
const pollEvery = 200 * time.Millisecond

// demo is one run.
type demo struct {
	*screen
	stack    *local.Stack
	api      *client.Client
	deadline time.Duration
	comments []job.Comment
	source   string
	target   string
	output   *output // nil is none
	tenant   string  // X-Sunhwa-Tenant; empty sends none
}

// play goes through the steps; the first that is not as promised ends it.
func (d *demo) play(ctx context.Context) error {
	d.api = client.New(d.stack.URL())
	d.api.Tenant = d.tenant
	// Two starts at once may leave a connection that never carried a request: the
	// front's end would wait 5 s for one, which is all that it has.
	defer d.api.HTTP.CloseIdleConnections()
	d.introduce()
	id, err := d.start(ctx)
	if err != nil {
		return err
	}
	done, err := d.watch(ctx, id)
	if err != nil {
		return err
	}
	results, err := d.results(ctx, done)
	if err != nil {
		return err
	}
	if err := d.apply(ctx, id); err != nil {
		return err
	}
	published, err := d.readBack(ctx, id, results)
	if err != nil {
		return err
	}
	if err := d.write(published); err != nil {
		return err
	}
	d.farewell()
	return nil
}

// start sends the same start twice at once and returns the one jobId.
func (d *demo) start(ctx context.Context) (job.ID, error) {
	d.step("Two starts at once for the target %q, with %s each", d.target, count(len(d.comments), "comment"))
	type outcome struct {
		started client.Started
		answer  *client.Answer
		err     error
	}
	outcomes := make(chan outcome, 2)
	for range 2 {
		go func() {
			s, a, err := d.api.Start(ctx, d.target, d.comments)
			outcomes <- outcome{s, a, err}
		}()
	}
	both := []outcome{<-outcomes, <-outcomes}
	for _, o := range both {
		if o.err != nil {
			return "", o.err
		}
		d.exchange(o.answer)
	}
	first, second := both[0].started, both[1].started
	if first.JobID != second.JobID {
		return "", fmt.Errorf("two starts at once made two jobs, %s and %s", first.JobID, second.JobID)
	}
	if first.Reused == second.Reused {
		return "", fmt.Errorf("of two starts, both say reused=%t", first.Reused)
	}
	d.fact("one job, %s: one start made it, the other was given its id", first.JobID)
	return first.JobID, nil
}

// watch polls the job until it has ended; FAILED is an error.
func (d *demo) watch(ctx context.Context, id job.ID) (client.Job, error) {
	d.step("The worker rewrites each comment; the client asks how far it is")
	ctx, cancel := context.WithTimeoutCause(ctx, d.deadline+30*time.Second, errors.New("the job did not end by its deadline"))
	defer cancel()
	bar := d.progress(len(d.comments))
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		j, a, err := d.api.Job(ctx, id)
		if err != nil {
			return j, err
		}
		bar.set(j.Progress.Done)
		if j.Status.Terminal() {
			bar.end()
			d.exchange(a)
			if j.Status != job.Success {
				return j, failure(j)
			}
			d.fact("%d of %s rewritten; %s to the LLM, %s, %s reused", j.Progress.Done, count(j.Progress.Total, "comment"),
				count(int(j.Usage.Calls), "call"), count(int(j.Usage.TotalTokens), "token"), count(int(j.Usage.MemoHits), "answer"))
			return j, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			bar.end()
			return j, context.Cause(ctx)
		}
	}
}

func failure(j client.Job) error {
	if j.Error == nil {
		return fmt.Errorf("job %s is %s", j.JobID, j.Status)
	}
	on := ""
	if j.Error.CommentID != nil {
		on = " on comment " + *j.Error.CommentID
	}
	return fmt.Errorf("job %s is FAILED with %s%s: %s", j.JobID, j.Error.Code, on, j.Error.Message)
}

func (d *demo) results(ctx context.Context, j client.Job) ([]job.Rewritten, error) {
	d.step("Before and after: a preview that is not published yet")
	results, answers, err := d.api.Results(ctx, j.JobID)
	if err != nil {
		return nil, err
	}
	d.exchange(answers...)
	same := slices.EqualFunc(results, d.comments, func(r job.Rewritten, c job.Comment) bool {
		return r.ID == c.ID && r.Before == c.Text
	})
	if !same {
		return nil, errors.New("the results are not those of the comments sent, in their order")
	}
	d.sideBySide(results)
	return results, nil
}

func (d *demo) apply(ctx context.Context, id job.ID) error {
	d.step("Apply: the whole result is published at once, or nothing is")
	out, a, err := d.api.Apply(ctx, id)
	if err != nil {
		return err
	}
	d.exchange(a)
	if out.Applied != len(d.comments) || out.AlreadyApplied {
		return fmt.Errorf("apply published %d of %s (alreadyApplied=%t)", out.Applied, count(len(d.comments), "comment"), out.AlreadyApplied)
	}
	return nil
}

// readBack reads the published version and compares it with the results.
func (d *demo) readBack(ctx context.Context, id job.ID, results []job.Rewritten) (client.Published, error) {
	d.step("What every reader gets from now on: the published version")
	p, answers, err := d.api.Published(ctx, d.target)
	if err != nil {
		return p, err
	}
	d.exchange(answers...)
	same := slices.EqualFunc(p.Comments, results, func(c job.PublishedComment, r job.Rewritten) bool {
		return c.ID == r.ID && c.Text == r.After && c.Original == r.Before
	})
	if p.JobID != id || !same {
		return p, errors.New("what is published is not what the job made")
	}
	d.fact("%s published, the same as in the preview", count(len(p.Comments), "comment"))
	return p, nil
}

// write puts the published version into the file asked for.
func (d *demo) write(p client.Published) error {
	if d.output == nil {
		return nil
	}
	b, err := json.MarshalIndent(struct {
		TargetID  string                 `json:"targetId"`
		JobID     job.ID                 `json:"jobId"`
		AppliedAt string                 `json:"appliedAt"`
		Comments  []job.PublishedComment `json:"comments"`
	}{p.TargetID, p.JobID, p.AppliedAt, p.Comments}, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the published version: %w", err)
	}
	if err := d.output.write(append(b, '\n')); err != nil {
		return fmt.Errorf("write the published version: %w", err)
	}
	d.fact("written to %s", d.output.f.Name())
	return nil
}

// named adds the ids of the comments that an API error points at.
func (d *demo) named(err error) error {
	var r *client.Refusal
	if !errors.As(err, &r) {
		return err
	}
	for i, p := range r.Pointed {
		if id, ok := commentAt(d.comments, p.Pointer); ok {
			r.Pointed[i].Pointer += " (comment " + id + " of " + d.source + ")"
		}
	}
	return err
}
