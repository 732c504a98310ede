package jobstore

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"sunhwa/shared/job"
)

// reply is what a script answered: its code, then what the script's header lists.
// A server may answer anything; accessors never panic, and check tells.
type reply []any

// asReply checks the shape every script's answer has.
func asReply(v any) (reply, error) {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return nil, fmt.Errorf("jobstore: reply of type %T, want a list", v)
	}
	if _, ok := list[0].(int64); !ok {
		return nil, fmt.Errorf("jobstore: reply starts with %T, want a code", list[0])
	}
	return list, nil
}

func (r reply) code() code {
	n, _ := r[0].(int64)
	return code(n)
}

// want says whether the reply has n elements.
func (r reply) want(n int) error {
	if len(r) < n {
		return fmt.Errorf("jobstore: reply of %d elements, want %d", len(r), n)
	}
	return nil
}

func (r reply) text(i int) string {
	if i >= len(r) {
		return ""
	}
	s, _ := r[i].(string)
	return s
}

func (r reply) number(i int) int64 {
	if i >= len(r) {
		return 0
	}
	switch n := r[i].(type) {
	case int64:
		return n
	case string:
		return parse(n)
	}
	return 0
}

func (r reply) list(i int) reply {
	if i >= len(r) {
		return nil
	}
	list, _ := r[i].([]any)
	return list
}

// pairs reads a flat hash (field, value, field, value, …).
func (r reply) pairs(i int) map[string]string {
	flat := r.list(i)
	m := make(map[string]string, len(flat)/2)
	for n := 0; n+1 < len(flat); n += 2 {
		m[flat.text(n)] = flat.text(n + 1)
	}
	return m
}

func (r reply) usage(i int) job.Usage {
	u := r.list(i)
	return job.Usage{
		PromptTokens: u.number(0), CompletionTokens: u.number(1), TotalTokens: u.number(2),
		Calls: u.number(3), MemoHits: u.number(4),
	}
}

// storedID reads a job id that Redis holds. What is none is an error, so that no
// key is ever built from it.
func storedID(s string) (job.ID, error) {
	id, err := job.ParseID(s)
	if err != nil || string(id) != s {
		return "", fmt.Errorf("jobstore: %.30q stands where a job id should", s)
	}
	return id, nil
}

// parse reads a decimal; what is none counts as 0, as a missing field does.
func parse(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// moment reads epoch milliseconds; 0 and what is no number are the zero time.
func moment(s string) time.Time {
	if ms := parse(s); ms != 0 {
		return time.UnixMilli(ms).UTC()
	}
	return time.Time{}
}

// decodeJob reads the job hash. done counts the results of a RUNNING job, whose
// own field is written only at its end.
func decodeJob(id job.ID, f map[string]string, done int64) (*job.Job, error) {
	tenant, err := base64.RawURLEncoding.DecodeString(f["tenant"])
	if err != nil {
		return nil, fmt.Errorf("jobstore: job %s: tenant: %w", id, err)
	}
	j := &job.Job{
		ID: id, Target: job.Target{Tenant: string(tenant), ID: f["target"]},
		Status: job.Status(f["status"]), Total: int(parse(f["total"])), Done: int(parse(f["done"])),
		Attempt:   int(parse(f["attempt"])),
		CreatedAt: moment(f["createdAt"]), DeadlineAt: moment(f["deadlineAt"]),
		FinishedAt: moment(f["finishedAt"]), AppliedAt: moment(f["appliedAt"]),
		Usage: job.Usage{
			PromptTokens: parse(f["promptTokens"]), CompletionTokens: parse(f["completionTokens"]),
			TotalTokens: parse(f["totalTokens"]), Calls: parse(f["calls"]), MemoHits: parse(f["memoHits"]),
		},
		InputDigest: f["inputDigest"], Fresh: f["fresh"] == "1",
		Spec:  job.Spec{Model: f["model"], PromptVersion: f["promptVersion"], Options: f["options"]},
		Token: f["token"],
	}
	switch j.Status {
	case job.Running:
		j.Done = int(done)
	case job.Failed:
		j.Failure = &job.Failure{Code: job.Code(f["error"]), Detail: f["errorDetail"], CommentID: f["errorComment"]}
	case job.Success:
	default:
		return nil, fmt.Errorf("jobstore: job %s: unknown status %.20q", id, j.Status)
	}
	return j, nil
}

// result is what out and memo hold for one comment.
type result struct {
	Text string `json:"text"`
}

func encodeResult(text string) (string, error) {
	b, err := json.Marshal(result{Text: text})
	return string(b), err
}

func decodeResult(s string) (string, error) {
	var r result
	if err := json.Unmarshal([]byte(s), &r); err != nil {
		return "", fmt.Errorf("jobstore: stored result: %w", shape(err))
	}
	return r.Text, nil
}

func decodeComments(s string) ([]job.Comment, error) {
	var cs []job.Comment
	if err := json.Unmarshal([]byte(s), &cs); err != nil {
		return nil, fmt.Errorf("jobstore: stored comments: %w", shape(err))
	}
	return cs, nil
}

// shape strips a JSON error to its kind: the error's own text may quote a comment.
func shape(err error) error { return fmt.Errorf("malformed JSON (%T)", err) }

// decodeResults reads a flat out hash: comment index to text.
func decodeResults(pairs map[string]string, total int) (map[int]string, error) {
	texts := make(map[int]string, len(pairs))
	for field, value := range pairs {
		i, err := strconv.Atoi(field)
		if err != nil || i < 0 || i >= total {
			return nil, fmt.Errorf("jobstore: stored result at %.20q, want 0..%d", field, total-1)
		}
		if texts[i], err = decodeResult(value); err != nil {
			return nil, err
		}
	}
	return texts, nil
}
