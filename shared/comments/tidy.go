package comments

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"sunhwa/shared/job"
)

// How rows go away.
//
// A version at or below the head's job that the head does not show can never be
// shown again, so its rows may be removed at any time. A version above it may
// still be shown by an apply: its rows are removed only when its stage record is
// older than stageLife, which no apply outlives, and only under a claim: the
// remover marks the record, on the condition that it is still as it was read, and
// an apply that begins later waits for the mark to go. So no apply's rows are
// taken from under it, however old the record of an earlier, dead apply is.

// stageRecord is a stage record as stored. Times are epoch milliseconds.
type stageRecord struct {
	stagedAt   int64
	removingAt int64 // 0 = nobody is removing its rows
}

// stage writes the stage record of a version with the present time, before any of
// its rows. It waits while a clean-up holds the version: a moment, or stageLife when
// the one cleaning up has died; job.ErrUnavailable when ctx ends first.
func (t *Table) stage(ctx context.Context, pk, version string) error {
	for try := 0; ; try++ {
		now := t.now()
		_, err := t.db.PutItem(ctx, &dynamodb.PutItemInput{
			TableName:                 &t.name,
			Item:                      stageItem(pk, version, stageRecord{stagedAt: now.UnixMilli()}),
			ConditionExpression:       aws.String("attribute_not_exists(#removingAt) OR #removingAt < :dead"),
			ExpressionAttributeNames:  names(attrRemovingAt),
			ExpressionAttributeValues: item{":dead": num(now.Add(-stageLife).UnixMilli())},
		})
		if !refused(err) {
			return wrap("write the stage record", err)
		}
		if err := wait(ctx, backoff(try+2)); err != nil {
			return wrap("wait for a clean-up of this version", err)
		}
	}
}

func stageItem(pk, version string, r stageRecord) item {
	it := item{attrPK: str(pk), attrSK: str(stageKey(version)), attrStagedAt: num(r.stagedAt)}
	if r.removingAt != 0 {
		it[attrRemovingAt] = num(r.removingAt)
	}
	return it
}

// stages reads every stage record of a partition, by version.
func (t *Table) stages(ctx context.Context, pk string) (map[string]stageRecord, error) {
	found := map[string]stageRecord{}
	err := t.query(ctx, pk, "begins_with(#sk, :stage)", item{":stage": str(stagePrefix)}, nil, func(it item) bool {
		version := strings.TrimPrefix(getStr(it, attrSK), stagePrefix)
		found[version] = stageRecord{getNum(it, attrStagedAt), getNum(it, attrRemovingAt)}
		return true
	})
	return found, err
}

// old reports whether at, in epoch milliseconds, is more than stageLife ago.
func (t *Table) old(at int64) bool { return at < t.now().Add(-stageLife).UnixMilli() }

// tidy removes, after h was put in place: its stage record, the rows below its
// previous version and between that and itself, and whatever other applies left
// behind more than stageLife ago.
func (t *Table) tidy(ctx context.Context, pk string, h *head) error {
	if err := t.deleteKeys(ctx, pk, []string{stageKey(h.Version)}); err != nil {
		return err
	}
	staged, err := t.stages(ctx, pk)
	if err != nil {
		return err
	}
	var doomed []string
	if h.Previous != "" {
		err = t.query(ctx, pk, "#sk < :previous", item{":previous": str(rowsFrom(h.Previous))}, []string{attrSK}, func(it item) bool {
			doomed = append(doomed, getStr(it, attrSK))
			return true
		})
		if err != nil {
			return err
		}
	}
	// Between the two lie jobs that were refused: an apply still under way removes
	// its own rows, the others cannot.
	between, values := "#sk < :shown", item{":shown": str(rowsFrom(h.Version))}
	if h.Previous != "" {
		between, values[":previous"] = "#sk BETWEEN :previous AND :shown", str(rowsTo(h.Previous))
	}
	err = t.query(ctx, pk, between, values, []string{attrSK}, func(it item) bool {
		version, _, ok := parseRow(getStr(it, attrSK))
		if r, underWay := staged[version]; ok && (!underWay || t.old(r.stagedAt)) {
			doomed = append(doomed, getStr(it, attrSK))
		}
		return true
	})
	if err != nil {
		return err
	}
	if err := t.deleteKeys(ctx, pk, doomed); err != nil {
		return err
	}
	for version, r := range staged {
		if !t.old(r.stagedAt) {
			continue
		}
		if err := t.removeVersion(ctx, pk, version, &r, h); err != nil {
			return err
		}
	}
	return nil
}

// removeVersion removes the rows of a version whose apply has ended, then its
// stage record. r is the record as it was read, nil when there was none; h is the
// head as it was read after that, nil when absent or expired.
func (t *Table) removeVersion(ctx context.Context, pk, version string, r *stageRecord, h *head) error {
	if !h.outdates(jobOf(version)) {
		return t.removeClaimed(ctx, pk, version, r)
	}
	if !h.shows(version) {
		if err := t.deleteRowsOf(ctx, pk, version); err != nil {
			return err
		}
	}
	return t.deleteKeys(ctx, pk, []string{stageKey(version)})
}

// removeClaimed removes a version that an apply may yet want to show: under a
// claim on its stage record, and not when it has been shown meanwhile. Somebody
// else at work on it, remover or apply, is no error.
func (t *Table) removeClaimed(ctx context.Context, pk, version string, r *stageRecord) error {
	mine := stageRecord{removingAt: t.now().UnixMilli()}
	in := &dynamodb.PutItemInput{TableName: &t.name}
	switch {
	case r == nil:
		in.ConditionExpression = aws.String("attribute_not_exists(#pk)")
		in.ExpressionAttributeNames = names(attrPK)
	case r.removingAt == 0:
		mine.stagedAt = r.stagedAt
		in.ConditionExpression = aws.String("#stagedAt = :stagedAt AND attribute_not_exists(#removingAt)")
		in.ExpressionAttributeNames = names(attrStagedAt, attrRemovingAt)
		in.ExpressionAttributeValues = item{":stagedAt": num(r.stagedAt)}
	case t.old(r.removingAt): // that remover died
		mine.stagedAt = r.stagedAt
		in.ConditionExpression = aws.String("#removingAt = :removingAt")
		in.ExpressionAttributeNames = names(attrRemovingAt)
		in.ExpressionAttributeValues = item{":removingAt": num(r.removingAt)}
	default:
		return nil
	}
	in.Item = stageItem(pk, version, mine)
	if _, err := t.db.PutItem(ctx, in); refused(err) {
		return nil
	} else if err != nil {
		return wrap("claim a stage record", err)
	}
	_, live, err := t.readHead(ctx, pk)
	if err != nil {
		return err
	}
	if !live.shows(version) {
		if err := t.deleteRowsOf(ctx, pk, version); err != nil {
			return err // the mark stays, and keeps applies away until it is old
		}
	}
	_, err = t.db.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName:                 &t.name,
		Key:                       item{attrPK: str(pk), attrSK: str(stageKey(version))},
		ConditionExpression:       aws.String("#removingAt = :removingAt"),
		ExpressionAttributeNames:  names(attrRemovingAt),
		ExpressionAttributeValues: item{":removingAt": num(mine.removingAt)},
	})
	if refused(err) {
		return nil
	}
	return wrap("delete a stage record", err)
}

func (t *Table) deleteRowsOf(ctx context.Context, pk, version string) error {
	var sks []string
	err := t.query(ctx, pk, "begins_with(#sk, :rows)", item{":rows": str(rowsFrom(version))}, []string{attrSK}, func(it item) bool {
		sks = append(sks, getStr(it, attrSK))
		return true
	})
	if err != nil {
		return err
	}
	return t.deleteKeys(ctx, pk, sks)
}

// Erase deletes every row and stage record of the target that the head does not
// show; after Entomb, that is all of them, however young. Of versions acquired
// after the tombstone it touches only what an apply left behind a minute ago or
// longer: those are not what was erased. An apply under way that goes on writing
// meets the tombstone and removes its own rows. A repeat is harmless.
func (t *Table) Erase(ctx context.Context, target job.Target) error {
	// A claim must have ended before another takes it for abandoned.
	ctx, cancel := context.WithTimeout(ctx, applyLimit)
	defer cancel()
	pk := partition(target)
	// In this order: a version whose rows are seen without a stage record has then
	// either been shown, which the head read last tells, or nobody is writing it.
	rows := map[string]bool{}
	err := t.query(ctx, pk, "#sk < :head", item{":head": str(headKey)}, []string{attrSK}, func(it item) bool {
		if version, _, ok := parseRow(getStr(it, attrSK)); ok {
			rows[version] = true
		}
		return true
	})
	if err != nil {
		return err
	}
	staged, err := t.stages(ctx, pk)
	if err != nil {
		return err
	}
	_, live, err := t.readHead(ctx, pk)
	if err != nil {
		return err
	}
	for version := range staged {
		rows[version] = true
	}
	for version := range rows {
		r, isStaged := staged[version]
		var seen *stageRecord
		if isStaged {
			seen = &r
		}
		if live.shows(version) && !isStaged {
			continue
		}
		if isStaged && !t.old(r.stagedAt) && !live.outdates(jobOf(version)) {
			continue
		}
		if err := t.removeVersion(ctx, pk, version, seen, live); err != nil {
			return err
		}
	}
	return nil
}
