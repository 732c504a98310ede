package handler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"sunhwa/shared/job"
)

// maxErases bounds how often an erase begins again because a new job was
// acquired while it ran.
const maxErases = 5

// eraser is what comments needs of the job store.
type eraser interface {
	Newest(ctx context.Context, t job.Target) (job.ID, error)
	Erase(ctx context.Context, t job.Target, newest job.ID) error
}

// published is what comments needs of the table.
type published interface {
	// Read returns a page of the version shown; job.ErrNotFound when nothing is,
	// job.ErrGone for a cursor of a version whose rows are gone, job.ErrCursor
	// for one that is none.
	Read(ctx context.Context, t job.Target, cursor string, pageBytes int) (*job.PublishedPage, error)
	Entomb(ctx context.Context, t job.Target, newest job.ID) error
	Erase(ctx context.Context, t job.Target) error
}

// CommentsOptions configure Comments.
type CommentsOptions struct {
	TenantClaim string           // TENANT_CLAIM; empty: the one tenant `default`
	Now         func() time.Time // for the log; nil: time.Now
	Logger      *slog.Logger     // nil: slog.Default()
}

// Comments answers what is published for a target, and erases it.
type Comments struct {
	api
	store eraser
	table published
	redis time.Duration
	limit time.Duration
}

// NewComments returns the handler of the function comments.
func NewComments(store eraser, table published, o CommentsOptions) *Comments {
	c := &Comments{store: store, table: table, redis: redisLimit, limit: tableLimit}
	c.api = newAPI(o.TenantClaim, o.Logger, o.Now, map[string]endpoint{
		"GET /targets/{targetId}/comments":    c.read,
		"DELETE /targets/{targetId}/comments": c.erase,
	})
	return c
}

// Handle answers one event within 25 s; the error is always nil. No Redis call
// takes more than 4 s of them.
func (c *Comments) Handle(ctx context.Context, event events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	return c.handle(ctx, &event), nil
}

func (c *Comments) read(ctx context.Context, r *request) (reply, error) {
	t, err := r.target()
	if err != nil {
		return reply{}, err
	}
	page, err := c.table.Read(ctx, t, r.cursor(), pageBytes-envelopeBytes)
	if err != nil {
		return reply{}, err
	}
	view := publishedView{
		TargetID: t.ID, JobID: page.JobID, AppliedAt: timeOf(page.AppliedAt),
		Comments: page.Comments, NextCursor: orNull(page.Next),
	}
	if view.Comments == nil {
		view.Comments = []job.PublishedComment{}
	}
	r.jobID = page.JobID
	return reply{status: http.StatusOK, body: view}, nil
}

// erase forgets a target: the tombstone first, so that an apply under way is
// refused; then Redis; then the rows. A job acquired between two of the steps
// makes it begin again, since only a tombstone at least as new as that job
// refuses it. 204 also when there was nothing.
func (c *Comments) erase(ctx context.Context, r *request) (reply, error) {
	t, err := r.target()
	if err != nil {
		return reply{}, err
	}
	for range maxErases {
		newest, err := c.newest(ctx, t)
		if err != nil {
			return reply{}, err
		}
		if err := c.table.Entomb(ctx, t, newest); err != nil {
			return reply{}, err
		}
		err = c.eraseJobs(ctx, t, newest)
		if changed := (*job.ChangedError)(nil); errors.As(err, &changed) {
			continue
		}
		if err != nil {
			return reply{}, err
		}
		if err := c.table.Erase(ctx, t); err != nil {
			return reply{}, err
		}
		return reply{status: http.StatusNoContent}, nil
	}
	return reply{}, fmt.Errorf("erase: a new job was acquired %d times in a row: %w", maxErases, job.ErrUnavailable)
}

// newest is the target's newest job, empty when it has none.
func (c *Comments) newest(ctx context.Context, t job.Target) (job.ID, error) {
	ctx, cancel := context.WithTimeout(ctx, c.redis)
	defer cancel()
	id, err := c.store.Newest(ctx, t)
	if errors.Is(err, job.ErrNotFound) {
		return "", nil
	}
	return id, err
}

func (c *Comments) eraseJobs(ctx context.Context, t job.Target, newest job.ID) error {
	ctx, cancel := context.WithTimeout(ctx, c.redis)
	defer cancel()
	return c.store.Erase(ctx, t, newest)
}
