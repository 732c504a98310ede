package history

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"sunhwa/shared/job"
)

// Op is one call as its caller saw it. Moments are nanoseconds since the history
// began; only their order matters.
type Op struct {
	Who    string     `json:"who"`
	Call   int64      `json:"call"`
	Return int64      `json:"return"`
	In     job.Call   `json:"in"`
	Out    job.Answer `json:"out"`
}

// History is every call on one target.
type History struct {
	Target string `json:"target"`
	Why    string `json:"why,omitempty"` // of a fixture: what it shows
	Ops    []Op   `json:"ops"`
}

// Load reads a history that Save, or a person, has written.
func Load(path string) (History, error) {
	f, err := os.Open(path) //nolint:gosec // the caller names the file to read
	if err != nil {
		return History{}, fmt.Errorf("history: %w", err)
	}
	defer f.Close()
	d := json.NewDecoder(f)
	d.DisallowUnknownFields() // a misspelt member would make a fixture say something else
	var h History
	if err := d.Decode(&h); err != nil {
		return History{}, fmt.Errorf("history: %s: %w", path, err)
	}
	return h, nil
}

// Save writes h so that Load reads it.
func (h History) Save(path string) error {
	b, err := json.MarshalIndent(h, "", "\t")
	if err != nil {
		return fmt.Errorf("history: encode: %w", err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	return nil
}

// ErrUndecided: the search did not end in time. It says nothing of the history.
var ErrUndecided = errors.New("history: no answer in time")

// Check looks for an order that explains h; nil when there is one. Otherwise
// *Violation, or ErrUndecided when limit is over first.
func Check(h History, limit time.Duration) error {
	slices.SortStableFunc(h.Ops, func(a, b Op) int { return cmp.Compare(a.Call, b.Call) })
	clients := map[string]int{}
	ops := make([]porcupine.Operation, len(h.Ops))
	for i, o := range h.Ops {
		if _, known := clients[o.Who]; !known {
			clients[o.Who] = len(clients)
		}
		ops[i] = porcupine.Operation{
			ClientId: clients[o.Who], Input: o.In, Output: o.Out, Call: o.Call, Return: o.Return, Metadata: i,
		}
		if o.Out.Reply == job.ReplyUnknown {
			// It may take effect at any time from its call on; after everything else
			// is the same as never.
			ops[i].Return = math.MaxInt64
		}
	}
	result, info := porcupine.CheckOperationsVerbose(model, ops, limit)
	switch result {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return ErrUndecided
	}
	v := &Violation{History: h, info: info}
	for _, partition := range info.PartialLinearizationsOperations() {
		for _, order := range partition {
			if len(order) > len(v.Order) {
				v.Order = v.Order[:0:0]
				for _, o := range order {
					v.Order = append(v.Order, o.Metadata.(int))
				}
			}
		}
	}
	return v
}

// model is job.Machine as porcupine wants it.
var model = porcupine.Model{
	Init: func() any { return job.Machine{} },
	Step: func(state, in, out any) (bool, any) {
		next, want := state.(job.Machine).Step(in.(job.Call))
		got := out.(job.Answer)
		return got.Reply == job.ReplyUnknown || got.Equal(want), next
	},
	Equal:             func(a, b any) bool { return a.(job.Machine).Equal(b.(job.Machine)) },
	DescribeOperation: func(in, out any) string { return call(in.(job.Call)) + ": " + answer(out.(job.Answer)) },
	DescribeState:     func(state any) string { return machine(state.(job.Machine)) },
}

// Violation is a history that no order explains.
type Violation struct {
	History History
	Order   []int // the longest order that fits, as indices of History.Ops

	info porcupine.LinearizationInfo
}

func (v *Violation) Error() string {
	return fmt.Sprintf("history: target %s: no order of its %d calls explains their answers", v.History.Target, len(v.History.Ops))
}

// Page writes porcupine's drawing of the violation, a page for a browser.
func (v *Violation) Page(w io.Writer) error {
	if err := porcupine.Visualize(model, v.info, w); err != nil {
		return fmt.Errorf("history: draw: %w", err)
	}
	return nil
}
