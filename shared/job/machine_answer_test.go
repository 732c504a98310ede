package job

import (
	"errors"
	"fmt"
	"testing"
)

func TestAnswerOf(t *testing.T) {
	cases := []struct {
		err  error
		want Answer
	}{
		{nil, Answer{Reply: ReplyOK}},
		{ErrNotFound, Answer{Reply: ReplyNotFound}},
		{fmt.Errorf("read: %w: %w", ErrUnavailable, errors.New("EOF")), Answer{Reply: ReplyUnknown}},
		{fmt.Errorf("record: %w", ErrStale), Answer{Reply: ReplyStale}},
		{&StateError{Status: Failed, Code: CodeCanceled}, Answer{Reply: ReplyState, Status: Failed, Code: CodeCanceled}},
		{fmt.Errorf("acquire: %w", &HeldError{Holder: "A"}), Answer{Reply: ReplyHeld, Other: "A"}},
		{&StaleIDError{Newest: "A"}, Answer{Reply: ReplyStaleID, Other: "A"}},
		{&ChangedError{}, Answer{Reply: ReplyChanged}},
	}
	for _, c := range cases {
		if got, ok := AnswerOf(c.err); !ok || !got.Equal(c.want) {
			t.Errorf("%v: got %+v, %t, want %+v", c.err, got, ok, c.want)
		}
	}
	for _, err := range []error{errors.New("a script's own fault"), ErrSchema, ErrCursor} {
		if got, ok := AnswerOf(err); ok {
			t.Errorf("%v: got %+v, want none", err, got)
		}
	}
}
