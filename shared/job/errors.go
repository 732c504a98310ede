package job

import (
	"errors"
	"fmt"
)

// The reasons a move is refused. Each refusal of a script has its own, so that a
// fence that fires is never reported as something else. A refused move has
// written nothing, unless the sentinel says otherwise.
var (
	// ErrNotFound: no such job, target or published version for this caller.
	ErrNotFound = errors.New("job: not found")
	// ErrBusy: begin found another attempt with a live lease.
	ErrBusy = errors.New("job: another attempt holds the lease")
	// ErrExhausted: begin found every attempt used.
	ErrExhausted = errors.New("job: all attempts used")
	// ErrOverdue: the deadline has passed by Redis's clock. fail answers it after
	// it has written FAILED(DEADLINE_EXCEEDED); every other move wrote nothing.
	ErrOverdue = errors.New("job: deadline exceeded")
	// ErrClaimLost: the target's claim does not name this job.
	ErrClaimLost = errors.New("job: claim lost")
	// ErrStale: the attempt's token is not the current one.
	ErrStale = errors.New("job: attempt replaced")
	// ErrBegun: fail with start's guard found that an attempt has begun.
	ErrBegun = errors.New("job: attempt already begun")
	// ErrIncomplete: finish found fewer results than comments.
	ErrIncomplete = errors.New("job: results missing")
	// ErrOutOfRange: record was given an index outside 0..total-1.
	ErrOutOfRange = errors.New("job: result index out of range")
	// ErrSchema: the job was written by a version of Sunhwa this one cannot read.
	ErrSchema = errors.New("job: unknown schema")
	// ErrGone: the texts are no longer kept (a newer success, an hour after
	// apply, or an erase).
	ErrGone = errors.New("job: texts gone")
	// ErrSuperseded: a newer job of the target is published.
	ErrSuperseded = errors.New("job: superseded by a newer job")
	// ErrUnavailable: a store could not be asked or did not answer in time. The
	// outcome is unknown: the move may still take effect, a repeat is safe.
	ErrUnavailable = errors.New("job: store unavailable")
	// ErrRefused: the worker's invocation was definitely refused and will not run.
	ErrRefused = errors.New("job: dispatch refused")
	// ErrLLM: the model gave no usable answer and asking again would not help, or
	// every retry is used. The job becomes FAILED(LLM_FAILED).
	ErrLLM = errors.New("job: language model failed")
	// ErrUnknownPrompt: the job names a prompt version this worker does not hold.
	// The job becomes FAILED(INTERNAL).
	ErrUnknownPrompt = errors.New("job: unknown prompt version")
	// ErrCursor: a page's cursor is malformed.
	ErrCursor = errors.New("job: malformed cursor")
)

// LLMError is ErrLLM with what may be told of it.
type LLMError struct {
	Detail string // status, code and type, at most 200 bytes; never the vendor's text
}

func (e *LLMError) Error() string { return ErrLLM.Error() + ": " + e.Detail }

// Is makes every LLMError an ErrLLM.
func (e *LLMError) Is(target error) bool { return target == ErrLLM }

// HeldError is acquire's answer when another job holds the claim.
type HeldError struct {
	Holder ID // the job that holds it
}

func (e *HeldError) Error() string { return "job: target held by " + string(e.Holder) }

// StaleIDError is acquire's answer when the new id does not order after the
// target's newest one. Mint again with time max(now, Newest.Time()+1ms).
type StaleIDError struct {
	Newest ID // the newest id acquired for the target
}

func (e *StaleIDError) Error() string { return "job: id not after " + string(e.Newest) }

// StateError is the answer of a move that needs another state than the job has.
type StateError struct {
	Status Status
	Code   Code // set when Status is Failed
}

func (e *StateError) Error() string {
	if e.Code != "" {
		return fmt.Sprintf("job: is %s(%s)", e.Status, e.Code)
	}
	return fmt.Sprintf("job: is %s", e.Status)
}

// ChangedError is erase's answer when the target's newest job is not the one
// that was read. Read again and repeat.
type ChangedError struct {
	Newest ID // empty when there is none any more
}

func (e *ChangedError) Error() string { return "job: newest job is now " + string(e.Newest) }
