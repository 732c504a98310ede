package handler

import (
	"context"
	"errors"
	"net/http"

	"github.com/aws/aws-lambda-go/events"

	"sunhwa/shared/job"
)

// apiCode is a problem's `code`: what a program may switch on.
type apiCode string

const (
	codeInvalid         apiCode = "INVALID_REQUEST"
	codeUnauthenticated apiCode = "UNAUTHENTICATED"
	codeNotFound        apiCode = "NOT_FOUND"
	codeJobRunning      apiCode = "JOB_RUNNING"
	codeJobFailed       apiCode = "JOB_FAILED"
	codeJobFinished     apiCode = "JOB_FINISHED"
	codeSuperseded      apiCode = "SUPERSEDED"
	codeGone            apiCode = "GONE"
	codeTooLarge        apiCode = "TOO_LARGE"
	codeMediaType       apiCode = "UNSUPPORTED_MEDIA_TYPE"
	codeUnavailable     apiCode = "UNAVAILABLE"
	codeDispatchFailed  apiCode = "DISPATCH_FAILED"
	codeInternal        apiCode = "INTERNAL"
)

var statusOf = map[apiCode]int{
	codeInvalid:         http.StatusBadRequest,
	codeUnauthenticated: http.StatusUnauthorized,
	codeNotFound:        http.StatusNotFound,
	codeJobRunning:      http.StatusConflict,
	codeJobFailed:       http.StatusConflict,
	codeJobFinished:     http.StatusConflict,
	codeSuperseded:      http.StatusConflict,
	codeGone:            http.StatusGone,
	codeTooLarge:        http.StatusRequestEntityTooLarge,
	codeMediaType:       http.StatusUnsupportedMediaType,
	codeUnavailable:     http.StatusServiceUnavailable,
	codeDispatchFailed:  http.StatusServiceUnavailable,
	codeInternal:        http.StatusInternalServerError,
}

// detailOf is what a problem says when the place that raised it has nothing more
// exact. The details of a 5xx are here and nowhere else, so that none of them
// tells anything internal.
var detailOf = map[apiCode]string{
	codeInvalid:        "The request is not valid; `errors` names each fault.",
	codeNotFound:       "There is no such thing for this caller.",
	codeJobRunning:     "The job is still running.",
	codeJobFailed:      "The job failed; it has no results.",
	codeJobFinished:    "The job has ended already.",
	codeSuperseded:     "A newer job of this target is published.",
	codeGone:           "The texts are no longer kept.",
	codeUnavailable:    "The service could not finish this call; whether it took effect is not known. Repeating it is safe.",
	codeDispatchFailed: "The job could not be handed to a worker and has failed; the target is free. Start again.",
	codeInternal:       "Something went wrong inside the service.",
}

// refusal is an error that already knows its code: a fault of the request, or a
// conflict that only the handler can name. It is also the wrap that gives a
// domain error another code than the table would.
type refusal struct {
	code      apiCode
	detail    string // may be empty; never used with a 5xx
	jobStatus job.Status
	fields    []fieldError
	cause     error // for the log; may be nil
}

func (r *refusal) Error() string {
	if r.cause != nil {
		return string(r.code) + ": " + r.cause.Error()
	}
	return string(r.code)
}

func (r *refusal) Unwrap() error { return r.cause }

// fieldError names one fault of a request. Pointer is an RFC 6901 JSON Pointer
// as a URI fragment.
type fieldError struct {
	Pointer string `json:"pointer"`
	Detail  string `json:"detail"`
}

// problem is an RFC 9457 problem document.
type problem struct {
	Type      string       `json:"type"`
	Title     string       `json:"title"`
	Status    int          `json:"status"`
	Detail    string       `json:"detail"`
	Code      apiCode      `json:"code"`
	JobStatus job.Status   `json:"jobStatus,omitempty"`
	Errors    []fieldError `json:"errors,omitempty"`
}

// problemOf is the only table from errors to HTTP. Everything it does not know
// is INTERNAL.
func problemOf(err error) problem {
	if r := (*refusal)(nil); errors.As(err, &r) {
		return r.problem()
	}
	if s := (*job.StateError)(nil); errors.As(err, &s) {
		return refusalOf(s.Status).problem()
	}
	for _, row := range []struct {
		is   error
		code apiCode
	}{
		// A store that did not answer comes first: with an unknown outcome no
		// other statement about the job is safe.
		{job.ErrUnavailable, codeUnavailable},
		{context.DeadlineExceeded, codeUnavailable},
		{context.Canceled, codeUnavailable},
		{job.ErrNotFound, codeNotFound},
		{job.ErrGone, codeGone},
		{job.ErrSuperseded, codeSuperseded},
		{job.ErrRefused, codeDispatchFailed},
	} {
		if errors.Is(err, row.is) {
			return (&refusal{code: row.code}).problem()
		}
	}
	if errors.Is(err, job.ErrCursor) {
		return badCursor().problem()
	}
	if errors.Is(err, job.ErrOverdue) {
		return (&refusal{code: codeJobFinished, jobStatus: job.Failed}).problem()
	}
	return (&refusal{code: codeInternal}).problem()
}

// refusalOf says that a job's state does not allow the call.
func refusalOf(s job.Status) *refusal {
	switch s {
	case job.Running:
		return &refusal{code: codeJobRunning, jobStatus: s}
	case job.Failed:
		return &refusal{code: codeJobFailed, jobStatus: s}
	default:
		return &refusal{code: codeJobFinished, jobStatus: s}
	}
}

func (r *refusal) problem() problem {
	status := statusOf[r.code]
	detail := r.detail
	if detail == "" || status >= http.StatusInternalServerError {
		detail = detailOf[r.code]
	}
	return problem{
		Type: "about:blank", Title: title(status), Status: status, Detail: detail,
		Code: r.code, JobStatus: r.jobStatus, Errors: r.fields,
	}
}

// title is the status's phrase, as RFC 9457 section 4.2.1 asks of about:blank;
// Go still has the phrase that RFC 9110 replaced for 413.
func title(status int) string {
	if status == http.StatusRequestEntityTooLarge {
		return "Content Too Large"
	}
	return http.StatusText(status)
}

func (p problem) response() events.APIGatewayV2HTTPResponse {
	headers := baseHeaders()
	headers["Content-Type"] = mediaProblem
	switch {
	case p.Status == http.StatusServiceUnavailable:
		headers["Retry-After"] = retrySeconds
	case p.Code == codeJobRunning:
		headers["Retry-After"] = pollSeconds
	case p.Status == http.StatusUnauthorized:
		// RFC 9110 section 15.5.2: a 401 carries a challenge.
		headers["WWW-Authenticate"] = "Bearer"
	}
	body, err := encode(p)
	if err != nil { // strings and integers only: cannot happen
		body = []byte(`{"type":"about:blank","title":"Internal Server Error","status":500,"detail":"","code":"INTERNAL"}`)
		p.Status = http.StatusInternalServerError
	}
	return events.APIGatewayV2HTTPResponse{StatusCode: p.Status, Headers: headers, Body: string(body)}
}
