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
	Applied(ctx context.Context, id job.ID) error
}

// publisher puts one job's whole result before readers, or nothing.
type publisher interface {
	// Head reads consistently; job.ErrNotFound when nothing was ever published.
	Head(ctx context.Context, t job.Target) (*job.Head, error)
	// Publish is nil also when this version is shown already; job.ErrSuperseded
	// when a newer job is, job.ErrGone when an erase refuses it.
	Publish(ctx context.Context, t job.Target, id job.ID, version string, rows []job.Rewritten) error
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
	if count, shown, err := a.shown(ctx, j); shown || err != nil {
		return a.answer(ctx, j.ID, count, true, err)
	}
	rows, err := a.results(ctx, j)
	if errors.Is(err, job.ErrGone) {
		// A newer success may have freed the texts and been published since the
		// head was read; or another apply of this job may have got through.
		if count, shown, err := a.shown(ctx, j); shown || err != nil {
			return a.answer(ctx, j.ID, count, true, err)
		}
	}
	if err != nil {
		return reply{}, err
	}
	err = a.table.Publish(ctx, j.Target, j.ID, j.Version(), rows)
	return a.answer(ctx, j.ID, len(rows), false, err)
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

// shown compares the head with the job: the count when this job is shown, an
// error when it cannot be any more.
func (a *Apply) shown(ctx context.Context, j *job.Job) (count int, shown bool, err error) {
	head, err := a.table.Head(ctx, j.Target)
	switch {
	case errors.Is(err, job.ErrNotFound):
		return 0, false, nil
	case err != nil:
		return 0, false, err
	case head.JobID < j.ID: // an older one, or an erase of older ones
		return 0, false, nil
	case head.Tombstone():
		return 0, false, fmt.Errorf("apply: the target was erased: %w", job.ErrGone)
	case head.JobID > j.ID:
		return 0, false, job.ErrSuperseded
	}
	return head.Count, true, nil
}

func (a *Apply) results(ctx context.Context, j *job.Job) ([]job.Rewritten, error) {
	ctx, cancel := context.WithTimeout(ctx, a.redis)
	defer cancel()
	_, rows, err := a.store.Results(ctx, j.ID)
	return rows, err
}

// answer notes in Redis that the job is published and says so. When Redis does
// not answer, the texts are published and the note is missing: the caller gets
// 503, whose outcome is unknown by contract, and a repeat writes the note. Any
// other refusal of the note (the job has expired meanwhile) changes nothing.
func (a *Apply) answer(ctx context.Context, id job.ID, count int, already bool, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	redis, cancel := context.WithTimeout(ctx, a.redis)
	defer cancel()
	if err := a.store.Applied(redis, id); err != nil {
		if problemOf(err).Code == codeUnavailable {
			return reply{}, err
		}
		a.log.LogAttrs(ctx, slog.LevelWarn, "published, and the job would not take note of it",
			slog.String("jobId", string(id)), slog.String("error", err.Error()))
	}
	return reply{status: http.StatusOK, body: appliedView{JobID: id, Applied: count, AlreadyApplied: already}}, nil
}
