package client

import (
	"context"
	"net/http"

	"sunhwa/shared/job"
)

// Started is the answer to a start.
type Started struct {
	JobID     job.ID     `json:"jobId"`
	Status    job.Status `json:"status"`
	Reused    bool       `json:"reused"`
	SameInput bool       `json:"sameInput"`
}

// Job is a job as the API shows it. Times are RFC 3339, or nil.
type Job struct {
	JobID    job.ID     `json:"jobId"`
	TargetID string     `json:"targetId"`
	Status   job.Status `json:"status"`
	Progress struct {
		Total int `json:"total"`
		Done  int `json:"done"`
	} `json:"progress"`
	CreatedAt  string  `json:"createdAt"`
	DeadlineAt string  `json:"deadlineAt"`
	FinishedAt *string `json:"finishedAt"`
	Error      *struct {
		Code      job.Code `json:"code"`
		Message   string   `json:"message"`
		CommentID *string  `json:"commentId"`
	} `json:"error"`
	Usage     job.Usage `json:"usage"`
	AppliedAt *string   `json:"appliedAt"`
}

// Applied is the answer to an apply.
type Applied struct {
	JobID          job.ID `json:"jobId"`
	Applied        int    `json:"applied"`
	AlreadyApplied bool   `json:"alreadyApplied"`
}

// Published is what is published for a target.
type Published struct {
	TargetID  string                 `json:"targetId"`
	JobID     job.ID                 `json:"jobId"`
	AppliedAt string                 `json:"appliedAt"`
	Comments  []job.PublishedComment `json:"comments"`
}

// Start starts a job on the target, or finds the one that is running.
func (c *Client) Start(ctx context.Context, target string, comments []job.Comment) (Started, *Answer, error) {
	var out Started
	in := struct {
		Comments []job.Comment `json:"comments"`
	}{comments}
	a, err := c.Call(ctx, http.MethodPost, targetPath(target)+"/jobs", in, &out)
	return out, a, err
}

// Job reads a job.
func (c *Client) Job(ctx context.Context, id job.ID) (Job, *Answer, error) {
	var out Job
	a, err := c.Call(ctx, http.MethodGet, jobPath(id), nil, &out)
	return out, a, err
}

// Results reads all pages of a job's results, in the input's order.
func (c *Client) Results(ctx context.Context, id job.ID) ([]job.Rewritten, []*Answer, error) {
	type page struct {
		Results    []job.Rewritten `json:"results"`
		NextCursor *string         `json:"nextCursor"`
	}
	pages, answers, err := all(ctx, c, jobPath(id)+"/results", func(p page) *string { return p.NextCursor })
	var out []job.Rewritten
	for _, p := range pages {
		out = append(out, p.Results...)
	}
	return out, answers, err
}

// Apply publishes a job's results.
func (c *Client) Apply(ctx context.Context, id job.ID) (Applied, *Answer, error) {
	var out Applied
	a, err := c.Call(ctx, http.MethodPost, jobPath(id)+"/apply", nil, &out)
	return out, a, err
}

// Published reads all pages of what is published for the target: one version,
// to which every page belongs.
func (c *Client) Published(ctx context.Context, target string) (Published, []*Answer, error) {
	type page struct {
		Published
		NextCursor *string `json:"nextCursor"`
	}
	pages, answers, err := all(ctx, c, targetPath(target)+"/comments", func(p page) *string { return p.NextCursor })
	var out Published
	for i, p := range pages {
		if i == 0 {
			out = p.Published
			continue
		}
		out.Comments = append(out.Comments, p.Comments...)
	}
	return out, answers, err
}
