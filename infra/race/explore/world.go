package explore

import (
	"encoding/binary"
	"slices"

	"sunhwa/shared/job"
)

// spot is where one actor stands: its place in its program and what it has in
// hand. Programs give the fields their meaning.
type spot struct {
	at    int    // place in the program; done when the program has no step there
	id    job.ID // the job it works on
	other job.ID // a holder, a newest job or a kept job it was told of
	n     int    // tries left, or results recorded (bits)
	sent  bool   // usage without a result was sent by this attempt
	dead  bool   // crashed
	// lost is what the server answered when the reply did not arrive; the client
	// then repeats the call. lostAt is the keys' digest right after it.
	lost   string
	lostAt digest
	owed   bool // a reply is lost and the repeat is due
}

// world is everything that decides what can happen next. A world in the walk is
// never changed; clone gives one that may be.
type world struct {
	keys    snapshot
	sum     digest // of keys
	actors  []spot
	queue   []job.ID // dispatched events no worker has taken yet, sorted
	born    []job.ID // jobs in the order in which they were created
	tick    int      // how many of the scenario's clock steps have been taken
	losses  int      // replies that may still be lost
	crashes int      // actors that may still crash
}

func (w *world) clone() *world {
	c := *w
	c.actors = slices.Clone(w.actors)
	c.queue = slices.Clone(w.queue)
	c.born = slices.Clone(w.born)
	return &c
}

// send puts an event on its way. Two of one job are as good as one per taker;
// the queue keeps at most two, a duplicate included.
func (w *world) send(id job.ID) {
	n := 0
	for _, q := range w.queue {
		if q == id {
			n++
		}
	}
	if n < 2 {
		w.queue = append(w.queue, id)
		slices.Sort(w.queue)
	}
}

// take removes one event of the job from the queue.
func (w *world) take(id job.ID) {
	if i := slices.Index(w.queue, id); i >= 0 {
		w.queue = slices.Delete(w.queue, i, i+1)
	}
}

func (w *world) digest() digest {
	b := append(make([]byte, 0, 512), w.sum[:]...)
	for _, a := range w.actors {
		b = binary.AppendVarint(b, int64(a.at))
		b = append(append(b, a.id...), 0)
		b = append(append(b, a.other...), 0)
		b = binary.AppendVarint(b, int64(a.n))
		b = append(b, flag(a.sent), flag(a.dead), flag(a.owed))
		b = append(append(b, a.lost...), 0)
		b = append(b, a.lostAt[:]...)
	}
	for _, q := range w.queue {
		b = append(append(b, q...), 1)
	}
	for _, q := range w.born {
		b = append(append(b, q...), 2)
	}
	b = binary.AppendVarint(b, int64(w.tick))
	b = binary.AppendVarint(b, int64(w.losses))
	b = binary.AppendVarint(b, int64(w.crashes))
	return sum(b)
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}
