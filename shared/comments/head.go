package comments

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"sunhwa/shared/job"
)

// timeLayout is RFC 3339 with milliseconds; times are in UTC.
const timeLayout = "2006-01-02T15:04:05.000Z07:00"

// head is the head as stored.
type head struct {
	job.Head
	expiresAt int64 // epoch seconds; 0 = never
}

// shows reports whether version can be read through the head. A nil head shows nothing.
func (h *head) shows(version string) bool {
	return h != nil && version != "" && (h.Version == version || h.Previous == version)
}

// outdates reports whether no version of job id can ever be shown any more,
// unless it is shown already.
func (h *head) outdates(id job.ID) bool { return h != nil && id <= h.JobID }

// Head returns what is published for the target, or its tombstone. It reads
// consistently. job.ErrNotFound when there is no head or its time has passed.
func (t *Table) Head(ctx context.Context, target job.Target) (*job.Head, error) {
	_, live, err := t.readHead(ctx, partition(target))
	if err != nil {
		return nil, err
	}
	if live == nil {
		return nil, job.ErrNotFound
	}
	return &live.Head, nil
}

// readHead reads the head consistently. stored is what the table holds and what
// a conditional write must name; live is the same, or nil when it has expired.
// Both are nil when there is none.
func (t *Table) readHead(ctx context.Context, pk string) (stored, live *head, err error) {
	out, err := t.db.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:      &t.name,
		Key:            item{attrPK: str(pk), attrSK: str(headKey)},
		ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return nil, nil, wrap("read the head", err)
	}
	if len(out.Item) == 0 {
		return nil, nil, nil
	}
	h := &head{
		Head: job.Head{
			JobID:    job.ID(getStr(out.Item, attrJobID)),
			Version:  getStr(out.Item, attrVersion),
			Previous: getStr(out.Item, attrPrevious),
			Count:    int(getNum(out.Item, attrCount)),
		},
		expiresAt: getNum(out.Item, attrExpiresAt),
	}
	if s := getStr(out.Item, attrAppliedAt); s != "" {
		if h.AppliedAt, err = time.Parse(time.RFC3339, s); err != nil {
			return nil, nil, fmt.Errorf("comments: read the head: %w", err)
		}
	}
	if h.expiresAt != 0 && h.expiresAt <= t.now().Unix() {
		return h, nil, nil
	}
	return h, h, nil
}

// replaceHead puts next in place of seen in one write, on the condition that the
// head is still exactly seen (nil: still absent). Not won means that it is not,
// and nothing was written; or that this very write landed and its reply was lost.
//
// The condition is stricter than "absent or older": a head that another job
// moved in between would be older too, but next.Previous was read from seen and
// must name the version that next replaces.
func (t *Table) replaceHead(ctx context.Context, pk string, seen, next *head) (won bool, err error) {
	in := &dynamodb.PutItemInput{TableName: &t.name, Item: headItem(pk, next)}
	switch {
	case seen == nil:
		in.ConditionExpression = aws.String("attribute_not_exists(#pk)")
		in.ExpressionAttributeNames = names(attrPK)
	case seen.Tombstone():
		in.ConditionExpression = aws.String("#jobId = :jobId AND #expiresAt = :expiresAt AND attribute_not_exists(#version)")
		in.ExpressionAttributeNames = names(attrJobID, attrExpiresAt, attrVersion)
		in.ExpressionAttributeValues = item{":jobId": str(string(seen.JobID)), ":expiresAt": num(seen.expiresAt)}
	default:
		in.ConditionExpression = aws.String("#jobId = :jobId AND #version = :version")
		in.ExpressionAttributeNames = names(attrJobID, attrVersion)
		in.ExpressionAttributeValues = item{":jobId": str(string(seen.JobID)), ":version": str(seen.Version)}
	}
	if _, err = t.db.PutItem(ctx, in); refused(err) {
		return false, nil
	}
	return err == nil, wrap("write the head", err)
}

// headItem leaves out what is empty: a tombstone has no version, a published
// head does not expire.
func headItem(pk string, h *head) map[string]types.AttributeValue {
	it := item{attrPK: str(pk), attrSK: str(headKey), attrJobID: str(string(h.JobID))}
	if h.expiresAt != 0 {
		it[attrExpiresAt] = num(h.expiresAt)
	}
	if h.Tombstone() {
		return it
	}
	it[attrVersion] = str(h.Version)
	it[attrCount] = num(int64(h.Count))
	it[attrAppliedAt] = str(h.AppliedAt.UTC().Format(timeLayout))
	if h.Previous != "" {
		it[attrPrevious] = str(h.Previous)
	}
	return it
}

// Entomb puts a tombstone in place of the target's head, so that every apply
// under way is refused: its jobId is the greater of the head's and newest (the
// newest job acquired, "" when there is none). It lasts the retention, at least
// two minutes. A target with neither head nor newest is left as it is. A repeat
// is harmless.
func (t *Table) Entomb(ctx context.Context, target job.Target, newest job.ID) error {
	pk := partition(target)
	for try := 0; ; try++ {
		stored, live, err := t.readHead(ctx, pk)
		if err != nil {
			return err
		}
		mark := newest
		if live != nil {
			mark = max(mark, live.JobID)
		}
		if mark == "" {
			return nil
		}
		// One second more than the retention makes up for the fraction cut off.
		grave := &head{Head: job.Head{JobID: mark}, expiresAt: t.now().Add(t.tombstone).Unix() + 1}
		won, err := t.replaceHead(ctx, pk, stored, grave)
		if won || err != nil {
			return err
		}
		if err := wait(ctx, backoff(try)); err != nil {
			return wrap("write the tombstone", err)
		}
	}
}
