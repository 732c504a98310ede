package handler

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"sunhwa/shared/job"
)

// jobs is what status needs of the job store.
type jobs interface {
	Read(ctx context.Context, id job.ID) (*job.Job, error)
	Newest(ctx context.Context, t job.Target) (job.ID, error)
	Results(ctx context.Context, id job.ID) (*job.Job, []job.Rewritten, error)
	Fail(ctx context.Context, r job.Ref, g job.Guard, token string, f job.Failure, e job.Extra) error
}

// reader reads one job and applies its deadline first.
type reader interface {
	Read(ctx context.Context, id job.ID) (*job.Job, error)
}

// StatusOptions configure Status.
type StatusOptions struct {
	TenantClaim string           // TENANT_CLAIM; empty: the one tenant `default`
	Now         func() time.Time // for the log; nil: time.Now
	Logger      *slog.Logger     // nil: slog.Default()
}

// Status answers what is asked about jobs: read, latest, results and cancel.
type Status struct {
	api
	store jobs
	redis time.Duration
	page  int // bytes of JSON
}

// NewStatus returns the handler of the function status.
func NewStatus(store jobs, o StatusOptions) *Status {
	s := &Status{store: store, redis: redisLimit, page: pageBytes}
	s.api = newAPI(o.TenantClaim, o.Logger, o.Now, map[string]endpoint{
		"GET /jobs/{jobId}":                   s.read,
		"GET /jobs/{jobId}/results":           s.results,
		"DELETE /jobs/{jobId}":                s.cancel,
		"GET /targets/{targetId}/jobs/latest": s.latest,
	})
	return s
}

// Handle answers one event within 4 s of Redis time; the error is always nil.
func (s *Status) Handle(ctx context.Context, event events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, s.redis)
	defer cancel()
	return s.handle(ctx, &event), nil
}

func (s *Status) read(ctx context.Context, r *request) (reply, error) {
	j, err := readJob(ctx, s.store, r)
	if err != nil {
		return reply{}, err
	}
	return jobReply(j), nil
}

func (s *Status) latest(ctx context.Context, r *request) (reply, error) {
	t, err := r.target()
	if err != nil {
		return reply{}, err
	}
	id, err := s.store.Newest(ctx, t)
	if err != nil {
		return reply{}, err
	}
	r.jobID = id
	j, err := readOwn(ctx, s.store, id, r.tenant)
	if err != nil {
		return reply{}, err
	}
	return jobReply(j), nil
}

// results answers a page of a SUCCESS job's texts. The store applies the deadline
// first, so an overdue job is told as FAILED and not as RUNNING.
func (s *Status) results(ctx context.Context, r *request) (reply, error) {
	id, err := r.job()
	if err != nil {
		return reply{}, err
	}
	j, rows, err := s.store.Results(ctx, id)
	if j != nil && j.Target.Tenant != r.tenant { // a refusal says that a job exists: also not to strangers
		return reply{}, job.ErrNotFound
	}
	if state := (*job.StateError)(nil); errors.As(err, &state) {
		return reply{}, refusalOf(state.Status)
	}
	if err != nil {
		return reply{}, err
	}
	from, err := decodeCursor(r.cursor())
	if err != nil || from > 0 && from >= len(rows) {
		return reply{}, badCursor()
	}
	page, next, err := resultsPage(rows, from, s.page)
	if err != nil {
		return reply{}, err
	}
	view := resultsView{JobID: id, Results: page}
	if next < len(rows) {
		view.NextCursor = orNull(encodeCursor(next))
	}
	return reply{status: http.StatusOK, body: view}, nil
}

// cancel ends a RUNNING job as FAILED(CANCELED) and answers the job, also when
// it had been canceled before. Any other end, the deadline's among them, is
// JOB_FINISHED.
func (s *Status) cancel(ctx context.Context, r *request) (reply, error) {
	j, err := readJob(ctx, s.store, r)
	if err != nil {
		return reply{}, err
	}
	if j.Status == job.Running {
		err := s.store.Fail(ctx, j.Ref(), job.GuardCancel, "", job.Failure{Code: job.CodeCanceled}, job.Extra{})
		state := (*job.StateError)(nil)
		if err != nil && !errors.Is(err, job.ErrOverdue) && !errors.As(err, &state) {
			return reply{}, err
		}
		// Whoever ended it, the job says how.
		if j, err = readOwn(ctx, s.store, j.ID, r.tenant); err != nil {
			return reply{}, err
		}
	}
	if j.Status == job.Failed && j.Failure != nil && j.Failure.Code == job.CodeCanceled {
		return jobReply(j), nil
	}
	return reply{}, &refusal{code: codeJobFinished, jobStatus: j.Status}
}

// readJob reads the job that the path names.
func readJob(ctx context.Context, store reader, r *request) (*job.Job, error) {
	id, err := r.job()
	if err != nil {
		return nil, err
	}
	return readOwn(ctx, store, id, r.tenant)
}

// readOwn reads a job of the tenant. Another tenant's job is job.ErrNotFound,
// exactly as one that does not exist.
func readOwn(ctx context.Context, store reader, id job.ID, tenant string) (*job.Job, error) {
	j, err := store.Read(ctx, id)
	if err != nil {
		return nil, err
	}
	if j.Target.Tenant != tenant {
		return nil, job.ErrNotFound
	}
	return j, nil
}
