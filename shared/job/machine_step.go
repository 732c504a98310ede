package job

import "slices"

// Step makes one call: the Machine after it, and what the caller is told. The
// order of the checks is the same in every move: missing, state, deadline, claim,
// token. A refusal changes nothing, but for OVERDUE of a fail, which has written
// FAILED(DEADLINE_EXCEEDED). A call that is made again at once is answered the
// same and changes nothing more; only inspect, which answers what it did, is not.
func (m Machine) Step(c Call) (Machine, Answer) {
	next := m
	next.Jobs = slices.Clone(m.Jobs)
	a := next.move(c)
	return next, a
}

func (m *Machine) move(c Call) Answer {
	switch c.Move {
	case MoveAcquire:
		return m.acquire(c)
	case MoveErase:
		return m.erase(c)
	case MoveNewest:
		if m.Last == "" {
			return Answer{Reply: ReplyNotFound}
		}
		return Answer{Reply: ReplyOK, Other: m.Last}
	case MoveLapse, MoveDeadline, MoveFade, MoveVanish, MoveLoseClaim:
		m.pass(c)
		return Answer{Reply: ReplyOK}
	}
	l := m.life(c.ID)
	if l == nil {
		if c.Move == MoveInspect {
			return Answer{Reply: ReplyForgotten}
		}
		return Answer{Reply: ReplyNotFound}
	}
	switch c.Move {
	case MoveBegin:
		return m.begin(l, c)
	case MoveRecord:
		return m.record(l, c)
	case MoveRenew:
		if a, refused := m.fence(l, c); refused {
			return a
		}
		l.Live = true
		return Answer{Reply: ReplyOK}
	case MoveFinish:
		return m.finish(l, c)
	case MoveFail:
		return m.fail(l, c)
	case MoveRead:
		m.applyDeadline(l)
		return Answer{
			Reply: ReplyOK, Status: l.Status, Code: l.Code, Token: l.Token, Attempt: l.Attempt,
			Done: l.Done, Total: len(l.Texts), Usage: l.Usage, Applied: l.Applied,
		}
	case MoveResults:
		m.applyDeadline(l)
		switch {
		case l.Status != Success:
			return l.state()
		case l.Gone:
			return Answer{Reply: ReplyGone}
		}
		return Answer{Reply: ReplyOK, Texts: l.Texts}
	case MoveApplied:
		if l.Status != Success {
			return l.state()
		}
		l.Applied = true
		return Answer{Reply: ReplyOK}
	case MoveInspect:
		return m.inspect(l, c)
	}
	panic("job: no such move: " + string(c.Move)) // a mistake of the program that checks
}

// life returns the job, nil when it is missing.
func (m *Machine) life(id ID) *Life {
	i := slices.IndexFunc(m.Jobs, func(l Life) bool { return l.ID == id })
	if i < 0 {
		return nil
	}
	return &m.Jobs[i]
}

func (l *Life) state() Answer { return Answer{Reply: ReplyState, Status: l.Status, Code: l.Code} }

// acquire: nothing → RUNNING, when the target is free and the id is new.
func (m *Machine) acquire(c Call) Answer {
	if m.life(c.ID) != nil {
		return Answer{Reply: ReplyOK} // a repeat, whatever has become of the job
	}
	pointsNowhere := m.Claim != "" && m.Claim == c.Other && m.life(m.Claim) == nil
	if m.Claim != "" && !pointsNowhere {
		return Answer{Reply: ReplyHeld, Other: m.Claim}
	}
	if m.Last != "" && c.ID <= m.Last {
		return Answer{Reply: ReplyStaleID, Other: m.Last}
	}
	m.Jobs = append(m.Jobs, Life{ID: c.ID, Status: Running, Texts: make([]string, c.Total)})
	m.Claim, m.Last = c.ID, c.ID
	return Answer{Reply: ReplyOK}
}

// begin: an attempt takes the job, unless another's lease is live.
func (m *Machine) begin(l *Life, c Call) Answer {
	switch {
	case l.Status != Running:
		return l.state()
	case l.Overdue:
		return Answer{Reply: ReplyOverdue}
	case m.Claim != l.ID:
		return Answer{Reply: ReplyClaimLost}
	case c.Token == "":
		return Answer{Reply: ReplyStale}
	}
	if l.Token != c.Token {
		switch {
		case l.Live:
			return Answer{Reply: ReplyBusy}
		case l.Attempt >= c.Attempts:
			return Answer{Reply: ReplyExhausted}
		}
		l.Token, l.Attempt, l.Seq = c.Token, l.Attempt+1, 0
	}
	l.Live = true
	return Answer{
		Reply: ReplyOK, Other: m.Kept, Attempt: l.Attempt, Done: l.Done, Total: len(l.Texts), Texts: l.Texts, Usage: l.Usage,
	}
}

// fence is the check of every worker write. A lapsed lease is no refusal: until
// another begins, the token is good.
func (m *Machine) fence(l *Life, c Call) (a Answer, refused bool) {
	switch {
	case l.Status != Running:
		return l.state(), true
	case l.Overdue:
		return Answer{Reply: ReplyOverdue}, true
	case m.Claim != l.ID:
		return Answer{Reply: ReplyClaimLost}, true
	case c.Token == "" || c.Token != l.Token:
		return Answer{Reply: ReplyStale}, true
	}
	return Answer{}, false
}

// record: each result is stored once, and paid for in Usage exactly then.
func (m *Machine) record(l *Life, c Call) Answer {
	if a, refused := m.fence(l, c); refused {
		return a
	}
	for _, r := range c.Results {
		if r.Index < 0 || r.Index >= len(l.Texts) {
			return Answer{Reply: ReplyOutOfRange}
		}
	}
	l.Live = true
	l.Texts = slices.Clone(l.Texts)
	for _, r := range c.Results {
		if l.Texts[r.Index] == "" {
			l.Texts[r.Index] = r.Text
			l.Done++
			l.Usage = l.Usage.Plus(r.Usage)
		}
	}
	l.spend(c.Extra)
	return Answer{Reply: ReplyOK, Done: l.Done, Usage: l.Usage}
}

// spend adds usage that came without a result, once per sequence number.
func (l *Life) spend(x Extra) {
	if x.Seq > l.Seq {
		l.Usage, l.Seq = l.Usage.Plus(x.Usage), x.Seq
	}
}

// finish: RUNNING → SUCCESS, with everything in hand. The texts of the job that
// was kept until now are gone.
func (m *Machine) finish(l *Life, c Call) Answer {
	if l.Status == Success && l.Token == c.Token {
		return Answer{Reply: ReplyOK}
	}
	if a, refused := m.fence(l, c); refused {
		return a
	}
	if l.Done != len(l.Texts) {
		return Answer{Reply: ReplyIncomplete}
	}
	if c.Other == m.Kept && c.Other != l.ID {
		m.free(c.Other)
	}
	l.spend(c.Extra)
	l.end(Success, "")
	m.Claim, m.Kept = "", l.ID
	return Answer{Reply: ReplyOK}
}
