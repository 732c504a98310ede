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

const (
	applyRoute    = "POST /jobs/{jobId}/apply"
	commentsRoute = "GET /targets/{targetId}/comments"
	eraseRoute    = "DELETE /targets/{targetId}/comments"
)

func (w *world) finished(target string) job.ID {
	w.t.Helper()
	id := w.started(target)
	w.finish(id)
	return id
}

func (w *world) requireApplied(id job.ID, already bool) {
	w.t.Helper()
	response := w.call(applyRoute, withJob(id))
	require.Equal(w.t, 200, response.StatusCode, response.Body)
	require.Equal(w.t, fmt.Sprintf(`{"jobId":"%s","applied":2,"alreadyApplied":%v}`, id, already), response.Body)
}

func TestApply_states(t *testing.T) {
	w := newWorld(t, "")
	running := w.started("t")
	p := requireProblem(t, w.call(applyRoute, withJob(running)), 409, codeJobRunning)
	assert.Equal(t, job.Running, p.JobStatus)
	w.fail(running, job.Failure{Code: job.CodeLLMFailed})
	p = requireProblem(t, w.call(applyRoute, withJob(running)), 409, codeJobFailed)
	assert.Equal(t, job.Failed, p.JobStatus)
	overdue := w.started("t")
	w.redis.FastForward(10 * time.Minute)
	requireProblem(t, w.call(applyRoute, withJob(overdue)), 409, codeJobFailed)
	requireProblem(t, w.call(applyRoute, withJob(idAt(t, testNow, plainTarget))), 404, codeNotFound)
	assert.Empty(t, w.table.calls, "the table is not even asked")
}

func TestApply_successAgainAndGone(t *testing.T) {
	w := newWorld(t, "")
	id := w.finished("t")
	w.requireApplied(id, false)
	w.requireApplied(id, true)
	assert.Equal(t, "2030-01-02T03:04:05.789Z", member(t, w.call(readRoute, withJob(id)).Body, "appliedAt"))
	w.redis.FastForward(time.Hour + time.Second)
	requireProblem(t, w.call(resultsRoute, withJob(id)), 410, codeGone)
	w.requireApplied(id, true) // also when the texts are gone
}

func TestApply_superseded(t *testing.T) {
	w := newWorld(t, "")
	older := w.finished("t")
	newer := w.finished("t")
	requireProblem(t, w.call(applyRoute, withJob(older)), 410, codeGone)
	w.requireApplied(newer, false)
	requireProblem(t, w.call(applyRoute, withJob(older)), 409, codeSuperseded)
	w.requireApplied(w.finished("t"), false)
	requireProblem(t, w.call(applyRoute, withJob(newer)), 409, codeSuperseded)
}

// TestApply_goneInBetween: the texts go and a newer job is published after the
// head was read; the answer is SUPERSEDED, not GONE.
func TestApply_goneInBetween(t *testing.T) {
	w := newWorld(t, "")
	older := w.finished("t")
	store := &beforeResults{finished: w.store, do: func() {
		newer := w.finished("t")
		w.requireApplied(newer, false)
	}}
	h := NewApply(store, w.table, ApplyOptions{})
	requireProblem(t, handleOf(t, h, eventOf(t, applyRoute, withJob(older))), 409, codeSuperseded)
}

type beforeResults struct {
	finished
	do func()
}

func (b *beforeResults) Results(ctx context.Context, id job.ID) (*job.Job, []job.Rewritten, error) {
	if do := b.do; do != nil {
		b.do = nil
		do()
	}
	return b.finished.Results(ctx, id)
}

func TestApply_afterErase(t *testing.T) {
	w := newWorld(t, "")
	id := w.finished("t")
	w.requireApplied(id, false)
	assert.Equal(t, 204, w.call(eraseRoute, withPath("targetId", "t")).StatusCode)
	requireProblem(t, w.call(applyRoute, withJob(id)), 410, codeGone)
	requireProblem(t, w.call(commentsRoute, withPath("targetId", "t")), 404, codeNotFound)
	w.requireApplied(w.finished("t"), false) // a later job may be published
}

// TestApply_publishRefused: what the flip itself is told.
func TestApply_publishRefused(t *testing.T) {
	for want, code := range map[error]apiCode{job.ErrSuperseded: codeSuperseded, job.ErrGone: codeGone, job.ErrUnavailable: codeUnavailable, errors.New("x"): codeInternal} {
		w := newWorld(t, "")
		id := w.finished("t")
		w.table.before = func(call string) {
			if call == "publish" {
				w.table.err = fmt.Errorf("comments: %w", want)
			}
		}
		requireProblem(t, w.call(applyRoute, withJob(id)), statusOf[code], code)
		assert.Nil(t, member(t, w.call(readRoute, withJob(id)).Body, "appliedAt"))
	}
}

// TestApply_noteFails: the flip is done and Redis would not take the note.
func TestApply_noteFails(t *testing.T) {
	w := newWorld(t, "")
	id := w.finished("t")
	store := &failingNote{finished: w.store, err: fmt.Errorf("applied: %w", job.ErrUnavailable)}
	h := NewApply(store, w.table, ApplyOptions{})
	requireProblem(t, handleOf(t, h, eventOf(t, applyRoute, withJob(id))), 503, codeUnavailable)
	assert.Nil(t, member(t, w.call(readRoute, withJob(id)).Body, "appliedAt"))
	w.requireApplied(id, true) // the repeat writes it
	assert.NotNil(t, member(t, w.call(readRoute, withJob(id)).Body, "appliedAt"))
	store.err = job.ErrNotFound
	assert.Equal(t, 200, handleOf(t, h, eventOf(t, applyRoute, withJob(id))).StatusCode)
}

// TestApply_oneTime: the job and the comments tell the same appliedAt, the head's,
// whichever call of apply wrote the note.
func TestApply_oneTime(t *testing.T) {
	w := newWorld(t, "")
	requireOneTime := func(id job.ID) {
		t.Helper()
		shown := member(t, w.call(commentsRoute, withPath("targetId", "t")).Body, "appliedAt")
		assert.Equal(t, timeOf(w.table.heads[plainTarget].AppliedAt), new(shown.(string)))
		assert.Equal(t, shown, member(t, w.call(readRoute, withJob(id)).Body, "appliedAt"))
	}
	first := w.finished("t")
	w.requireApplied(first, false)
	requireOneTime(first)

	second := w.finished("t")
	h := NewApply(&failingNote{finished: w.store, err: job.ErrUnavailable}, w.table, ApplyOptions{})
	requireProblem(t, handleOf(t, h, eventOf(t, applyRoute, withJob(second))), 503, codeUnavailable)
	w.requireApplied(second, true) // by the head that apply reads
	requireOneTime(second)

	third := w.finished("t")
	store := &beforeResults{finished: w.store, do: func() { // another apply of it gets through meanwhile
		_, rows, err := w.store.Results(context.Background(), third)
		require.NoError(t, err)
		j, err := w.store.Read(context.Background(), third)
		require.NoError(t, err)
		_, err = w.table.Publish(context.Background(), j.Target, third, j.Version(), rows)
		require.NoError(t, err)
	}}
	assert.Equal(t, 200, handleOf(t, NewApply(store, w.table, ApplyOptions{}), eventOf(t, applyRoute, withJob(third))).StatusCode)
	requireOneTime(third)
}

type failingNote struct {
	finished
	err error
}

func (f *failingNote) Applied(context.Context, job.ID, time.Time) error { return f.err }

func TestApply_silentStores(t *testing.T) {
	w := newWorld(t, "")
	id := w.finished("t")
	h := NewApply(silentStore{}, w.table, ApplyOptions{})
	assert.Less(t, h.redis, 5*time.Second)
	assert.Equal(t, 25*time.Second, h.limit)
	h.redis = time.Millisecond
	requireProblem(t, handleOf(t, h, eventOf(t, applyRoute, withJob(id))), 503, codeUnavailable)
	h = NewApply(w.store, silentTable{}, ApplyOptions{})
	h.limit = 200 * time.Millisecond
	requireProblem(t, handleOf(t, h, eventOf(t, applyRoute, withJob(id))), 503, codeUnavailable)
}

type silentTable struct{ silentStore }

func (silentTable) Publish(ctx context.Context, _ job.Target, _ job.ID, _ string, _ []job.Rewritten) (time.Time, error) {
	return time.Time{}, wait(ctx)
}

func TestComments_read(t *testing.T) {
	w := newWorld(t, "")
	requireProblem(t, w.call(commentsRoute, withPath("targetId", "t")), 404, codeNotFound)
	id := w.finished("t")
	requireProblem(t, w.call(commentsRoute, withPath("targetId", "t")), 404, codeNotFound)
	w.requireApplied(id, false)
	response := w.call(commentsRoute, withPath("targetId", "t"))
	require.Equal(t, 200, response.StatusCode)
	assert.Equal(t, fmt.Sprintf(`{"targetId":"t","jobId":"%s","appliedAt":"2030-01-02T03:04:05.789Z","comments":[`+
		`{"id":"a","text":"polite <a>","original":"one %s"},{"id":"b","text":"polite <b>","original":"two %s"}],"nextCursor":null}`, id, marker, marker), response.Body)
	p := requireProblem(t, w.call(commentsRoute, withPath("targetId", "t"), withCursor("bad")), 400, codeInvalid)
	assert.Equal(t, []string{"#/cursor"}, pointers(p))
	requireProblem(t, w.call(commentsRoute, withPath("targetId", "t"), withCursor("old")), 410, codeGone)
	for _, route := range []string{commentsRoute, eraseRoute} {
		p = requireProblem(t, w.call(route, withPath("targetId", ".")), 400, codeInvalid)
		assert.Equal(t, []string{"#/targetId"}, pointers(p))
	}
}

func TestComments_erase(t *testing.T) {
	w := newWorld(t, "")
	response := w.call(eraseRoute, withPath("targetId", "t"))
	assert.Equal(t, 204, response.StatusCode, "also when there is nothing")
	assert.Empty(t, response.Body)
	assert.NotContains(t, response.Headers, "Content-Type")
	done := w.finished("t")
	w.requireApplied(done, false)
	running := w.started("t")
	w.table.calls = nil
	require.Equal(t, 204, w.call(eraseRoute, withPath("targetId", "t")).StatusCode)
	assert.Equal(t, []string{"entomb " + string(running), "erase"}, w.table.calls)
	j, err := w.store.Read(context.Background(), running)
	if !errors.Is(err, job.ErrNotFound) {
		require.NoError(t, err)
		assert.Equal(t, job.CodeCanceled, j.Failure.Code)
	}
	requireProblem(t, w.call(commentsRoute, withPath("targetId", "t")), 404, codeNotFound)
	w.started("t")
}

// TestComments_erase_newJobMeanwhile: a job acquired after the tombstone makes
// the erase begin again, with a tombstone that covers it.
func TestComments_erase_newJobMeanwhile(t *testing.T) {
	w := newWorld(t, "")
	old := w.started("t")
	var newer job.ID
	w.table.before = func(call string) {
		if call == "entomb "+string(old) && newer == "" {
			w.fail(old, job.Failure{Code: job.CodeInternal})
			newer = w.started("t")
		}
	}
	require.Equal(t, 204, w.call(eraseRoute, withPath("targetId", "t")).StatusCode)
	assert.Equal(t, []string{"entomb " + string(old), "entomb " + string(newer), "erase"}, w.table.calls)
	assert.Equal(t, newer, w.table.heads[plainTarget].JobID)

	w = newWorld(t, "")
	w.started("t")
	h := NewComments(&restlessStore{eraser: w.store}, w.table, CommentsOptions{})
	requireProblem(t, handleOf(t, h, eventOf(t, eraseRoute, withPath("targetId", "t"))), 503, codeUnavailable)
	assert.Len(t, w.table.calls, maxErases)
}

type restlessStore struct{ eraser }

func (restlessStore) Erase(context.Context, job.Target, job.ID) error {
	return &job.ChangedError{Newest: "x"}
}

func TestComments_erase_faults(t *testing.T) {
	w := newWorld(t, "")
	w.started("t")
	before := w.redis.Dump()
	w.table.err = job.ErrUnavailable
	requireProblem(t, w.call(eraseRoute, withPath("targetId", "t")), 503, codeUnavailable)
	requireProblem(t, w.call(commentsRoute, withPath("targetId", "t")), 503, codeUnavailable)
	assert.Equal(t, before, w.redis.Dump(), "no tombstone, no erase")
	w.table.err = nil
	w.redis.Close()
	requireProblem(t, w.call(eraseRoute, withPath("targetId", "t")), 503, codeUnavailable)
	h := NewComments(silentStore{}, w.table, CommentsOptions{})
	h.redis = time.Millisecond
	requireProblem(t, handleOf(t, h, eventOf(t, eraseRoute, withPath("targetId", "t"))), 503, codeUnavailable)
}
