package job

import (
	"errors"
	"slices"
)

// Machine is the state machine of one target without any technology: what the
// scripts of package jobstore must do, written so that it can be read, and
// compared with what they did. Nothing in Sunhwa runs it; programs that check do.
//
// It is a value: Step leaves it as it was and returns the next one. The zero
// Machine is a target that nobody has asked for.
//
// There is no clock in it. That time passes is a call like any other (Lapse,
// Deadline, Fade, Vanish), made by nobody, and so is what only a failover does
// (LoseClaim). The memo and the watch set are left out: no answer depends on the
// one, and the other only says whom the sweeper asks for. So is the expiry of
// Last, which outlives its job.
type Machine struct {
	Claim ID     // `run`: the job that may write; empty when the target is free
	Last  ID     // the newest job acquired: every later one has a greater id
	Kept  ID     // the newest finished job: the only one with texts besides a RUNNING one
	Jobs  []Life // in the order in which they were acquired
}

// Life is one job in a Machine.
type Life struct {
	ID      ID
	Status  Status
	Code    Code // set when Status is Failed
	Attempt int  // attempts begun
	Token   string
	Live    bool     // the token's lease has not lapsed
	Rested  bool     // a lease has passed since it was last dispatched
	Overdue bool     // the deadline has passed; means nothing once terminal
	Done    int      // results recorded
	Texts   []string // the results by comment index, empty where there is none
	Gone    bool     // input and results are no longer kept
	Seq     int64    // of the Extra added last in this attempt
	Usage   Usage
	Applied bool
}

// Move names what is asked of a Machine.
type Move string

// What callers may ask. Each is a script of the same name, but MoveNewest, which
// reads Last. MoveLapse and those after it are what time and failovers do.
const (
	MoveAcquire Move = "acquire"
	MoveBegin   Move = "begin"
	MoveRecord  Move = "record"
	MoveRenew   Move = "renew"
	MoveFinish  Move = "finish"
	MoveFail    Move = "fail"
	MoveRead    Move = "read"
	MoveResults Move = "results"
	MoveApplied Move = "applied"
	MoveErase   Move = "erase"
	MoveInspect Move = "inspect"
	MoveNewest  Move = "newest"

	// MoveLapse: a lease's time passes without a renewal.
	MoveLapse Move = "lapse"
	// MoveDeadline: the deadline passes, and with it the claim and every lease.
	MoveDeadline Move = "deadline"
	// MoveFade: the hour after apply is over, longer than any deadline.
	MoveFade Move = "fade"
	// MoveVanish: the job's own keys are gone, by the end of its retention or lost.
	MoveVanish Move = "vanish"
	// MoveLoseClaim: a failover takes back the claim and nothing else.
	MoveLoseClaim Move = "lose claim"
)

// Call is one move with all it needs.
type Call struct {
	Move     Move     `json:"move"`
	ID       ID       `json:"id,omitempty"`       // of the job; for what time does, empty means every job
	Token    string   `json:"token,omitempty"`    // begin, record, renew, finish, fail
	Total    int      `json:"total,omitempty"`    // acquire: comments
	Other    ID       `json:"other,omitempty"`    // acquire: a holder seen missing; finish: what begin gave as kept; erase: the newest job as read
	Attempts int      `json:"attempts,omitempty"` // begin, inspect: how many are allowed
	Results  []Result `json:"results,omitempty"`  // record
	Extra    Extra    `json:"extra,omitzero"`     // record, finish, fail
	Guard    Guard    `json:"guard,omitempty"`    // fail
	Code     Code     `json:"code,omitempty"`     // fail
}

// Reply is the kind of an answer: the names that the scripts give their codes.
type Reply string

// The replies; each refusal is the sentinel of the same name in this package.
const (
	ReplyOK         Reply = "OK"
	ReplyNotFound   Reply = "NOT_FOUND"
	ReplyState      Reply = "STATE"
	ReplyOverdue    Reply = "OVERDUE"
	ReplyClaimLost  Reply = "CLAIM_LOST"
	ReplyStale      Reply = "STALE"
	ReplyBusy       Reply = "BUSY"
	ReplyExhausted  Reply = "EXHAUSTED"
	ReplyOutOfRange Reply = "OUT_OF_RANGE"
	ReplyIncomplete Reply = "INCOMPLETE"
	ReplyHeld       Reply = "HELD"
	ReplyStaleID    Reply = "STALE_ID"
	ReplyBegun      Reply = "BEGUN"
	ReplyGone       Reply = "GONE"
	ReplyChanged    Reply = "CHANGED"
	ReplyForgotten  Reply = "FORGOTTEN"
	ReplyEnded      Reply = "ENDED"
	ReplyRedispatch Reply = "REDISPATCH"
	ReplyLeft       Reply = "LEFT"

	// ReplyUnknown is what a caller has who got no reply. No Machine gives it: the
	// move may have taken effect, may do so later, or never.
	ReplyUnknown Reply = "UNKNOWN"
)

// Answer is all that a caller learns and that is not a time.
type Answer struct {
	Reply   Reply    `json:"reply"`
	Status  Status   `json:"status,omitempty"` // read, and with STATE
	Code    Code     `json:"code,omitempty"`   // with Failed, and with ENDED
	Other   ID       `json:"other,omitempty"`  // the holder, the newest job, or begin's kept
	Token   string   `json:"token,omitempty"`  // read
	Attempt int      `json:"attempt,omitempty"`
	Done    int      `json:"done,omitempty"`
	Total   int      `json:"total,omitempty"`
	Texts   []string `json:"texts,omitempty"` // begin: what is recorded; results
	Usage   Usage    `json:"usage,omitzero"`
	Applied bool     `json:"applied,omitempty"` // read
}

// Equal reports whether a and b tell a caller the same.
func (a Answer) Equal(b Answer) bool {
	return a.Reply == b.Reply && a.Status == b.Status && a.Code == b.Code && a.Other == b.Other &&
		a.Token == b.Token && a.Attempt == b.Attempt && a.Done == b.Done && a.Total == b.Total &&
		slices.Equal(a.Texts, b.Texts) && a.Usage == b.Usage && a.Applied == b.Applied
}

// Equal reports whether m and n will answer every sequence of calls alike.
func (m Machine) Equal(n Machine) bool {
	return m.Claim == n.Claim && m.Last == n.Last && m.Kept == n.Kept && slices.EqualFunc(m.Jobs, n.Jobs, Life.equal)
}

func (l Life) equal(o Life) bool {
	return l.ID == o.ID && l.Status == o.Status && l.Code == o.Code && l.Attempt == o.Attempt && l.Token == o.Token &&
		l.Live == o.Live && l.Rested == o.Rested && l.Overdue == o.Overdue && l.Done == o.Done &&
		slices.Equal(l.Texts, o.Texts) && l.Gone == o.Gone && l.Seq == o.Seq && l.Usage == o.Usage && l.Applied == o.Applied
}

// replies pairs every plain sentinel that a store answers with its name here.
var replies = []struct {
	err   error
	reply Reply
}{
	{ErrNotFound, ReplyNotFound}, {ErrOverdue, ReplyOverdue}, {ErrClaimLost, ReplyClaimLost}, {ErrStale, ReplyStale},
	{ErrBusy, ReplyBusy}, {ErrExhausted, ReplyExhausted}, {ErrOutOfRange, ReplyOutOfRange},
	{ErrIncomplete, ReplyIncomplete}, {ErrBegun, ReplyBegun}, {ErrGone, ReplyGone}, {ErrUnavailable, ReplyUnknown},
}

// AnswerOf returns a store's error as an Answer; nil is OK. It is false for an
// error that no move of the Machine gives.
func AnswerOf(err error) (Answer, bool) {
	var (
		state *StateError
		held  *HeldError
		stale *StaleIDError
		moved *ChangedError
	)
	switch {
	case err == nil:
		return Answer{Reply: ReplyOK}, true
	case errors.As(err, &state):
		return Answer{Reply: ReplyState, Status: state.Status, Code: state.Code}, true
	case errors.As(err, &held):
		return Answer{Reply: ReplyHeld, Other: held.Holder}, true
	case errors.As(err, &stale):
		return Answer{Reply: ReplyStaleID, Other: stale.Newest}, true
	case errors.As(err, &moved):
		return Answer{Reply: ReplyChanged, Other: moved.Newest}, true
	}
	for _, r := range replies {
		if errors.Is(err, r.err) {
			return Answer{Reply: r.reply}, true
		}
	}
	return Answer{}, false
}
