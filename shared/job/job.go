package job

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"time"
)

// Comment is one text to rewrite. Its ID is the caller's and unique inside its
// request.
type Comment struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// InputDigest returns a digest of all comments in order (SHA-256, base64url). Two
// requests have the same digest exactly when they have the same ids and texts in
// the same order.
func InputDigest(cs []Comment) string {
	d := newDigest()
	for _, c := range cs {
		d.add(c.ID)
		d.add(c.Text)
	}
	return d.sum()
}

// Spec is what decides an answer besides the text: fixed in the job when it is
// acquired, so that a job that spans a deploy does not mix two.
type Spec struct {
	Model         string
	PromptVersion string // id of a prompt that package rewrite holds
	Options       string // sampling options, as rewrite.Options encodes them; opaque here
}

// MemoKey returns the key under which an answer to text under s is remembered:
// SHA-256 over every part of s and the text, base64url.
func (s Spec) MemoKey(text string) string {
	d := newDigest()
	d.add(s.Model)
	d.add(s.PromptVersion)
	d.add(s.Options)
	d.add(text)
	return d.sum()
}

// Usage counts what a job has cost so far. Tokens are those that answers
// reported, discarded answers included; Calls counts every request sent.
type Usage struct {
	PromptTokens     int64 `json:"promptTokens"`
	CompletionTokens int64 `json:"completionTokens"`
	TotalTokens      int64 `json:"totalTokens"`
	Calls            int64 `json:"calls"`
	MemoHits         int64 `json:"memoHits"`
}

// Plus returns the sum of u and v.
func (u Usage) Plus(v Usage) Usage {
	return Usage{
		PromptTokens:     u.PromptTokens + v.PromptTokens,
		CompletionTokens: u.CompletionTokens + v.CompletionTokens,
		TotalTokens:      u.TotalTokens + v.TotalTokens,
		Calls:            u.Calls + v.Calls,
		MemoHits:         u.MemoHits + v.MemoHits,
	}
}

// Failure says why a job is FAILED.
type Failure struct {
	Code      Code
	Detail    string // status, code and type of a vendor's error; never its text; may be empty
	CommentID string // the comment that failed the job; may be empty
}

// Job is a job as Redis holds it. Times are displayed only; no decision uses them.
type Job struct {
	ID          ID
	Target      Target
	Status      Status
	Total       int // comments in the job
	Done        int // results recorded
	Attempt     int // attempts begun so far
	CreatedAt   time.Time
	DeadlineAt  time.Time
	FinishedAt  time.Time // zero while RUNNING
	AppliedAt   time.Time // zero until published
	Failure     *Failure  // set when FAILED
	Usage       Usage
	InputDigest string
	Fresh       bool
	Spec        Spec
	Token       string // of the current attempt; after SUCCESS, of the finish
}

// Ref returns the job's name together with its target.
func (j *Job) Ref() Ref { return Ref{ID: j.ID, Target: j.Target} }

// Version names the published set this job's SUCCESS makes: `<jobId>.<token>`.
func (j *Job) Version() string { return string(j.ID) + "." + j.Token }

// Rewritten is one comment before and after.
type Rewritten struct {
	ID     string `json:"id"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// Result is the answer to one comment of a job.
type Result struct {
	Index   int    // position of the comment in the input, 0..Total-1
	Text    string // the polite text, not blank
	MemoKey string // Spec.MemoKey of the comment's text
	Usage   Usage  // what this answer cost, its retries included
}

// Extra is usage of answers that gave no result. Seq numbers it inside its
// attempt from 1 upward; a sequence number at or below one already seen is not
// added again. The zero Extra adds nothing.
type Extra struct {
	Seq   int64
	Usage Usage
}

// Creation is everything acquire writes.
type Creation struct {
	Ref
	Comments  []Comment
	Digest    string // InputDigest(Comments)
	Fresh     bool
	Spec      Spec
	Deadline  time.Duration // from creation; at least 1 ms
	Retention time.Duration // how long the ended job is kept; at least 1 ms
	Lease     time.Duration // until the sweeper dispatches a job nobody began
	Missing   ID            // a holder whose job was seen to be missing; may be empty
}

// Attempt is one worker invocation's hold on a job: every write of a worker
// carries it.
type Attempt struct {
	Ref
	Token string        // never empty
	Lease time.Duration // how long the hold lasts from each write on
}

// Begun is what an attempt gets with its job.
type Begun struct {
	Comments  []Comment
	Recorded  map[int]string // results recorded so far, by comment index
	Usage     Usage
	Attempt   int           // this attempt's number, from 1
	Remaining time.Duration // until the deadline, by Redis's clock
	Fresh     bool
	Spec      Spec
	Kept      ID // the finished job whose texts are kept now; may be empty
}

// Progress is what record answers.
type Progress struct {
	Done  int // results recorded
	Usage Usage
}

// Verdict is the sweeper's decision on one job.
type Verdict struct {
	Kind VerdictKind
	Code Code // set when Kind is Ended
	// Age is how long the job has been running (ms precision); set for Left and
	// Redispatch.
	Age time.Duration
}

// VerdictKind names what inspect did.
type VerdictKind string

const (
	// Left: the job is in good hands, or was dispatched less than a lease ago.
	Left VerdictKind = "left"
	// Forgotten: the job was missing or terminal; it left the watch set.
	Forgotten VerdictKind = "forgotten"
	// Ended: the job is FAILED now, with Verdict.Code.
	Ended VerdictKind = "ended"
	// Redispatch: nobody holds the job; the caller must invoke a worker.
	Redispatch VerdictKind = "redispatch"
)

type digest struct{ buf []byte }

func newDigest() *digest { return &digest{} }

// add appends s with its length before it, so that no two lists of strings
// collide by where they are cut.
func (d *digest) add(s string) {
	d.buf = binary.AppendUvarint(d.buf, uint64(len(s)))
	d.buf = append(d.buf, s...)
}

func (d *digest) sum() string {
	h := sha256.Sum256(d.buf)
	return base64.RawURLEncoding.EncodeToString(h[:])
}
