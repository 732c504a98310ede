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

const (
	// maxReacquires is how often start asks for the claim again after a holder
	// turned out to be ended or missing.
	maxReacquires = 3
	// maxMints bounds how often start mints again because its id did not order
	// after the target's newest; each time, somebody else has acquired meanwhile.
	maxMints = 5
	// endedPause outlasts the millisecond at the very deadline in which the
	// claim still names a job that has ended.
	endedPause = 20 * time.Millisecond
	// dispatchLimit bounds the invocation of the worker. When it passes, the
	// outcome is ambiguous and the job belongs to the worker or the sweeper.
	dispatchLimit = 5 * time.Second
)

// claimer is what start needs of the job store.
type claimer interface {
	Acquire(ctx context.Context, c job.Creation) error
	Read(ctx context.Context, id job.ID) (*job.Job, error)
	Fail(ctx context.Context, r job.Ref, g job.Guard, token string, f job.Failure, e job.Extra) error
}

// invoker hands a job to a worker: nil when it was accepted, job.ErrRefused when
// it definitely will not run, any other error when nobody knows.
type invoker interface {
	Dispatch(ctx context.Context, r job.Ref) error
}

// StartOptions configure Start. All limits and durations must be positive.
type StartOptions struct {
	TenantClaim     string // TENANT_CLAIM; empty: the one tenant `default`
	MaxComments     int
	MaxCommentChars int // code points
	MaxBodyBytes    int // after base64
	Spec            job.Spec
	Deadline        time.Duration
	Retention       time.Duration
	Lease           time.Duration
	Now             func() time.Time // for ids and the log; nil: time.Now
	Logger          *slog.Logger     // nil: slog.Default()
}

// Start answers POST /targets/{targetId}/jobs: it validates, acquires the
// target's claim and hands the job to a worker.
type Start struct {
	api
	store      claimer
	dispatcher invoker
	o          StartOptions
	redis      time.Duration
	dispatch   time.Duration
}

// NewStart returns the handler of the function start.
func NewStart(store claimer, dispatcher invoker, o StartOptions) *Start {
	s := &Start{store: store, dispatcher: dispatcher, o: o, redis: redisLimit, dispatch: dispatchLimit}
	s.api = newAPI(o.TenantClaim, o.Logger, o.Now, map[string]endpoint{
		"POST /targets/{targetId}/jobs": s.start,
	})
	return s
}

// Handle answers one event; the error is always nil. It spends at most 4 s on
// the claim, 5 s on the invocation and 4 s on taking a refused job back.
func (s *Start) Handle(ctx context.Context, event events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	return s.handle(ctx, &event), nil
}

func (s *Start) start(ctx context.Context, r *request) (reply, error) {
	target, input, err := s.parse(r)
	if err != nil {
		return reply{}, err
	}
	creation := job.Creation{
		Ref:      job.Ref{Target: target},
		Comments: input.comments, Digest: job.InputDigest(input.comments), Fresh: input.fresh,
		Spec: s.o.Spec, Deadline: s.o.Deadline, Retention: s.o.Retention, Lease: s.o.Lease,
	}
	holder, err := s.claim(ctx, &creation)
	if err != nil {
		return reply{}, err
	}
	if holder != nil {
		r.jobID = holder.ID
		return reply{
			status: http.StatusOK,
			body: reusedView{
				startedView: startedView{JobID: holder.ID, Status: holder.Status, Reused: true},
				SameInput:   holder.InputDigest == creation.Digest,
			},
			headers: startedHeaders(holder.ID),
		}, nil
	}
	r.jobID = creation.ID
	if err := s.handOver(ctx, creation.Ref); err != nil {
		return reply{}, err
	}
	return reply{
		status:  http.StatusAccepted,
		body:    startedView{JobID: creation.ID, Status: job.Running},
		headers: startedHeaders(creation.ID),
	}, nil
}

func startedHeaders(id job.ID) map[string]string {
	return map[string]string{"Location": "/jobs/" + string(id), "Retry-After": pollSeconds}
}

// parse names the faults of the path and of the body in one answer.
func (s *Start) parse(r *request) (job.Target, startInput, error) {
	data, err := r.body(s.o.MaxBodyBytes)
	bad := (*refusal)(nil)
	if errors.As(err, &bad) && bad.code != codeInvalid {
		return job.Target{}, startInput{}, err
	}
	var faults []fieldError
	target, targetErr := r.target()
	if at := (*refusal)(nil); errors.As(targetErr, &at) {
		faults = append(faults, at.fields...)
	}
	var input startInput
	more := false
	if bad != nil {
		faults = append(faults, bad.fields...)
	} else {
		var found []fieldError
		input, found, more = parseStart(data, inputLimits{comments: s.o.MaxComments, chars: s.o.MaxCommentChars})
		faults = append(faults, found...)
	}
	if len(faults) == 0 {
		return target, input, nil
	}
	refused := invalid(faults...)
	if more {
		refused.detail = fmt.Sprintf("The request is not valid; `errors` names its first %d faults.", maxFaults)
	}
	return job.Target{}, startInput{}, refused
}

// claim acquires the target for c, whose id it mints before Redis is asked, so
// that a repeat after a lost reply finds its own job. It returns nil when c was
// created and the holder when another job is running. job.ErrUnavailable when
// the claim kept moving, or Redis did not answer.
func (s *Start) claim(ctx context.Context, c *job.Creation) (*job.Job, error) {
	ctx, cancel := context.WithTimeout(ctx, s.redis)
	defer cancel()
	if err := s.mint(c, ""); err != nil {
		return nil, err
	}
	mints, reacquires := 1, 0
	for {
		err := s.store.Acquire(ctx, *c)
		var stale *job.StaleIDError
		var held *job.HeldError
		switch {
		case err == nil:
			return nil, nil
		case errors.As(err, &stale):
			if mints == maxMints {
				return nil, fmt.Errorf("start: %d ids in a row were stale: %w", mints, job.ErrUnavailable)
			}
			mints++
			if err := s.mint(c, stale.Newest); err != nil {
				return nil, err
			}
			continue
		case !errors.As(err, &held):
			return nil, err
		case held.Holder == c.ID: // an acquire of ours took effect and lost its reply
			return nil, nil
		}
		holder, err := s.store.Read(ctx, held.Holder)
		switch {
		case errors.Is(err, job.ErrNotFound):
			c.Missing = held.Holder
		case err != nil:
			return nil, err
		case !holder.Status.Terminal():
			return holder, nil
		default:
			c.Missing = ""
		}
		if reacquires == maxReacquires {
			return nil, fmt.Errorf("start: the claim's holder had ended or was missing %d times: %w", reacquires+1, job.ErrUnavailable)
		}
		reacquires++
		if c.Missing == "" {
			if err := pause(ctx, endedPause); err != nil {
				return nil, err
			}
		}
	}
}

// mint gives c an id of now, or of the first millisecond after newest when this
// host's clock lags behind it.
func (s *Start) mint(c *job.Creation, newest job.ID) error {
	at := s.now()
	if newest != "" {
		if after := newest.Time().Add(time.Millisecond); after.After(at) {
			at = after
		}
	}
	id, err := job.NewID(at, c.Target)
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	c.ID = id
	return nil
}

// handOver invokes a worker for the job. Only a definite refusal, with the job
// failed and the target free again, is an error (DISPATCH_FAILED); after an
// ambiguous answer the job stays and the sweeper sees to it.
func (s *Start) handOver(ctx context.Context, ref job.Ref) error {
	err := s.invoke(ctx, ref)
	if err == nil {
		return nil
	}
	if !errors.Is(err, job.ErrRefused) {
		s.log.LogAttrs(ctx, slog.LevelWarn, "dispatch is ambiguous; the sweeper sees to the job",
			slog.String("jobId", string(ref.ID)), slog.String("error", err.Error()))
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.redis)
	defer cancel()
	failErr := s.store.Fail(ctx, ref, job.GuardStart, "", job.Failure{Code: job.CodeDispatchFailed}, job.Extra{})
	if failErr == nil {
		return &refusal{code: codeDispatchFailed, cause: err}
	}
	s.log.LogAttrs(ctx, slog.LevelWarn, "dispatch was refused and the job could not be taken back",
		slog.String("jobId", string(ref.ID)), slog.String("error", err.Error()), slog.String("fail", failErr.Error()))
	return nil
}

func (s *Start) invoke(ctx context.Context, ref job.Ref) error {
	ctx, cancel := context.WithTimeout(ctx, s.dispatch)
	defer cancel()
	return s.dispatcher.Dispatch(ctx, ref)
}
