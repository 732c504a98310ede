package jobstore

import (
	"embed"
	"fmt"
	"maps"
	"strings"

	"github.com/redis/go-redis/v9"

	"sunhwa/shared/job"
)

//go:embed lua/*.lua
var files embed.FS

// Moves lists every script by name, in the order in which a job meets them.
func Moves() []string {
	return []string{
		"acquire", "begin", "record", "renew", "finish", "fail",
		"read", "results", "applied", "erase", "inspect",
	}
}

// Sources returns the text of every script by name, the shared part under "lib".
// The map is the caller's own: changing it changes nothing here.
func Sources() map[string]string {
	texts := map[string]string{}
	for _, name := range append(Moves(), "lib") {
		b, err := files.ReadFile("lua/" + name + ".lua")
		if err != nil {
			panic("jobstore: embedded script missing: " + name) // cannot happen in a binary that was built
		}
		texts[name] = string(b)
	}
	return texts
}

// compile puts the shared part before each move and hashes the whole.
func compile(changed map[string]string) map[string]*redis.Script {
	texts := Sources()
	maps.Copy(texts, changed)
	scripts := map[string]*redis.Script{}
	for _, name := range Moves() {
		scripts[name] = redis.NewScript(texts["lib"] + "\n" + texts[name])
	}
	return scripts
}

// code is the first element of every reply; lua/lib.lua holds the same table.
type code int64

const (
	codeOK code = iota
	codeNotFound
	codeState
	codeOverdue
	codeClaimLost
	codeStale
	codeBusy
	codeExhausted
	codeSchema
	codeOutOfRange
	codeIncomplete
	codeHeld
	codeStaleID
	codeBegun
	codeGone
	codeChanged
	codeForgotten
	codeEnded
	codeRedispatch
	codeLeft
)

// codeNames are the names lua/lib.lua gives the codes, by value.
var codeNames = strings.Fields(`OK NOT_FOUND STATE OVERDUE CLAIM_LOST STALE BUSY EXHAUSTED SCHEMA OUT_OF_RANGE
	INCOMPLETE HELD STALE_ID BEGUN GONE CHANGED FORGOTTEN ENDED REDISPATCH LEFT`)

// refusal turns the code of a move that was refused into its sentinel. OK gives
// nil, and so do inspect's verdicts to inspect. A code that is unknown, or that
// this move has no use for, is an error.
func (r reply) refusal(move string) error {
	switch r.code() {
	case codeOK:
		return nil
	case codeForgotten, codeEnded, codeRedispatch, codeLeft:
		if move == "inspect" {
			return nil
		}
	case codeNotFound:
		return job.ErrNotFound
	case codeState:
		return &job.StateError{Status: job.Status(r.text(1)), Code: job.Code(r.text(2))}
	case codeOverdue:
		return job.ErrOverdue
	case codeClaimLost:
		return job.ErrClaimLost
	case codeStale:
		return job.ErrStale
	case codeBusy:
		return job.ErrBusy
	case codeExhausted:
		return job.ErrExhausted
	case codeSchema:
		return fmt.Errorf("%w: %.20q", job.ErrSchema, r.text(1))
	case codeOutOfRange:
		return job.ErrOutOfRange
	case codeIncomplete:
		return job.ErrIncomplete
	case codeHeld, codeStaleID:
		id, err := storedID(r.text(1))
		if err != nil {
			return err
		}
		if r.code() == codeHeld {
			return &job.HeldError{Holder: id}
		}
		return &job.StaleIDError{Newest: id}
	case codeBegun:
		return job.ErrBegun
	case codeGone:
		return job.ErrGone
	case codeChanged:
		return &job.ChangedError{Newest: job.ID(r.text(1))}
	}
	return fmt.Errorf("jobstore: %s answers the unknown code %d", move, r.code())
}
