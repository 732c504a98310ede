package explore

import (
	"context"
	"math/big"
	"sync"
)

// choice is one step that a world allows.
type choice struct {
	actor int // -1: the clock
	op    op
	lost  bool // the call happens, its reply does not arrive
	crash bool // the actor stops for ever, no call happens
}

// repeatable are the moves whose lost reply matters: they write.
var repeatable = map[string]bool{
	"acquire": true, "begin": true, "record": true, "renew": true, "finish": true, "fail": true,
	"applied": true, "erase": true,
}

// choices lists every step w allows.
func (sc *Scenario) choices(w *world) []choice {
	var all []choice
	for i, p := range sc.actors {
		a := w.actors[i]
		if a.dead || a.at == done {
			continue
		}
		for _, o := range p.next(sc, w, a) {
			all = append(all, choice{actor: i, op: o})
			if w.losses > 0 && !a.owed && repeatable[o.move] {
				all = append(all, choice{actor: i, op: o, lost: true})
			}
		}
		if _, ok := p.(worker); ok && w.crashes > 0 && a.at != workBegin {
			all = append(all, choice{actor: i, crash: true})
		}
	}
	if w.tick < len(sc.Ticks) {
		all = append(all, choice{actor: -1, op: op{move: "clock", passes: sc.Ticks[w.tick].Milliseconds()}})
	}
	return all
}

// who names the actor of a choice.
func (sc *Scenario) who(c choice) string {
	if c.actor < 0 {
		return "clock"
	}
	return sc.actors[c.actor].name()
}

// take makes one step from w on the lab's server and returns it with the world
// after. serve runs the call; replays put a real server there.
func (sc *Scenario) take(ctx context.Context, w *world, c choice, serve server) (*stepped, error) {
	next := w.clone()
	s := &stepped{sc: sc, actor: sc.who(c), op: c.op, before: w, after: next}
	if c.crash {
		next.actors[c.actor].dead = true
		next.crashes--
		s.op = op{move: "crash"}
		return s, nil
	}
	out, err := serve(ctx, w, c.op)
	if err != nil {
		return nil, err
	}
	s.reply, next.keys, next.sum = out.reply, out.keys, out.sum
	if c.op.move == "clock" {
		next.tick++
		return s, nil
	}
	if c.op.move == "acquire" && w.keys[sc.names(c.op.ref.ID).Job] == nil && next.keys[sc.names(c.op.ref.ID).Job] != nil {
		next.born = append(next.born, c.op.ref.ID)
	}
	a := &next.actors[c.actor]
	if a.owed {
		s.repeat, s.lost, s.untouched = true, a.lost, a.lostAt == w.sum
		a.owed, a.lost, a.lostAt = false, "", digest{}
	} else if c.op.move == "begin" {
		next.take(c.op.ref.ID)
	}
	if c.lost {
		next.losses--
		a.owed, a.lost, a.lostAt = true, s.reply.text, next.sum
		if c.op.ref.ID != "" {
			a.id = c.op.ref.ID
		}
		return s, nil
	}
	sc.actors[c.actor].after(sc, next, a, c.op, s.reply)
	return s, nil
}

// node is a world seen, as little of it as the report needs.
type node struct {
	parent int32
	choice int16 // its place among the choices of the parent
	next   []int32
}

// Report is what one walk found.
type Report struct {
	Scenario  *Scenario
	Worlds    int      // distinct
	Steps     int      // taken and checked
	Calls     int      // different calls on different keys, run on the server
	Orders    *big.Int // complete orders: from the first world to one where nobody can move
	Violation *Violation
}

// Walk takes every step from every world of sc, breadth first, with hands labs
// side by side. It stops at the first violation. scripts replaces script texts
// (nil: as shipped).
func Walk(ctx context.Context, sc *Scenario, scripts map[string]string, hands int) (*Report, error) {
	labs := make([]*lab, hands)
	for i := range labs {
		l, err := newLab(sc, scripts)
		if err != nil {
			return nil, err
		}
		defer l.close()
		labs[i] = l
	}
	w := &walk{sc: sc, seen: map[digest]int32{}, known: map[asked]*outcome{}, nodes: []node{{parent: -1}}}
	first := sc.first()
	w.seen[first.digest()] = 0
	frontier := []*place{{0, first}}
	for len(frontier) > 0 && w.broken == nil && w.err == nil {
		frontier = w.level(ctx, labs, frontier)
	}
	if w.err != nil {
		return nil, w.err
	}
	rep := &Report{Scenario: sc, Worlds: len(w.nodes), Steps: w.steps, Calls: w.calls}
	if w.broken != nil {
		var err error
		rep.Violation, err = w.explain(ctx, labs[0])
		return rep, err
	}
	rep.Orders = w.orders()
	return rep, nil
}

type place struct {
	at int32
	w  *world
}

type walk struct {
	sc     *Scenario
	mu     sync.Mutex
	seen   map[digest]int32
	nodes  []node
	steps  int
	known  map[asked]*outcome
	calls  int
	broken *finding
	err    error
}

type finding struct {
	at        int32
	choice    int // its place among the world's choices
	atEnd     bool
	invariant *Invariant
	wrong     string
}

// level takes every step from every world of the frontier and returns the new
// worlds it led to.
func (k *walk) level(ctx context.Context, labs []*lab, frontier []*place) []*place {
	var next []*place
	var wg sync.WaitGroup
	work := make(chan *place)
	for _, l := range labs {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for p := range work {
				found := k.from(ctx, l, p)
				k.mu.Lock()
				next = append(next, found...)
				k.mu.Unlock()
			}
		}()
	}
	for _, p := range frontier {
		if k.over() {
			break
		}
		work <- p
	}
	close(work)
	wg.Wait()
	return next
}

func (k *walk) over() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.broken != nil || k.err != nil
}

func (k *walk) from(ctx context.Context, l *lab, p *place) []*place {
	var found []*place
	choices := k.sc.choices(p.w)
	if len(choices) == 0 {
		if wrong := k.sc.atEnd(p.w); wrong != "" {
			k.report(&finding{at: p.at, atEnd: true, invariant: &ending, wrong: wrong})
		}
	}
	for i, c := range choices {
		s, err := k.sc.take(ctx, p.w, c, k.cached(l))
		if err != nil {
			k.mu.Lock()
			k.err = err
			k.mu.Unlock()
			return nil
		}
		if !c.crash {
			if inv, wrong := check(s); inv != nil {
				k.report(&finding{at: p.at, choice: i, invariant: inv, wrong: wrong})
				return found
			}
		}
		if n := k.enter(p.at, i, s.after); n != nil {
			found = append(found, n)
		}
	}
	return found
}

// ending is what is checked where nobody can move any more.
var ending = Invariant{Name: "the end", Says: "when all is over run names no missing job and every key has its end", Promise: 5}

func (k *walk) report(f *finding) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.broken == nil {
		k.broken = f
	}
}

// enter notes the edge and returns the new world's place if it was not seen.
func (k *walk) enter(from int32, c int, w *world) *place {
	d := w.digest()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.steps++
	at, old := k.seen[d]
	if !old {
		at = int32(len(k.nodes)) //nolint:gosec // bounded by memory, far below 2^31
		k.seen[d] = at
		k.nodes = append(k.nodes, node{parent: from, choice: int16(c)}) //nolint:gosec // a world has some dozens of choices
	}
	k.nodes[from].next = append(k.nodes[from].next, at)
	if old {
		return nil
	}
	return &place{at, w}
}

// orders counts the complete orders: paths from the first world to an end.
// Every step moves some actor, the clock, or a budget on, so there are no cycles.
func (k *walk) orders() *big.Int {
	count := make([]*big.Int, len(k.nodes))
	stack := []int32{0}
	for len(stack) > 0 {
		at := stack[len(stack)-1]
		n := &k.nodes[at]
		ready := true
		for _, c := range n.next {
			if count[c] == nil {
				stack = append(stack, c)
				ready = false
			}
		}
		if !ready {
			continue
		}
		stack = stack[:len(stack)-1]
		if count[at] != nil {
			continue
		}
		total := new(big.Int)
		for _, c := range n.next {
			total.Add(total, count[c])
		}
		if len(n.next) == 0 {
			total.SetInt64(1)
		}
		count[at] = total
	}
	return count[0]
}
