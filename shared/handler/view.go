package handler

import (
	"encoding/json"
	"time"

	"sunhwa/shared/job"
)

// timeLayout is RFC 3339 in UTC with milliseconds.
const timeLayout = "2006-01-02T15:04:05.000Z"

// timeOf returns t for JSON: null when there is nothing to say.
func timeOf(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := t.UTC().Format(timeLayout)
	return &s
}

// orNull returns s for JSON: null when it is empty.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

type jobView struct {
	JobID      job.ID       `json:"jobId"`
	TargetID   string       `json:"targetId"`
	Status     job.Status   `json:"status"`
	Progress   progressView `json:"progress"`
	CreatedAt  *string      `json:"createdAt"`
	DeadlineAt *string      `json:"deadlineAt"`
	FinishedAt *string      `json:"finishedAt"`
	Error      *errorView   `json:"error"`
	Usage      job.Usage    `json:"usage"`
	AppliedAt  *string      `json:"appliedAt"`
}

type progressView struct {
	Total int `json:"total"`
	Done  int `json:"done"`
}

type errorView struct {
	Code      job.Code `json:"code"`
	Message   string   `json:"message"`
	CommentID *string  `json:"commentId"`
}

func viewOf(j *job.Job) jobView {
	v := jobView{
		JobID: j.ID, TargetID: j.Target.ID, Status: j.Status,
		Progress:  progressView{Total: j.Total, Done: j.Done},
		CreatedAt: timeOf(j.CreatedAt), DeadlineAt: timeOf(j.DeadlineAt), FinishedAt: timeOf(j.FinishedAt),
		Usage: j.Usage, AppliedAt: timeOf(j.AppliedAt),
	}
	if f := j.Failure; f != nil {
		message := f.Code.Message()
		if f.Detail != "" { // status, code and type of a vendor's error; never its text
			message += " (" + f.Detail + ")"
		}
		v.Error = &errorView{Code: f.Code, Message: message, CommentID: orNull(f.CommentID)}
	}
	return v
}

// jobReply answers with a job; Retry-After says when to ask again while it runs.
func jobReply(j *job.Job) reply {
	r := reply{status: 200, body: viewOf(j)}
	if j.Status == job.Running {
		r.headers = map[string]string{"Retry-After": pollSeconds}
	}
	return r
}

type startedView struct {
	JobID  job.ID     `json:"jobId"`
	Status job.Status `json:"status"`
	Reused bool       `json:"reused"`
}

type reusedView struct {
	startedView
	SameInput bool `json:"sameInput"`
}

type resultsView struct {
	JobID      job.ID            `json:"jobId"`
	Results    []json.RawMessage `json:"results"` // {id, before, after} each
	NextCursor *string           `json:"nextCursor"`
}

type appliedView struct {
	JobID          job.ID `json:"jobId"`
	Applied        int    `json:"applied"` // comments published
	AlreadyApplied bool   `json:"alreadyApplied"`
}

type publishedView struct {
	TargetID   string                 `json:"targetId"`
	JobID      job.ID                 `json:"jobId"`
	AppliedAt  *string                `json:"appliedAt"`
	Comments   []job.PublishedComment `json:"comments"`
	NextCursor *string                `json:"nextCursor"`
}
