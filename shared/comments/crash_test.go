package comments_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/shared/comments"
	"sunhwa/shared/job"
)

func errorIsOneOf(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(t error) bool { return errors.Is(err, t) })
}

// start publishes in the background; the answer comes on the channel.
func start(t *testing.T, table *comments.Table, j job.ID, n int) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- failure(table.Publish(t.Context(), target, j, version(j), results(j, n))) }()
	return done
}

// unprocessed hands back all but the first keep of every batch, without an error.
func unprocessed(keep int) fault {
	return func(_ context.Context, in any, call func() (any, error)) (any, error) {
		b, ok := in.(*dynamodb.BatchWriteItemInput)
		if !ok {
			return call()
		}
		var table string
		var all []types.WriteRequest
		for table, all = range b.RequestItems {
		}
		if len(all) <= keep {
			return call()
		}
		out := &dynamodb.BatchWriteItemOutput{}
		if keep > 0 {
			b.RequestItems[table] = all[:keep]
			got, err := call()
			b.RequestItems[table] = all
			if err != nil {
				return nil, err
			}
			out = got.(*dynamodb.BatchWriteItemOutput)
		}
		out.UnprocessedItems = map[string][]types.WriteRequest{table: append(out.UnprocessedItems[table], all[keep:]...)}
		return out, nil
	}
}

func testUnprocessed(t *testing.T, w *world) {
	table := w.open(unprocessed(7))
	a, b, c := id(t, 1), id(t, 2), id(t, 3)
	for _, j := range []job.ID{a, b, c} {
		publish(t, table, j, 101)
		_, all, _, err := readAll(t.Context(), w.open(), 2_500_000)
		require.NoError(t, err)
		assert.Equal(t, published(results(j, 101)), all)
	}
	assert.Equal(t, map[string]int{"HEAD": 1, version(b): 101, version(c): 101}, w.counts(t), "deletes are repeated too")
}

func testUnprocessedForEver(t *testing.T, w *world) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	j := id(t, 1)
	err := failure(w.open(unprocessed(0)).Publish(ctx, target, j, version(j), results(j, 26)))
	require.ErrorIs(t, err, job.ErrUnavailable)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.NotContains(t, w.items(t), "HEAD", "no flip before every row is there")
}

func testKilledThenAgain(t *testing.T, w *world) {
	a, b := id(t, 1), id(t, 2)
	publish(t, w.open(), a, 30)
	err := failure(w.open(killed(flips)).Publish(t.Context(), target, b, version(b), results(b, 30)))
	require.ErrorIs(t, err, errKilled)
	assert.Equal(t, map[string]int{"HEAD": 1, "STAGE": 1, version(a): 30, version(b): 30}, w.counts(t))
	shown, all, _, err := readAll(t.Context(), w.open(), 2_500_000)
	require.NoError(t, err)
	assert.Equal(t, a, shown)
	assert.Equal(t, published(results(a, 30)), all, "staged rows are seen by nobody")

	publish(t, w.open(), b, 30)
	shown, all, _, err = readAll(t.Context(), w.open(), 2_500_000)
	require.NoError(t, err)
	assert.Equal(t, b, shown)
	assert.Equal(t, published(results(b, 30)), all)
	assert.Equal(t, map[string]int{"HEAD": 1, version(a): 30, version(b): 30}, w.counts(t))
}

// testKilledAtEveryCall: a process dies before its n-th call, for every n there is. Then a reader sees
// the old or the new version whole; the repeat brings the new one; and after the
// next publish nothing is left that the head does not show.
func testKilledAtEveryCall(t *testing.T, w *world) {
	rows := 30
	if w.server.Slow {
		rows = 3
	}
	first := id(t, 0)
	publish(t, w.open(), first, rows)
	publish(t, w.open(), id(t, 1), rows)
	minute := 2
	for n := int64(1); ; n++ {
		before, err := w.open().Head(t.Context(), target)
		require.NoError(t, err)
		victim := id(t, minute)
		err = failure(w.open(killed(nth(n, func(any) bool { return true }))).
			Publish(t.Context(), target, victim, version(victim), results(victim, rows)))
		shown, all, _, rerr := readAll(t.Context(), w.open(), 2_500_000)
		require.NoError(t, rerr)
		require.Contains(t, []job.ID{before.JobID, victim}, shown)
		require.Equal(t, published(results(shown, rows)), all)
		if err == nil {
			require.Equal(t, victim, shown, "call %d", n)
		}
		done := err == nil && len(w.counts(t)) == 3 // died after its last call: it made them all

		publish(t, w.open(), victim, rows)
		w.advance(2 * time.Minute)
		next := id(t, minute+1)
		publish(t, w.open(), next, rows)
		require.Equalf(t, map[string]int{"HEAD": 1, version(victim): rows, version(next): rows}, w.counts(t), "killed before call %d", n)
		minute += 2
		if done {
			require.Greater(t, n, int64(8), "it went through all its calls")
			return
		}
	}
}

func testOvertaken(t *testing.T, w *world) {
	older, newer := id(t, 1), id(t, 2)
	g := newGate(flips)
	done := start(t, w.open(g.fault), older, 60)
	<-g.reached
	publish(t, w.open(), newer, 30)
	assert.Equal(t, 60, w.counts(t)[version(older)], "rows of an apply under way are not touched")
	before := w.items(t)
	close(g.open)
	require.ErrorIs(t, <-done, job.ErrSuperseded)
	after := w.items(t)
	assert.Equal(t, map[string]int{"HEAD": 1, version(newer): 30}, w.counts(t), "its own rows are gone")
	for sk := range after {
		assert.Equal(t, before[sk], after[sk], "the newer one's are untouched")
	}
}

// A job that was shown between the head's reading and the flip becomes the
// previous version, so that its readers can page on.
func testOvertakenByOlder(t *testing.T, w *world) {
	a, b, c := id(t, 1), id(t, 2), id(t, 3)
	publish(t, w.open(), a, 30)
	g := newGate(flips)
	done := start(t, w.open(g.fault), c, 30)
	<-g.reached
	publish(t, w.open(), b, 30)
	page, err := w.open().Read(t.Context(), target, "", 1)
	require.NoError(t, err)
	close(g.open)
	require.NoError(t, <-done)
	head, err := w.open().Head(t.Context(), target)
	require.NoError(t, err)
	assert.Equal(t, version(c), head.Version)
	assert.Equal(t, version(b), head.Previous)
	rest, err := w.open().Read(t.Context(), target, page.Next, 2_500_000)
	require.NoError(t, err)
	assert.Equal(t, published(results(b, 30))[1:], rest.Comments)
	assert.Equal(t, map[string]int{"HEAD": 1, version(b): 30, version(c): 30}, w.counts(t))
}

func testLostReply(t *testing.T, w *world) {
	twice := func(_ context.Context, in any, call func() (any, error)) (any, error) {
		if flips(in) {
			if _, err := call(); err != nil {
				return nil, err
			}
		}
		return call()
	}
	j := id(t, 1)
	publish(t, w.open(twice), j, 30)
	assert.Equal(t, map[string]int{"HEAD": 1, version(j): 30}, w.counts(t))

	k := id(t, 2)
	lost := func(_ context.Context, in any, call func() (any, error)) (any, error) {
		out, err := call()
		if flips(in) && err == nil {
			w.advance(time.Second)
			return nil, errors.New("connection reset")
		}
		return out, err
	}
	at, err := w.open(lost).Publish(t.Context(), target, k, version(k), results(k, 30))
	require.NoError(t, err)
	head, err := w.open().Head(t.Context(), target)
	require.NoError(t, err)
	assert.Equal(t, head.AppliedAt, at, "the head's time, not that of the answer")
	shown, _, _, err := readAll(t.Context(), w.open(), 2_500_000)
	require.NoError(t, err)
	assert.Equal(t, k, shown)
}

func testSameJobOtherVersion(t *testing.T, w *world) {
	j := id(t, 1)
	g := newGate(flips)
	done := start(t, w.open(g.fault), j, 30)
	<-g.reached
	other := string(j) + ".another"
	require.NoError(t, failure(w.open().Publish(t.Context(), target, j, other, results(j, 20))))
	close(g.open)
	require.NoError(t, <-done, "the job is shown")
	assert.Equal(t, map[string]int{"HEAD": 1, other: 20}, w.counts(t), "two runs never mix")
}

func testAbandonedStage(t *testing.T, w *world) {
	a, b, dead := id(t, 1), id(t, 2), id(t, 9)
	err := failure(w.open(killed(flips)).Publish(t.Context(), target, dead, version(dead), results(dead, 60)))
	require.ErrorIs(t, err, errKilled)
	w.advance(59 * time.Second)
	publish(t, w.open(), a, 30)
	require.NoError(t, w.open().Erase(t.Context(), target))
	assert.Equal(t, 60, w.counts(t)[version(dead)], "a repeat of it may still be coming")
	w.advance(2 * time.Second)
	publish(t, w.open(), b, 30)
	assert.Equal(t, map[string]int{"HEAD": 1, version(a): 30, version(b): 30}, w.counts(t))
	publish(t, w.open(), dead, 60)
	shown, _, _, err := readAll(t.Context(), w.open(), 2_500_000)
	require.NoError(t, err)
	assert.Equal(t, dead, shown, "it can still be applied")

	gone := id(t, 10)
	err = failure(w.open(killed(flips)).Publish(t.Context(), target, gone, version(gone), results(gone, 60)))
	require.ErrorIs(t, err, errKilled)
	w.advance(61 * time.Second)
	require.NoError(t, w.open().Erase(t.Context(), target))
	assert.Equal(t, map[string]int{"HEAD": 1, version(b): 30, version(dead): 60}, w.counts(t), "erase removes it too")
}

func testInFlightStays(t *testing.T, w *world) {
	a, b, newest := id(t, 1), id(t, 2), id(t, 9)
	g := newGate(flips)
	done := start(t, w.open(g.fault), newest, 60)
	<-g.reached
	publish(t, w.open(), a, 30)
	publish(t, w.open(), b, 30)
	require.NoError(t, w.open().Erase(t.Context(), target))
	close(g.open)
	require.NoError(t, <-done)
	shown, all, _, err := readAll(t.Context(), w.open(), 2_500_000)
	require.NoError(t, err)
	assert.Equal(t, newest, shown)
	assert.Equal(t, published(results(newest, 60)), all)
}

// An old stage record is about to be cleaned up when its apply is repeated: the
// clean-up must not take the repeat's rows, however the two fall together.
func testRepeatMeetsCleanUp(t *testing.T, w *world) {
	claims := func(in any) bool { return puts(in, "STAGE#") }
	cases := map[string]struct {
		orphan  bool           // the rows have lost their stage record
		cleanUp func(any) bool // where the clean-up is held up
		// interleave lets the two go on; both have answered when it returns.
		interleave func(cleanUp, flip *gate, erased, done <-chan error)
	}{
		"repeat of rows without a record ends before the claim": {true, claims, func(cleanUp, flip *gate, erased, done <-chan error) {
			close(flip.open)
			require.NoError(t, <-done)
			close(cleanUp.open)
			require.NoError(t, <-erased)
		}},
		"repeat ends before the claim": {false, claims, func(cleanUp, flip *gate, erased, done <-chan error) {
			close(flip.open)
			require.NoError(t, <-done)
			close(cleanUp.open)
			require.NoError(t, <-erased)
		}},
		"repeat has staged before the claim": {false, claims, func(cleanUp, flip *gate, erased, done <-chan error) {
			<-flip.reached
			close(cleanUp.open)
			require.NoError(t, <-erased)
			close(flip.open)
			require.NoError(t, <-done)
		}},
		"repeat comes after the claim": {false, deletesRows, func(cleanUp, flip *gate, erased, done <-chan error) {
			close(flip.open)
			close(cleanUp.open)
			require.NoError(t, <-erased)
			require.NoError(t, <-done)
		}},
	}
	minute := 100
	for name, c := range cases {
		minute += 10
		dead, passer := id(t, minute), id(t, minute-1)
		err := failure(w.open(killed(flips)).Publish(t.Context(), target, dead, version(dead), results(dead, 60)))
		require.ErrorIs(t, err, errKilled)
		w.advance(61 * time.Second)
		publish(t, w.open(killed(deletesRows)), passer, 30) // leaves all clean-up undone
		if c.orphan {
			_, err := w.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &w.table, Key: map[string]types.AttributeValue{
				"pk": w.items(t)["HEAD"]["pk"], "sk": &types.AttributeValueMemberS{Value: "STAGE#" + version(dead)},
			}})
			require.NoError(t, err)
		}
		cleanUp, flip := newGate(c.cleanUp), newGate(flips)
		erased := make(chan error, 1)
		go func() { erased <- w.open(cleanUp.fault).Erase(t.Context(), target) }()
		<-cleanUp.reached
		done := start(t, w.open(flip.fault), dead, 60)
		c.interleave(cleanUp, flip, erased, done)
		shown, all, _, err := readAll(t.Context(), w.open(), 2_500_000)
		require.NoError(t, err, name)
		assert.Equal(t, dead, shown)
		assert.Equal(t, published(results(dead, 60)), all, name)
		assert.NotContains(t, w.counts(t), "STAGE")
	}
}

func testWaitsForCleanUp(t *testing.T, w *world) {
	j, passer := id(t, 9), id(t, 1)
	require.ErrorIs(t, failure(w.open(killed(flips)).Publish(t.Context(), target, j, version(j), results(j, 30))), errKilled)
	w.advance(61 * time.Second)
	// The remover dies after its claim, before its first delete of rows of j.
	publish(t, w.open(killed(nth(2, deletesRows))), passer, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer cancel()
	err := failure(w.open().Publish(ctx, target, j, version(j), results(j, 30)))
	require.ErrorIs(t, err, job.ErrUnavailable, "the mark is young")
	w.advance(61 * time.Second)
	publish(t, w.open(), j, 30)
	_, all, _, err := readAll(t.Context(), w.open(), 2_500_000)
	require.NoError(t, err)
	assert.Equal(t, published(results(j, 30)), all)
}

// An erase comes while an apply writes, and then the apply fails: it must still
// remove what it wrote after the erase.
func testFailedAfterErase(t *testing.T, w *world) {
	j := id(t, 1)
	g := newGate(nth(2, writesRows))
	throttled := func(_ context.Context, in any, call func() (any, error)) (any, error) {
		if flips(in) {
			return nil, &types.ProvisionedThroughputExceededException{}
		}
		return call()
	}
	done := start(t, w.open(g.fault, throttled), j, 26)
	<-g.reached
	require.NoError(t, w.open().Entomb(t.Context(), target, j))
	require.NoError(t, w.open().Erase(t.Context(), target))
	close(g.open)
	require.ErrorIs(t, <-done, job.ErrGone)
	assert.Equal(t, map[string]int{"HEAD": 1}, w.counts(t))
}

func testKilledThenErase(t *testing.T, w *world) {
	for minute, at := range []func(any) bool{flips, nth(3, writesRows), nth(1, writesRows)} {
		dead := id(t, minute+1)
		err := failure(w.open(killed(at)).Publish(t.Context(), target, dead, version(dead), results(dead, 101)))
		require.ErrorIs(t, err, errKilled)
		require.Equal(t, 1, w.counts(t)["STAGE"])
		require.NoError(t, w.open().Entomb(t.Context(), target, dead))
		require.NoError(t, w.open().Erase(t.Context(), target))
		assert.Equal(t, map[string]int{"HEAD": 1}, w.counts(t), "no row of the target is left, however young")
	}
}

func testEraseUnderWay(t *testing.T, w *world) {
	for minute, at := range []func(any) bool{flips, nth(2, writesRows), func(in any) bool { return puts(in, "STAGE#") }} {
		j := id(t, minute+1)
		g := newGate(at)
		done := start(t, w.open(g.fault), j, 130)
		<-g.reached
		require.NoError(t, w.open().Entomb(t.Context(), target, j))
		require.NoError(t, w.open().Erase(t.Context(), target))
		close(g.open)
		require.ErrorIs(t, <-done, job.ErrGone)
		assert.Equal(t, map[string]int{"HEAD": 1}, w.counts(t))
	}
}

func testEraseNewerJob(t *testing.T, w *world) {
	a, b, c := id(t, 1), id(t, 2), id(t, 3)
	publish(t, w.open(), a, 30)
	require.NoError(t, w.open().Entomb(t.Context(), target, a))
	g := newGate(flips)
	done := start(t, w.open(g.fault), c, 30) // acquired after the erase began
	<-g.reached
	publish(t, w.open(), b, 30)
	require.NoError(t, w.open().Erase(t.Context(), target))
	assert.Equal(t, map[string]int{"HEAD": 1, "STAGE": 1, version(b): 30, version(c): 30}, w.counts(t))
	close(g.open)
	require.NoError(t, <-done)
	_, all, _, err := readAll(t.Context(), w.open(), 2_500_000)
	require.NoError(t, err)
	assert.Equal(t, published(results(c, 30)), all)
}

// A batch that the network held back arrives when its target has been erased.
func testLateBatch(t *testing.T, w *world) {
	a, b := id(t, 1), id(t, 2)
	var late *dynamodb.BatchWriteItemInput
	capture := func(_ context.Context, in any, call func() (any, error)) (any, error) {
		if writesRows(in) {
			late = in.(*dynamodb.BatchWriteItemInput)
		}
		return call()
	}
	publish(t, w.open(capture), a, 20)
	require.NoError(t, w.open().Entomb(t.Context(), target, a))
	require.NoError(t, w.open().Erase(t.Context(), target))
	arrive := func() {
		_, err := w.client.BatchWriteItem(t.Context(), late)
		require.NoError(t, err)
		require.Equal(t, 20, w.counts(t)[version(a)])
	}
	arrive()
	_, err := w.open().Read(t.Context(), target, "", 1)
	require.ErrorIs(t, err, job.ErrNotFound, "nobody sees it")
	require.NoError(t, w.open().Erase(t.Context(), target))
	assert.Equal(t, map[string]int{"HEAD": 1}, w.counts(t), "the next erase removes it")
	arrive()
	publish(t, w.open(), b, 20)
	assert.Equal(t, map[string]int{"HEAD": 1, version(b): 20}, w.counts(t), "and so does the next publish")
}
