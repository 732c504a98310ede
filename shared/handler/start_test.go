package handler

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/shared/job"
)

func TestStart_created(t *testing.T) {
	w := newWorld(t, "")
	response := w.call(startRoute, withPath("targetId", "course-1"), withBody(twoComments))
	require.Equal(t, 202, response.StatusCode, response.Body)
	require.Len(t, w.dispatcher.refs, 1)
	ref := w.dispatcher.refs[0]
	assert.Equal(t, job.Target{Tenant: "default", ID: "course-1"}, ref.Target)
	assert.Equal(t, fmt.Sprintf(`{"jobId":"%s","status":"RUNNING","reused":false}`, ref.ID), response.Body)
	assert.Equal(t, "/jobs/"+string(ref.ID), response.Headers["Location"])
	assert.Equal(t, "2", response.Headers["Retry-After"])
	assert.Equal(t, "application/json", response.Headers["Content-Type"])
	j, err := w.store.Read(context.Background(), ref.ID)
	require.NoError(t, err)
	assert.Equal(t, job.Spec{Model: "m", PromptVersion: "p", Options: "{}"}, j.Spec)
	assert.Equal(t, 2, j.Total)
	assert.False(t, j.Fresh)
}

func TestStart_reused(t *testing.T) {
	w := newWorld(t, "")
	id := w.started("t")
	for body, same := range map[string]bool{twoComments: true, textBody(`"other"`): false} {
		response := w.call(startRoute, withPath("targetId", "t"), withBody(body))
		require.Equal(t, 200, response.StatusCode)
		assert.Equal(t, fmt.Sprintf(`{"jobId":"%s","status":"RUNNING","reused":true,"sameInput":%v}`, id, same), response.Body)
	}
	assert.Len(t, w.dispatcher.refs, 1, "a reused job is not dispatched again")
}

// TestStart_separateTargets: (a:b, c) and (a, b:c) are two targets to the store.
// Over HTTP a targetId has no colon, so the second is sent as near as it can be.
func TestStart_separateTargets(t *testing.T) {
	w := newWorld(t, "tenant")
	pairs := [][2]string{{"a:b", "c"}, {"a", "b~c"}, {"a", "c"}, {"a:b", "b"}, {"a:b:c", "c"}, {"a#b", "c"}, {"a\x00b", "c"}, {"YTpi", "c"}}
	ids := map[job.ID]bool{}
	for _, p := range pairs {
		ids[w.started(p[1], withTenant(p[0]))] = true
	}
	assert.Len(t, ids, len(pairs))
	for _, p := range pairs {
		body := w.call(latestRoute, withTenant(p[0]), withPath("targetId", p[1])).Body
		assert.True(t, ids[job.ID(member(t, body, "jobId").(string))])
		delete(ids, job.ID(member(t, body, "jobId").(string)))
	}
	requireProblem(t, w.call(startRoute, withTenant("a"), withPath("targetId", "b:c"), withBody(twoComments)), 400, codeInvalid)

	// The store itself, where no rule of HTTP protects it.
	for _, target := range []job.Target{{Tenant: "x:y", ID: "z"}, {Tenant: "x", ID: "y:z"}} {
		c := job.Creation{
			Ref: job.Ref{ID: idAt(t, testNow, target), Target: target}, Comments: []job.Comment{{ID: "a", Text: "x"}},
			Digest: "d", Deadline: time.Minute, Retention: time.Minute, Lease: time.Second,
		}
		require.NoError(t, w.store.Acquire(context.Background(), c))
	}
}

// scriptedClaims is a store whose answers a test writes down.
type scriptedClaims struct {
	acquired []job.Creation
	acquire  func(n int, c job.Creation) error // n counts from 1
	read     func(id job.ID) (*job.Job, error)
	failed   []job.Failure
	fail     error
	guard    job.Guard
}

func (s *scriptedClaims) Acquire(ctx context.Context, c job.Creation) error {
	s.acquired = append(s.acquired, c)
	return s.acquire(len(s.acquired), c)
}

func (s *scriptedClaims) Read(_ context.Context, id job.ID) (*job.Job, error) { return s.read(id) }

func (s *scriptedClaims) Fail(_ context.Context, _ job.Ref, g job.Guard, _ string, f job.Failure, _ job.Extra) error {
	s.failed, s.guard = append(s.failed, f), g
	return s.fail
}

func idAt(t testing.TB, at time.Time, target job.Target) job.ID {
	id, err := job.NewID(at, target)
	require.NoError(t, err)
	return id
}

var plainTarget = job.Target{Tenant: "default", ID: "t"}

func startWith(t *testing.T, s *scriptedClaims, d *fakeDispatcher) (*Start, func() (int, string)) {
	h := NewStart(s, d, startOptions("", nil))
	return h, func() (int, string) {
		response := handleOf(t, h, eventOf(t, startRoute, withPath("targetId", "t"), withBody(twoComments)))
		if response.StatusCode == 503 {
			assert.NotEmpty(t, response.Headers["Retry-After"])
		}
		return response.StatusCode, response.Body
	}
}

func TestStart_heldByEndedJob(t *testing.T) {
	holder := idAt(t, testNow, plainTarget)
	s := &scriptedClaims{
		acquire: func(n int, _ job.Creation) error {
			if n <= maxReacquires {
				return &job.HeldError{Holder: holder}
			}
			return nil
		},
		read: func(id job.ID) (*job.Job, error) {
			return &job.Job{ID: id, Target: plainTarget, Status: job.Failed}, nil
		},
	}
	_, call := startWith(t, s, &fakeDispatcher{})
	status, _ := call()
	assert.Equal(t, 202, status)
	require.Len(t, s.acquired, 1+maxReacquires)
	for _, c := range s.acquired {
		assert.Empty(t, c.Missing, "an ended job is not missing")
		assert.Equal(t, s.acquired[0].ID, c.ID, "the id stays")
	}
}

func TestStart_heldForEver(t *testing.T) {
	holder := idAt(t, testNow, plainTarget)
	for name, read := range map[string]func(job.ID) (*job.Job, error){
		"ended":   func(id job.ID) (*job.Job, error) { return &job.Job{ID: id, Status: job.Success}, nil },
		"missing": func(job.ID) (*job.Job, error) { return nil, job.ErrNotFound },
	} {
		t.Run(name, func(t *testing.T) {
			s := &scriptedClaims{acquire: func(int, job.Creation) error { return &job.HeldError{Holder: holder} }, read: read}
			_, call := startWith(t, s, &fakeDispatcher{})
			status, body := call()
			assert.Equal(t, 503, status)
			assert.Equal(t, "UNAVAILABLE", member(t, body, "code"))
			assert.Len(t, s.acquired, 1+maxReacquires)
			if name == "missing" {
				assert.Equal(t, holder, s.acquired[maxReacquires].Missing)
			}
		})
	}
}

// TestStart_pointerOutlivesJob: on the real store, a claim whose job is gone
// does not block its target.
func TestStart_pointerOutlivesJob(t *testing.T) {
	w := newWorld(t, "")
	old := w.started("t")
	for _, key := range w.redis.Keys() {
		if s := fmt.Sprintf("{%s}:job:%s", old.Shard(), old); key == s {
			w.redis.Del(key)
		}
	}
	next := w.started("t")
	assert.NotEqual(t, old, next)
	assert.Greater(t, next, old, "also with a clock that stands still")
}

// TestStart_clockBehind: on the real store, a host whose clock is behind mints
// after the target's newest id.
func TestStart_clockBehind(t *testing.T) {
	w := newWorld(t, "")
	w.start.now = func() time.Time { return testNow.Add(time.Hour) }
	old := w.started("t")
	w.fail(old, job.Failure{Code: job.CodeInternal})
	w.start.now = func() time.Time { return testNow }
	next := w.started("t")
	assert.Greater(t, next, old)
	assert.Equal(t, old.Time().Add(time.Millisecond), next.Time())
}

func TestStart_staleForEver(t *testing.T) {
	s := &scriptedClaims{acquire: func(_ int, c job.Creation) error { return &job.StaleIDError{Newest: c.ID} }}
	_, call := startWith(t, s, &fakeDispatcher{})
	status, _ := call()
	assert.Equal(t, 503, status)
	require.Len(t, s.acquired, maxMints)
	for i := 1; i < maxMints; i++ {
		assert.Greater(t, s.acquired[i].ID, s.acquired[i-1].ID)
	}
}

// TestStart_ownIDHeld: a repeat inside the client that finds its own job is told
// created.
func TestStart_ownIDHeld(t *testing.T) {
	s := &scriptedClaims{acquire: func(_ int, c job.Creation) error { return &job.HeldError{Holder: c.ID} }}
	d := &fakeDispatcher{}
	_, call := startWith(t, s, d)
	status, body := call()
	assert.Equal(t, 202, status)
	assert.Equal(t, false, member(t, body, "reused"))
	assert.Len(t, d.refs, 1)
}

func TestStart_dispatch(t *testing.T) {
	refused := fmt.Errorf("invoke: %w: secret-arn", job.ErrRefused)
	cases := []struct {
		name     string
		dispatch error
		fail     error
		status   int
		failed   int
	}{
		{"accepted", nil, nil, 202, 0},
		{"ambiguous", errors.New("invoke: connection reset"), nil, 202, 0},
		{"too late", context.DeadlineExceeded, nil, 202, 0},
		{"refused", refused, nil, 503, 1},
		{"refused, but begun", refused, job.ErrBegun, 202, 1},
		{"refused, but Redis silent", refused, job.ErrUnavailable, 202, 1},
		{"refused, but ended", refused, &job.StateError{Status: job.Success}, 202, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := &scriptedClaims{acquire: func(int, job.Creation) error { return nil }, fail: c.fail}
			_, call := startWith(t, s, &fakeDispatcher{then: func(job.Ref) error { return c.dispatch }})
			status, body := call()
			assert.Equal(t, c.status, status)
			assert.Len(t, s.failed, c.failed)
			if c.failed > 0 {
				assert.Equal(t, job.Failure{Code: job.CodeDispatchFailed}, s.failed[0])
				assert.Equal(t, job.GuardStart, s.guard)
			}
			if status == 503 {
				assert.Equal(t, "DISPATCH_FAILED", member(t, body, "code"))
				assert.NotContains(t, body, "secret-arn")
			}
		})
	}
}

func TestStart_refusedDispatchFreesTarget(t *testing.T) {
	w := newWorld(t, "")
	w.dispatcher.then = func(job.Ref) error { return job.ErrRefused }
	requireProblem(t, w.call(startRoute, withPath("targetId", "t"), withBody(twoComments)), 503, codeDispatchFailed)
	w.dispatcher.then = nil
	w.started("t")
}

func TestStart_redisUnreachable(t *testing.T) {
	w := newWorld(t, "")
	w.redis.Close()
	requireProblem(t, w.call(startRoute, withPath("targetId", "t"), withBody(twoComments)), 503, codeUnavailable)
	assert.Empty(t, w.dispatcher.refs)
	require.NoError(t, w.redis.Restart())
	w.started("t")
}

// TestStart_silentRedis: a store that never answers is cut off by start's own
// limit, here shortened.
func TestStart_silentRedis(t *testing.T) {
	h := NewStart(silentStore{}, &fakeDispatcher{}, startOptions("", nil))
	assert.Less(t, h.redis, 5*time.Second)
	h.redis = time.Millisecond
	response := handleOf(t, h, eventOf(t, startRoute, withPath("targetId", "t"), withBody(twoComments)))
	requireProblem(t, response, 503, codeUnavailable)
}

// silentStore waits for its context, whatever is asked.
type silentStore struct{}

func (silentStore) Acquire(ctx context.Context, _ job.Creation) error { return wait(ctx) }
func (silentStore) Read(ctx context.Context, _ job.ID) (*job.Job, error) {
	return nil, wait(ctx)
}
func (silentStore) Newest(ctx context.Context, _ job.Target) (job.ID, error) { return "", wait(ctx) }
func (silentStore) Results(ctx context.Context, _ job.ID) (*job.Job, []job.Rewritten, error) {
	return nil, nil, wait(ctx)
}
func (silentStore) Fail(ctx context.Context, _ job.Ref, _ job.Guard, _ string, _ job.Failure, _ job.Extra) error {
	return wait(ctx)
}
func (silentStore) Applied(ctx context.Context, _ job.ID, _ time.Time) error  { return wait(ctx) }
func (silentStore) Erase(ctx context.Context, _ job.Target, _ job.ID) error   { return wait(ctx) }
func (silentStore) Head(ctx context.Context, _ job.Target) (*job.Head, error) { return nil, wait(ctx) }
func (silentStore) Entomb(ctx context.Context, _ job.Target, _ job.ID) error  { return wait(ctx) }

func wait(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}
