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

// finished is what apply needs of the job store.
type finished interface {
	Read(ctx context.Context, id job.ID) (*job.Job, error)
	Results(ctx context.Context, id job.ID) (*job.Job, []job.Rewritten, error)
	// Applied notes since when the job is shown; the first note stands.
	Applied(ctx context.Context, id job.ID, at time.Time) error
}

// publisher puts one job's whole result before readers, or nothing.
type publisher interface {
	// Head reads consistently; job.ErrNotFound when nothing was ever published.
	Head(ctx context.Context, t job.Target) (*job.Head, error)
	// Publish answers the head's AppliedAt, also when this job is shown already;
	// job.ErrSuperseded when a newer job is, job.ErrGone when an erase refuses it.
	Publish(ctx context.Context, t job.Target, id job.ID, version string, rows []job.Rewritten) (time.Time, error)
}

// ApplyOptions configure Apply.
type ApplyOptions struct {
	TenantClaim string           // TENANT_CLAIM; empty: the one tenant `default`
	Now         func() time.Time // for the log; nil: time.Now
	Logger      *slog.Logger     // nil: slog.Default()
}

// Apply answers POST /jobs/{jobId}/apply: it publishes a SUCCESS job.
type Apply struct {
	api
	store finished
	table publisher
	redis time.Duration
	limit time.Duration
}

// NewApply returns the handler of the function apply.
func NewApply(store finished, table publisher, o ApplyOptions) *Apply {
	a := &Apply{store: store, table: table, redis: redisLimit, limit: tableLimit}
	a.api = newAPI(o.TenantClaim, o.Logger, o.Now, map[string]endpoint{
		"POST /jobs/{jobId}/apply": a.apply,
	})
	return a
}

// Handle answers one event; the error is always nil. It stops at 25 s with 503,
// and a repeat resumes; no Redis call takes more than 4 s of them.
func (a *Apply) Handle(ctx context.Context, event events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, a.limit)
	defer cancel()
	return a.handle(ctx, &event), nil
}

// apply reads the job, then the head, then the texts: a job that is published
// already is told so even when its texts are gone.
func (a *Apply) apply(ctx context.Context, r *request) (reply, error) {
	j, err := a.success(ctx, r)
	if err != nil {
		return reply{}, err
	}
	head, err := a.shown(ctx, j)
	if err != nil {
		return reply{}, err
	}
	if head != nil {
		return a.answer(ctx, head, true)
	}
	rows, err := a.results(ctx, j)
	if errors.Is(err, job.ErrGone) {
		// A newer success may have freed the texts and been published since the
		// head was read; or another apply of this job may have got through.
		head, err := a.shown(ctx, j)
		if err != nil {
			return reply{}, err
		}
		if head != nil {
			return a.answer(ctx, head, true)
		}
	}
	if err != nil {
		return reply{}, err
	}
	at, err := a.table.Publish(ctx, j.Target, j.ID, j.Version(), rows)
	if err != nil {
		return reply{}, err
	}
	return a.answer(ctx, &job.Head{JobID: j.ID, Count: len(rows), AppliedAt: at}, false)
}

// success reads the path's job and refuses one that has no result.
func (a *Apply) success(ctx context.Context, r *request) (*job.Job, error) {
	ctx, cancel := context.WithTimeout(ctx, a.redis)
	defer cancel()
	j, err := readJob(ctx, a.store, r)
	if err != nil {
		return nil, err
	}
	if j.Status != job.Success {
		return nil, refusalOf(j.Status)
	}
	return j, nil
}

// shown compares the head with the job: the head when it shows this job, nil when
// it may come to, an error when it cannot any more.
func (a *Apply) shown(ctx context.Context, j *job.Job) (*job.Head, error) {
	head, err := a.table.Head(ctx, j.Target)
	switch {
	case errors.Is(err, job.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case head.JobID < j.ID: // an older one, or an erase of older ones
		return nil, nil
	case head.Tombstone():
		return nil, fmt.Errorf("apply: the target was erased: %w", job.ErrGone)
	case head.JobID > j.ID:
		return nil, job.ErrSuperseded
	}
	return head, nil
}

func (a *Apply) results(ctx context.Context, j *job.Job) ([]job.Rewritten, error) {
	ctx, cancel := context.WithTimeout(ctx, a.redis)
	defer cancel()
	_, rows, err := a.store.Results(ctx, j.ID)
	return rows, err
}

// answer notes in Redis since when the head shows the job, so that job and
// comments tell the same time, and says that it is published. When Redis does
// not answer, the texts are published and the note is missing: the caller gets
// 503, whose outcome is unknown by contract, and a repeat writes the note. Any
// other refusal of the note (the job has expired meanwhile) changes nothing.
func (a *Apply) answer(ctx context.Context, head *job.Head, already bool) (reply, error) {
	redis, cancel := context.WithTimeout(ctx, a.redis)
	defer cancel()
	if err := a.store.Applied(redis, head.JobID, head.AppliedAt); err != nil {
		if problemOf(err).Code == codeUnavailable {
			return reply{}, err
		}
		a.log.LogAttrs(ctx, slog.LevelWarn, "published, and the job would not take note of it",
			slog.String("jobId", string(head.JobID)), slog.String("error", err.Error()))
	}
	return reply{status: http.StatusOK, body: appliedView{JobID: head.JobID, Applied: head.Count, AlreadyApplied: already}}, nil
}
