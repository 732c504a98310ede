package comments_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"sunhwa/infra/testkit"
	"sunhwa/shared/job"
)

// TestTable is the contract of the published comments, on every server.
func TestTable(t *testing.T) {
	contract := []struct {
		name string
		run  func(*testing.T, *world)
	}{
		{"Publish_everySize", testEverySize},
		{"Publish_storesWhatTheContractNames", testStoredForm},
		{"Publish_tenAtOnce", testTenAtOnce},
		{"Publish_tenJobsAtOnce", testTenJobsAtOnce},
		{"Publish_olderAfterNewer", testOlderAfterNewer},
		{"Publish_tellsTheHeadsTime", testTimeTold},
		{"Publish_removesPreviousPrevious", testPreviousPrevious},
		{"Publish_refusesWhatIsNoVersion", testBadInput},
		{"Read_wholeVersionsOnly", testReadersSeeWholeVersions},
		{"Read_cursorRules", testCursorRules},
		{"Read_editedCursor", testEditedCursor},
		{"Read_pagesByBytes", testPagesByBytes},
		{"Entomb_refusesAndIsOutlived", testTombstone},
		{"Entomb_expired", testExpiredTombstone},
		{"Erase_leavesOnlyTheTombstone", testErase},
		{"EnsureTable_again", func(t *testing.T, w *world) { require.NoError(t, w.open().EnsureTable(t.Context())) }},

		{"Publish_unprocessedItems", testUnprocessed},
		{"Publish_unprocessedForEver", testUnprocessedForEver},
		{"Publish_killedBeforeTheFlipThenAgain", testKilledThenAgain},
		{"Publish_killedAtEveryCall", testKilledAtEveryCall},
		{"Publish_overtakenBeforeTheFlip", testOvertaken},
		{"Publish_overtakenByOlderKeepsPrevious", testOvertakenByOlder},
		{"Publish_lostReplyOfTheFlip", testLostReply},
		{"Publish_sameJobOtherVersion", testSameJobOtherVersion},
		{"Publish_abandonedStageIsRemoved", testAbandonedStage},
		{"Publish_inFlightRowsStay", testInFlightStays},
		{"Publish_repeatMeetsCleanUp", testRepeatMeetsCleanUp},
		{"Publish_waitsForCleanUp", testWaitsForCleanUp},
		{"Publish_failedAfterErase", testFailedAfterErase},
		{"Erase_applyKilledBeforeTheFlip", testKilledThenErase},
		{"Erase_applyUnderWay", testEraseUnderWay},
		{"Erase_newerJobUntouched", testEraseNewerJob},
		{"Erase_lateBatchIsRemovedByTheNext", testLateBatch},
	}
	for _, name := range testkit.DynamoNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testkit.DynamoStart(t, name)
			for _, c := range contract {
				t.Run(c.name, func(t *testing.T) { c.run(t, newWorld(t, server)) })
			}
		})
	}
}

func testEverySize(t *testing.T, w *world) {
	table := w.open()
	for minute, n := range []int{1, 25, 26, 100, 101, 1000} {
		j := id(t, minute)
		publish(t, table, j, n)
		publish(t, table, j, n)
		shown, all, pages, err := readAll(t.Context(), table, 2_500_000)
		require.NoError(t, err)
		assert.Equal(t, j, shown)
		assert.Equal(t, 1, pages)
		assert.Equal(t, published(results(j, n)), all)
		assert.Equal(t, n, w.counts(t)[version(j)])
	}
}

func testStoredForm(t *testing.T, w *world) {
	table := w.open()
	a, b := id(t, 1), id(t, 2)
	publish(t, table, a, 1)
	publish(t, table, b, 2)
	pk := &types.AttributeValueMemberS{Value: base64.RawURLEncoding.EncodeToString([]byte(target.Tenant)) + "#course-1"}
	s := func(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
	row := func(j job.ID, i int) map[string]types.AttributeValue {
		r := results(j, i+1)[i]
		return map[string]types.AttributeValue{
			"pk": pk, "sk": s(fmt.Sprintf("%s#%04d", version(j), i)), "id": s(r.ID), "text": s(r.After), "original": s(r.Before),
		}
	}
	assert.Equal(t, map[string]map[string]types.AttributeValue{
		"HEAD": {
			"pk": pk, "sk": s("HEAD"), "jobId": s(string(b)), "version": s(version(b)), "previousVersion": s(version(a)),
			"count": &types.AttributeValueMemberN{Value: "2"}, "appliedAt": s("2030-01-02T03:04:05.678Z"),
		},
		version(a) + "#0000": row(a, 0), version(b) + "#0000": row(b, 0), version(b) + "#0001": row(b, 1),
	}, w.items(t))

	head, err := table.Head(t.Context(), target)
	require.NoError(t, err)
	assert.Equal(t, &job.Head{JobID: b, Version: version(b), Previous: version(a), Count: 2, AppliedAt: w.clock()}, head)

	require.NoError(t, table.Entomb(t.Context(), target, a))
	grave := w.items(t)["HEAD"]
	expires := strconv.FormatInt(w.clock().Add(time.Hour).Unix()+1, 10)
	assert.Equal(t, map[string]types.AttributeValue{
		"pk": pk, "sk": s("HEAD"), "jobId": s(string(b)), "expiresAt": &types.AttributeValueMemberN{Value: expires},
	}, grave)
}

func testTenAtOnce(t *testing.T, w *world) {
	j := id(t, 1)
	var g errgroup.Group
	for range 10 {
		table := w.open()
		g.Go(func() error { return failure(table.Publish(t.Context(), target, j, version(j), results(j, 60))) })
	}
	require.NoError(t, g.Wait())
	_, all, _, err := readAll(t.Context(), w.open(), 2_500_000)
	require.NoError(t, err)
	assert.Equal(t, published(results(j, 60)), all)
	assert.Equal(t, map[string]int{"HEAD": 1, version(j): 60}, w.counts(t))
}

func testTenJobsAtOnce(t *testing.T, w *world) {
	var g errgroup.Group
	for n := range 10 {
		j, table := id(t, n), w.open()
		g.Go(func() error {
			err := failure(table.Publish(t.Context(), target, j, version(j), results(j, 30)))
			if n < 9 && err != nil {
				assert.ErrorIs(t, err, job.ErrSuperseded)
				return nil
			}
			return err // the newest always wins
		})
	}
	require.NoError(t, g.Wait())
	head, err := w.open().Head(t.Context(), target)
	require.NoError(t, err)
	want := map[string]int{"HEAD": 1, head.Version: 30}
	if head.Previous != "" {
		want[head.Previous] = 30
	}
	assert.Equal(t, want, w.counts(t), "only what the head shows is left")
	shown, all, _, err := readAll(t.Context(), w.open(), 2_500_000)
	require.NoError(t, err)
	assert.Equal(t, head.JobID, shown)
	assert.Equal(t, published(results(shown, 30)), all)
}

func testOlderAfterNewer(t *testing.T, w *world) {
	table := w.open()
	older, newer := id(t, 1), id(t, 2)
	publish(t, table, newer, 30)
	before := w.items(t)
	err := failure(table.Publish(t.Context(), target, older, version(older), results(older, 30)))
	require.ErrorIs(t, err, job.ErrSuperseded)
	assert.Equal(t, before, w.items(t), "nothing was staged, nothing touched")
}

// testTimeTold: whoever publishes a job, or finds it published, is told since when
// the head shows it, in what the head can hold of it.
func testTimeTold(t *testing.T, w *world) {
	w.advance(999 * time.Microsecond)
	j := id(t, 1)
	g := newGate(flips)
	type told struct {
		at  time.Time
		err error
	}
	late := make(chan told, 1)
	go func() {
		at, err := w.open(g.fault).Publish(t.Context(), target, j, version(j), results(j, 3))
		late <- told{at, err}
	}()
	<-g.reached
	w.advance(time.Second)
	first, err := w.open().Publish(t.Context(), target, j, version(j), results(j, 3))
	require.NoError(t, err)
	w.advance(time.Second)
	again, err := w.open().Publish(t.Context(), target, j, version(j), results(j, 3))
	require.NoError(t, err)
	close(g.open)
	overtaken := <-late
	require.NoError(t, overtaken.err)

	head, err := w.open().Head(t.Context(), target)
	require.NoError(t, err)
	assert.Equal(t, time.Date(2030, 1, 2, 3, 4, 6, 678_000_000, time.UTC), head.AppliedAt)
	assert.Equal(t, head.AppliedAt, first)
	assert.Equal(t, head.AppliedAt, again)
	assert.Equal(t, head.AppliedAt, overtaken.at)
}

func testPreviousPrevious(t *testing.T, w *world) {
	table := w.open()
	a, b, c := id(t, 1), id(t, 2), id(t, 3)
	publish(t, table, a, 60)
	publish(t, table, b, 60)
	assert.Equal(t, map[string]int{"HEAD": 1, version(a): 60, version(b): 60}, w.counts(t))
	publish(t, table, c, 60)
	assert.Equal(t, map[string]int{"HEAD": 1, version(b): 60, version(c): 60}, w.counts(t))
}

func testBadInput(t *testing.T, w *world) {
	table := w.open()
	a, b := id(t, 1), id(t, 2)
	assert.Error(t, failure(table.Publish(t.Context(), target, a, version(b), results(a, 1))), "of another job")
	assert.Error(t, failure(table.Publish(t.Context(), target, a, version(a)+"#1", results(a, 1))), "with a separator")
	assert.Error(t, failure(table.Publish(t.Context(), target, a, version(a), nil)), "empty")
	assert.Error(t, failure(table.Publish(t.Context(), target, a, version(a), results(a, 10_001))), "more than four digits")
	assert.Empty(t, w.counts(t))
}

func testReadersSeeWholeVersions(t *testing.T, w *world) {
	rows, publishes := 40, 8
	if w.server.Slow {
		rows, publishes = 10, 3
	}
	publish(t, w.open(), id(t, 0), rows)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var writers, readers errgroup.Group
	writers.Go(func() error {
		defer stop()
		for n := 1; n <= publishes; n++ {
			j := id(t, n)
			if err := failure(w.open().Publish(t.Context(), target, j, version(j), results(j, rows))); err != nil {
				return err
			}
		}
		return nil
	})
	for r := range 2 {
		readers.Go(func() error {
			table, last := w.open(), job.ID("")
			for ctx.Err() == nil {
				// One reader takes all at once, the other pages.
				j, all, _, err := readAll(t.Context(), table, []int{2_500_000, 1500}[r])
				switch {
				case err == nil:
				case errorIsOneOf(err, job.ErrGone, job.ErrUnavailable):
					continue // told so, not shown a part
				default:
					return err
				}
				assert.Equal(t, published(results(j, rows)), all, "one version, whole")
				assert.GreaterOrEqual(t, j, last, "never back")
				last = j
			}
			return nil
		})
	}
	require.NoError(t, writers.Wait())
	require.NoError(t, readers.Wait())
	j, _, _, err := readAll(t.Context(), w.open(), 1500)
	require.NoError(t, err)
	assert.Equal(t, id(t, publishes).Time(), j.Time())
}

func testCursorRules(t *testing.T, w *world) {
	table, ctx := w.open(), t.Context()
	_, err := table.Read(ctx, target, "", 1)
	require.ErrorIs(t, err, job.ErrNotFound)
	a, b, c := id(t, 1), id(t, 2), id(t, 3)
	publish(t, table, a, 3)
	first, err := table.Read(ctx, target, "", 1)
	require.NoError(t, err)
	assert.Len(t, first.Comments, 1, "at least one row")
	appliedAt := w.clock()

	w.advance(time.Minute)
	publish(t, table, b, 3)
	second, err := table.Read(ctx, target, first.Next, 1)
	require.NoError(t, err)
	assert.Equal(t, published(results(a, 3))[1:2], second.Comments, "a cursor stays with its version")
	assert.Equal(t, a, second.JobID)
	assert.Equal(t, appliedAt, second.AppliedAt)
	third, err := table.Read(ctx, target, second.Next, 1)
	require.NoError(t, err)
	assert.Equal(t, published(results(a, 3))[2:], third.Comments)
	assert.Empty(t, third.Next)

	publish(t, table, c, 3)
	_, err = table.Read(ctx, target, first.Next, 1)
	require.ErrorIs(t, err, job.ErrGone, "its version is neither shown nor the one before")

	made, err := base64.RawURLEncoding.DecodeString(first.Next)
	require.NoError(t, err)
	for _, bad := range []string{
		"x", "한국", first.Next + "=", first.Next[:20], strings.ToLower(first.Next), "-1",
		enc("HEAD#0001#2#0"), enc(string(made) + "#1"), enc(strings.Replace(string(made), "#0001#", "#0003#", 1)),
		enc(strings.Replace(string(made), "#0001#", "#1#", 1)), enc(strings.Replace(string(made), "#0001#", "#-001#", 1)),
	} {
		_, err = table.Read(ctx, target, bad, 1)
		assert.ErrorIsf(t, err, job.ErrCursor, "%q", bad)
	}

	shown, err := table.Read(ctx, target, "", 1)
	require.NoError(t, err)
	require.NoError(t, table.Entomb(ctx, target, c))
	_, err = table.Read(ctx, target, shown.Next, 1)
	require.ErrorIs(t, err, job.ErrGone, "erased while a reader was paging")
	_, err = table.Read(ctx, target, "", 1)
	require.ErrorIs(t, err, job.ErrNotFound)
}

// testEditedCursor: what a hand-edited cursor says of its version is not passed
// on, and never taken for a fault of the table.
func testEditedCursor(t *testing.T, w *world) {
	table, ctx := w.open(), t.Context()
	a, b := id(t, 1), id(t, 2)
	publish(t, table, a, 4)
	at := w.clock()
	edited := func(index, count int, ms int64) string {
		return enc(fmt.Sprintf("%s#%04d#%d#%d", version(a), index, count, ms))
	}
	first, err := table.Read(ctx, target, "", 1)
	require.NoError(t, err)
	require.Equal(t, edited(1, 4, at.UnixMilli()), first.Next, "the form that the cases below edit")
	lastMoment := time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC).UnixMilli()

	// read follows the cursors: a full page does not see where the rows end.
	read := func(cursor string, pageBytes int) (page *job.PublishedPage, err error) {
		for cursor != "" && err == nil {
			if page, err = table.Read(ctx, target, cursor, pageBytes); err == nil {
				cursor = page.Next
			}
		}
		return page, err
	}
	refused := func(says, cursor string) {
		t.Helper()
		for _, pageBytes := range []int{1, 2_500_000} {
			_, err := read(cursor, pageBytes)
			assert.ErrorIs(t, err, job.ErrCursor, says)
			assert.NotErrorIs(t, err, job.ErrUnavailable, says)
		}
	}
	both := func() {
		refused("before 1970", edited(1, 4, -1))
		refused("a year of five digits", edited(1, 4, lastMoment+1))
		refused("beyond every calendar", edited(1, 4, 1<<63-1))
		refused("no number", enc(version(a)+"#0001#4#99999999999999999999"))
		refused("fewer rows than there are", edited(1, 2, at.UnixMilli()))
		refused("one row fewer", edited(1, 3, at.UnixMilli()))
		refused("one row more", edited(1, 5, at.UnixMilli()))
		refused("more rows than there can be", edited(1, 10_001, at.UnixMilli()))
		refused("beginning after the last row", edited(4, 5, at.UnixMilli()))
		refused("beginning long after it", edited(9_998, 10_000, at.UnixMilli()))
		page, err := read(edited(1, 4, at.UnixMilli()), 2_500_000)
		require.NoError(t, err)
		assert.Equal(t, published(results(a, 4))[1:], page.Comments)
		assert.Equal(t, at, page.AppliedAt)
	}
	both()
	refused("another time than the head's", edited(1, 4, at.UnixMilli()+1000))
	refused("the last moment", edited(1, 4, lastMoment))

	w.advance(time.Minute)
	publish(t, table, b, 9) // of a, the head has neither count nor time now
	both()
	page, err := read(edited(1, 4, lastMoment), 2_500_000)
	require.NoError(t, err)
	assert.Equal(t, 9999, page.AppliedAt.Year(), "nobody else knows the time, but any can be written")
}

func enc(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

func testPagesByBytes(t *testing.T, w *world) {
	table, j := w.open(), id(t, 1)
	rows := make([]job.Rewritten, 1000)
	for i := range rows {
		// 700 Korean characters are 2,100 bytes; both texts together pass 1 MB several times.
		rows[i] = job.Rewritten{ID: fmt.Sprint("댓글-", i), Before: strings.Repeat("별로<", 175) + "\"\n", After: strings.Repeat("아쉽", 350)}
	}
	require.NoError(t, failure(table.Publish(t.Context(), target, j, version(j), rows)))
	const limit = 2_500_000
	var all []job.PublishedComment
	var sizes []int
	for cursor := ""; ; {
		page, err := table.Read(t.Context(), target, cursor, limit)
		require.NoError(t, err)
		size := 0
		for _, c := range page.Comments {
			size += jsonLen(t, c)
		}
		assert.LessOrEqual(t, size, limit)
		sizes = append(sizes, size)
		all = append(all, page.Comments...)
		if cursor = page.Next; cursor == "" {
			break
		}
		next := published(rows)[len(all)]
		assert.Greater(t, size+jsonLen(t, next), limit, "no page ends early")
	}
	assert.Len(t, sizes, 2)
	assert.Equal(t, published(rows), all)
}

func jsonLen(t *testing.T, c job.PublishedComment) int {
	t.Helper()
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	require.NoError(t, e.Encode(c))
	return b.Len() - len("\n")
}

func testTombstone(t *testing.T, w *world) {
	table, ctx := w.open(), t.Context()
	require.NoError(t, table.Entomb(ctx, target, ""))
	assert.Empty(t, w.counts(t), "neither head nor newest: nothing written")

	a, b, c, d := id(t, 1), id(t, 2), id(t, 3), id(t, 4)
	publish(t, table, b, 3)
	require.NoError(t, table.Entomb(ctx, target, ""))
	head, err := table.Head(ctx, target)
	require.NoError(t, err)
	assert.Equal(t, &job.Head{JobID: b}, head)
	require.NoError(t, table.Entomb(ctx, target, c))
	require.NoError(t, table.Entomb(ctx, target, a), "a repeat never lowers it")
	head, err = table.Head(ctx, target)
	require.NoError(t, err)
	assert.Equal(t, c, head.JobID)
	assert.True(t, head.Tombstone())

	require.NoError(t, table.Erase(ctx, target))
	for _, j := range []job.ID{a, b, c} {
		assert.ErrorIs(t, failure(table.Publish(ctx, target, j, version(j), results(j, 3))), job.ErrGone)
	}
	assert.Equal(t, map[string]int{"HEAD": 1}, w.counts(t), "nothing was staged")

	publish(t, table, d, 3)
	assert.Equal(t, map[string]int{"HEAD": 1, version(d): 3}, w.counts(t))
	assert.NotContains(t, w.items(t)["HEAD"], "expiresAt", "a published head does not expire")
}

func testExpiredTombstone(t *testing.T, w *world) {
	table, ctx := w.open(), t.Context()
	a, b := id(t, 1), id(t, 2)
	require.NoError(t, table.Entomb(ctx, target, b))
	w.advance(time.Hour)
	_, err := table.Head(ctx, target)
	require.NoError(t, err, "it lives its retention")
	w.advance(2 * time.Second)
	_, err = table.Head(ctx, target)
	require.ErrorIs(t, err, job.ErrNotFound)
	_, err = table.Read(ctx, target, "", 1)
	require.ErrorIs(t, err, job.ErrNotFound)
	before := w.items(t)
	require.NoError(t, table.Entomb(ctx, target, ""))
	assert.Equal(t, before, w.items(t), "as absent: nothing written")
	publish(t, table, a, 3)
	head, err := table.Head(ctx, target)
	require.NoError(t, err)
	assert.Equal(t, a, head.JobID)
	assert.Empty(t, head.Previous)
}

func testErase(t *testing.T, w *world) {
	table, ctx := w.open(), t.Context()
	require.NoError(t, table.Erase(ctx, target), "nothing there")
	a, b := id(t, 1), id(t, 2)
	publish(t, table, a, 60)
	publish(t, table, b, 130)
	before := w.items(t)
	require.NoError(t, table.Erase(ctx, target))
	assert.Equal(t, before, w.items(t), "without a tombstone, what is shown stays")
	require.NoError(t, table.Entomb(ctx, target, b))
	require.NoError(t, table.Erase(ctx, target))
	require.NoError(t, table.Erase(ctx, target), "a repeat")
	assert.Equal(t, map[string]int{"HEAD": 1}, w.counts(t))
}
