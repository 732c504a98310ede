package comments

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"sunhwa/shared/job"
)

const (
	// tidyMargin is what clean-up leaves of the caller's time.
	tidyMargin = 3 * time.Second
	// tidyLimit is the longest that clean-up after a flip may take.
	tidyLimit = 10 * time.Second
	// grace is granted to removing one's own rows even when the caller's time is up
	// (25 s of the 30 s that an HTTP API waits): nobody else may come to remove them.
	grace = 4 * time.Second
)

// Publish shows rows as the target's comments: all of them at once, or none. id
// is the job they are the result of and version its name, `<jobId>.<token>`;
// rows are in input order, at least one.
//
// nil means that they are shown, also when this job already was; appliedAt is the
// time the head gives, in UTC and whole milliseconds. job.ErrSuperseded:
// a newer job is shown. job.ErrGone: a tombstone refused it. Both leave no row of
// this version behind. job.ErrUnavailable: the outcome is unknown and what was
// written stays invisible until a repeat, with the same rows, resumes it.
//
// It ends within 30 seconds whatever ctx allows, and may be called any number of
// times at once. Removing what is no longer needed is best effort: what fails is
// logged, and the next Publish or Erase continues.
func (t *Table) Publish(ctx context.Context, target job.Target, id job.ID, version string, rows []job.Rewritten) (appliedAt time.Time, err error) {
	if !strings.HasPrefix(version, string(id)+".") || strings.Contains(version, "#") || id == "" {
		return time.Time{}, fmt.Errorf("comments: publish %s: not a version of this job", id)
	}
	if len(rows) == 0 || len(rows) > maxRows {
		return time.Time{}, fmt.Errorf("comments: publish %s: %d rows, 1 to %d are possible", id, len(rows), maxRows)
	}
	ctx, cancel := context.WithTimeout(ctx, applyLimit)
	defer cancel()

	pk := partition(target)
	stored, live, err := t.readHead(ctx, pk)
	if err != nil {
		return time.Time{}, err
	}
	if open, err := verdict(live, id); !open {
		return live.AppliedAt, err // nothing was staged
	}
	if err := t.stage(ctx, pk, version); err != nil {
		return time.Time{}, err
	}
	if err := t.writeRows(ctx, pk, version, rows); err != nil {
		return t.giveUp(ctx, pk, version, len(rows), err)
	}
	next := &head{Head: job.Head{JobID: id, Version: version, Count: len(rows)}}
	for try := 0; ; try++ {
		next.Previous = ""
		if live != nil {
			next.Previous = live.Version
		}
		next.AppliedAt = t.now().UTC().Truncate(time.Millisecond)
		won, err := t.replaceHead(ctx, pk, stored, next)
		if err != nil {
			return t.giveUp(ctx, pk, version, len(rows), err)
		}
		if won {
			t.tidyLogged(ctx, pk, next)
			return next.AppliedAt, nil
		}
		if stored, live, err = t.readHead(ctx, pk); err != nil {
			return time.Time{}, err
		}
		if open, err := verdict(live, id); !open {
			if live.Version == version {
				t.tidyLogged(ctx, pk, live)
				return live.AppliedAt, nil
			}
			t.withdraw(ctx, pk, version, len(rows), live)
			return live.AppliedAt, err
		}
		// Another job, older than this one, was shown in between.
		if err := wait(ctx, backoff(try)); err != nil {
			return time.Time{}, wrap("write the head", err)
		}
	}
}

// giveUp is for a Publish that failed with cause after staging. The rows wait for
// the repeat; but when the head says that this job cannot be shown any more nobody
// may come, as after an erase, and they are removed. It returns what the head
// says if that decides the matter, else cause.
func (t *Table) giveUp(ctx context.Context, pk, version string, count int, cause error) (appliedAt time.Time, err error) {
	ctx, cancel := graced(ctx)
	defer cancel()
	_, live, err := t.readHead(ctx, pk)
	if err != nil {
		return time.Time{}, cause
	}
	open, err := verdict(live, jobOf(version))
	if open {
		return time.Time{}, cause
	}
	t.withdraw(ctx, pk, version, count, live)
	return live.AppliedAt, err
}

// withdraw removes the rows of a version that the head refused, and then its
// stage record, unless the head shows them: another Publish of the same version
// may have won and be the previous one by now. A version once refused is refused
// for good, so nobody else needs the rows.
func (t *Table) withdraw(ctx context.Context, pk, version string, count int, live *head) {
	ctx, cancel := graced(ctx)
	defer cancel()
	var err error
	if !live.shows(version) {
		keys := make([]string, count)
		for i := range keys {
			keys[i] = rowKey(version, i)
		}
		err = t.deleteKeys(ctx, pk, keys)
	}
	if err == nil {
		err = t.deleteKeys(ctx, pk, []string{stageKey(version)})
	}
	if err != nil {
		t.log.WarnContext(ctx, "rows of a refused version are left for the next clean-up", "jobId", jobOf(version), "error", err)
	}
}

// graced returns a context that lasts as long as ctx, but at least grace from now.
func graced(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := grace
	if deadline, ok := ctx.Deadline(); ok {
		limit = max(limit, time.Until(deadline))
	}
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}

// tidyLogged removes what the head h, just seen in place, has made superfluous,
// while time remains.
func (t *Table) tidyLogged(ctx context.Context, pk string, h *head) {
	limit := tidyLimit
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline)-tidyMargin)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := t.tidy(ctx, pk, h); err != nil {
		t.log.WarnContext(ctx, "old versions are left for the next clean-up", "jobId", h.JobID, "error", err)
	}
}

func (t *Table) writeRows(ctx context.Context, pk, version string, rows []job.Rewritten) error {
	puts := make([]types.WriteRequest, len(rows))
	for i, r := range rows {
		puts[i] = types.WriteRequest{PutRequest: &types.PutRequest{Item: item{
			attrPK: str(pk), attrSK: str(rowKey(version, i)),
			attrID: str(r.ID), attrText: str(r.After), attrOriginal: str(r.Before),
		}}}
	}
	return t.writeAll(ctx, "write rows", puts)
}
