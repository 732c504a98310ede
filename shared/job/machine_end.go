package job

import "slices"

// end makes the job terminal: leases and the deadline mean nothing any more.
func (l *Life) end(s Status, code Code) {
	l.Status, l.Code = s, code
	l.Live, l.Rested, l.Overdue = false, false, false
}

// forget lets go of the job's texts; how many there were is still told.
func (l *Life) forget() { l.Gone, l.Texts = true, make([]string, len(l.Texts)) }

// free forgets the texts of a job that may be missing.
func (m *Machine) free(id ID) {
	if l := m.life(id); l != nil {
		l.forget()
	}
}

// fail: RUNNING → FAILED, if the guard holds. It needs no claim.
func (m *Machine) fail(l *Life, c Call) Answer {
	switch {
	case l.Status == Failed && l.Code == c.Code:
		return Answer{Reply: ReplyOK}
	case l.Status == Failed && l.Code == CodeDeadlineExceeded:
		return Answer{Reply: ReplyOverdue}
	case l.Status != Running:
		return l.state()
	case l.Overdue:
		m.failed(l, CodeDeadlineExceeded)
		if l.Token == c.Token {
			l.spend(c.Extra)
		}
		return Answer{Reply: ReplyOverdue}
	case c.Guard == GuardWorker && (c.Token == "" || c.Token != l.Token):
		return Answer{Reply: ReplyStale}
	case c.Guard == GuardStart && l.Attempt > 0:
		return Answer{Reply: ReplyBegun}
	}
	m.failed(l, c.Code)
	l.spend(c.Extra)
	return Answer{Reply: ReplyOK}
}

// failed makes a RUNNING job FAILED: its texts go, the claim only if it is its own.
func (m *Machine) failed(l *Life, code Code) {
	l.end(Failed, code)
	l.forget()
	if m.Claim == l.ID {
		m.Claim = ""
	}
}

// applyDeadline is why nobody reads RUNNING after the deadline.
func (m *Machine) applyDeadline(l *Life) {
	if l.Status == Running && l.Overdue {
		m.failed(l, CodeDeadlineExceeded)
	}
}

// erase: the texts of the newest and of the kept job go; a RUNNING newest one is
// canceled. Last stays, so that ids go on ordering as acquired.
func (m *Machine) erase(c Call) Answer {
	if m.Last != c.Other {
		return Answer{Reply: ReplyChanged, Other: m.Last}
	}
	if l := m.life(m.Last); l != nil {
		m.applyDeadline(l)
		if l.Status == Running {
			m.failed(l, CodeCanceled)
		}
	}
	m.free(m.Last)
	m.free(m.Kept)
	m.Kept = ""
	return Answer{Reply: ReplyOK}
}

// inspect: the sweeper ends what nothing can finish, and has dispatched again
// what nobody holds, at most once a lease.
func (m *Machine) inspect(l *Life, c Call) Answer {
	code := Code("")
	switch {
	case l.Status != Running:
		return Answer{Reply: ReplyForgotten}
	case l.Overdue:
		code = CodeDeadlineExceeded
	case m.Claim != l.ID:
		code = CodeClaimLost
	case !l.Live && l.Attempt >= c.Attempts:
		code = CodeWorkerLost
	case !l.Live && l.Rested:
		l.Rested = false
		return Answer{Reply: ReplyRedispatch}
	default:
		return Answer{Reply: ReplyLeft}
	}
	m.failed(l, code)
	return Answer{Reply: ReplyEnded, Code: code}
}

// pass is what happens without a caller: to one job, or to all of them.
func (m *Machine) pass(c Call) {
	meant := func(id ID) bool { return c.ID == "" || c.ID == id }
	late := c.Move == MoveDeadline || c.Move == MoveFade
	if (late || c.Move == MoveLoseClaim) && meant(m.Claim) {
		m.Claim = "" // it lives exactly as long as its job may run
	}
	if c.Move == MoveVanish {
		m.Jobs = slices.DeleteFunc(m.Jobs, func(l Life) bool { return meant(l.ID) })
	}
	for i := range m.Jobs {
		l := &m.Jobs[i]
		switch {
		case !meant(l.ID):
		case l.Status == Running && (late || c.Move == MoveLapse):
			l.Live, l.Rested = false, true
			l.Overdue = l.Overdue || late
		case c.Move == MoveFade && l.Applied:
			l.forget()
		}
	}
}
