package explore

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"sunhwa/shared/jobstore"
)

// Replayer runs sampled orders on a real server beside the embedded one and
// demands the same answers and the same keys.
//
// Time is the order's, not the server's: before each call every key gets the TTL
// that the order says, in the same MULTI/EXEC as the script. On Valkey time
// stands still in there, so the two agree to the millisecond; Redis 7.0's clock
// moves by some ms inside, hence Tolerance.
type Replayer struct {
	sc        *Scenario
	lab       *lab
	plain     redis.UniversalClient
	stores    []*jobstore.Store
	tolerance int64 // ms
	before    snapshot
	compare   []string // keys whose TTL is read right after the call
	ttls      map[string]int64
}

// NewReplayer takes two clients of one server that nobody else uses: hooked is
// made part of the replay, plain is left alone. tolerance is in ms.
func NewReplayer(ctx context.Context, sc *Scenario, plain, hooked redis.UniversalClient, tolerance int64) (*Replayer, error) {
	l, err := newLab(sc, nil)
	if err != nil {
		return nil, err
	}
	p := &Replayer{sc: sc, lab: l, plain: plain, tolerance: tolerance, stores: sc.stores(hooked, nil)}
	texts := jobstore.Sources()
	for _, move := range jobstore.Moves() { // a script in MULTI/EXEC cannot be sent again
		if err := redis.NewScript(texts["lib"]+"\n"+texts[move]).Load(ctx, plain).Err(); err != nil {
			l.close()
			return nil, fmt.Errorf("explore: load %s: %w", move, err)
		}
	}
	hooked.AddHook(p)
	return p, nil
}

// Close ends the embedded server; the clients stay the caller's.
func (p *Replayer) Close() { p.lab.close() }

// DialHook leaves dialling as it is.
func (p *Replayer) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook leaves pipelines as they are.
func (p *Replayer) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook puts the order's time around every script.
func (p *Replayer) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "evalsha" {
			return next(ctx, cmd)
		}
		pipe := p.plain.TxPipeline()
		for k, e := range p.before {
			if e.ttl > 0 {
				pipe.PExpire(ctx, k, time.Duration(e.ttl)*time.Millisecond)
			}
		}
		_ = pipe.Process(ctx, cmd) // its own error is looked at below
		left := map[string]*redis.DurationCmd{}
		for _, k := range p.compare {
			left[k] = pipe.PTTL(ctx, k)
		}
		_, _ = pipe.Exec(ctx) // a refused script fails its own command only
		p.ttls = map[string]int64{}
		for k, c := range left {
			p.ttls[k] = c.Val().Milliseconds()
			if c.Val() < 0 { // -1: for ever, -2: not there; go-redis gives them in nanoseconds
				p.ttls[k] = int64(c.Val())
			}
		}
		return cmd.Err()
	}
}

// Sample walks one order chosen by seed and returns how many calls agreed. An
// error says where the servers differ, after the steps that led there.
func (p *Replayer) Sample(ctx context.Context, seed uint64) (int, error) {
	rng := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // an order to replay, not a secret
	w := p.sc.first()
	if err := p.install(ctx, w.keys); err != nil {
		return 0, err
	}
	var told []string
	calls := 0
	for {
		choices := p.sc.choices(w)
		if len(choices) == 0 {
			return calls, p.install(ctx, nil)
		}
		c := choices[rng.IntN(len(choices))]
		s, err := p.sc.take(ctx, w, c, p.lab.serve)
		if err != nil {
			return calls, err
		}
		told = append(told, tell(s))
		if err := p.real(ctx, s); err != nil {
			return calls, fmt.Errorf("scenario %s, seed %d:\n%s\n%w", p.sc.Name, seed, strings.Join(told, "\n"), err)
		}
		if !slices.Contains([]string{"crash", "clock", "scan", "failover"}, s.op.move) {
			calls++
		}
		w = s.after
	}
}

// install makes the real server hold exactly s of the scenario's keys.
func (p *Replayer) install(ctx context.Context, s snapshot) error {
	for k := range p.before {
		if err := p.plain.Del(ctx, k).Err(); err != nil {
			return fmt.Errorf("explore: clear: %w", err)
		}
	}
	p.before = s
	for k, e := range s {
		var err error
		switch e.kind {
		case "string":
			err = p.plain.Set(ctx, k, e.text, 0).Err()
		case "hash":
			err = p.plain.HSet(ctx, k, e.fields).Err()
		case "set":
			for m := range e.fields {
				err = p.plain.SAdd(ctx, k, m).Err()
			}
		}
		if err != nil {
			return fmt.Errorf("explore: install %s: %w", k, err)
		}
	}
	return nil
}

// real does on the real server what s did on the embedded one, and compares.
func (p *Replayer) real(ctx context.Context, s *stepped) error {
	p.before = s.before.keys
	switch s.op.move {
	case "crash", "scan":
		return nil
	case "clock", "failover": // what has expired there must go here
		for k := range s.before.keys {
			if s.after.keys[k] == nil {
				if err := p.plain.Del(ctx, k).Err(); err != nil {
					return fmt.Errorf("explore: expire %s: %w", k, err)
				}
			}
		}
		p.before = s.after.keys
		return nil
	}
	p.compare, p.ttls = nil, nil
	for k := range s.after.keys {
		p.compare = append(p.compare, k)
	}
	r := call(ctx, p.stores, s.op)
	if got, expected := p.even(r), p.even(s.reply); got != expected {
		return fmt.Errorf("the real server answered %q, the embedded one %q", got, expected)
	}
	p.before = s.after.keys
	return p.sameKeys(ctx, s)
}

// even is a reply's text, with the time left rounded to 100 ms where the server's
// clock moves inside a transaction.
func (p *Replayer) even(r reply) string {
	if r.begun == nil || p.tolerance == 0 {
		return r.text
	}
	left := r.begun.Remaining
	return strings.ReplaceAll(r.text, left.String(), left.Round(100*time.Millisecond).String())
}

func (p *Replayer) sameKeys(ctx context.Context, s *stepped) error {
	all := slices.Sorted(maps.Keys(s.before.keys))
	for k := range s.after.keys {
		if s.before.keys[k] == nil {
			all = append(all, k)
		}
	}
	for _, k := range all { // also those that the embedded server left alone
		is, err := p.fetch(ctx, k)
		if err != nil {
			return err
		}
		expected := s.after.keys[k]
		if expected == nil || is == nil {
			if expected != nil || is != nil {
				return fmt.Errorf("%s: there on one server and not on the other", k)
			}
			continue
		}
		for _, f := range []string{"leaseAt", "dispatchAt"} { // times of the server's own clock
			a, b := number(is.fields[f]), number(expected.fields[f])
			if a != b && abs(a-b) <= p.tolerance {
				is.fields[f] = expected.fields[f]
			}
		}
		if !is.alike(expected) {
			return fmt.Errorf("%s differs:\n real     %s %v\n embedded %s %v", k, is.text, is.fields, expected.text, expected.fields)
		}
	}
	for k, got := range p.ttls {
		expected := s.after.keys[k].ttl
		if expected == 0 {
			expected = -1 // for ever
		}
		if got < 0 && got != expected {
			return fmt.Errorf("%s lives %d on the real server and %d ms on the embedded one", k, got, expected)
		}
		if abs(got-expected) > p.tolerance {
			return fmt.Errorf("%s lives %d ms on the real server and %d on the embedded one", k, got, expected)
		}
	}
	return nil
}

func (p *Replayer) fetch(ctx context.Context, k string) (*entry, error) {
	kind, err := p.plain.Type(ctx, k).Result()
	if err != nil {
		return nil, fmt.Errorf("explore: type of %s: %w", k, err)
	}
	e := &entry{kind: kind}
	switch kind {
	case "none":
		return nil, nil
	case "string":
		e.text, err = p.plain.Get(ctx, k).Result()
	case "hash":
		e.fields, err = p.plain.HGetAll(ctx, k).Result()
	case "set":
		var members []string
		members, err = p.plain.SMembers(ctx, k).Result()
		e.fields = map[string]string{}
		for _, m := range members {
			e.fields[m] = ""
		}
	}
	if err != nil {
		return nil, fmt.Errorf("explore: read %s: %w", k, err)
	}
	return e, nil
}

func abs(n int64) int64 { return max(n, -n) }
