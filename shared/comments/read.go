package comments

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sunhwa/shared/job"
)

// restarts is how often a reader begins again that found a version incomplete.
const restarts = 3

// lastMoment is the last millisecond that RFC 3339 can write, with its four digits
// of the year (https://www.rfc-editor.org/rfc/rfc3339#section-1).
var lastMoment = time.Date(9999, time.December, 31, 23, 59, 59, 999_000_000, time.UTC).UnixMilli()

// position is where a page begins, and what the pages before it said of their
// version: the head may name another one by now. A caller can make up all of it.
type position struct {
	version   string
	index     int // of the page's first row
	count     int // rows in version
	appliedAt time.Time
}

// encode makes the cursor. It is opaque to callers and may change.
func (p position) encode() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%s#%04d#%d#%d", p.version, p.index, p.count, p.appliedAt.UnixMilli()))
}

// decode reads a cursor, job.ErrCursor when this package cannot have made it. What
// it says may still be untrue.
func decode(cursor string) (position, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil {
		return position{}, job.ErrCursor
	}
	parts := strings.Split(string(raw), "#")
	if len(parts) != 4 {
		return position{}, job.ErrCursor
	}
	id := jobOf(parts[0])
	if parsed, err := job.ParseID(string(id)); err != nil || parsed != id || len(parts[0]) <= len(id)+1 {
		return position{}, job.ErrCursor
	}
	index, err1 := strconv.Atoi(parts[1])
	count, err2 := strconv.Atoi(parts[2])
	ms, err3 := strconv.ParseInt(parts[3], 10, 64)
	if err1 != nil || err2 != nil || err3 != nil || index < 1 || index >= count || count > maxRows || ms < 0 || ms > lastMoment {
		return position{}, job.ErrCursor
	}
	p := position{parts[0], index, count, time.UnixMilli(ms).UTC()}
	if p.encode() != cursor { // written another way, as with a leading zero
		return position{}, job.ErrCursor
	}
	return p, nil
}

// Read returns a page of what is published for the target, from its beginning
// when cursor is empty. The page ends before the row with which its rows, each in
// JSON without HTML escaping, would pass pageBytes; it has at least one row.
//
// All pages that follow one another by their cursors are of one version, complete
// and in input order. job.ErrNotFound when nothing is published; job.ErrCursor
// for a malformed cursor and one that contradicts the head or the rows; job.ErrGone
// for one whose version is neither shown nor the one shown before;
// job.ErrUnavailable when the version was found incomplete four times running, as
// publishes in quick succession can cause.
//
// Of the version shown before, the head keeps neither count nor time: the count is
// checked where the rows end, the time is the cursor's word.
func (t *Table) Read(ctx context.Context, target job.Target, cursor string, pageBytes int) (*job.PublishedPage, error) {
	var from *position
	if cursor != "" {
		p, err := decode(cursor)
		if err != nil {
			return nil, err
		}
		from = &p
	}
	pk := partition(target)
	for try := range 1 + restarts {
		p, shown, err := t.locate(ctx, pk, from)
		if err != nil {
			return nil, err
		}
		page, whole, err := t.readPage(ctx, pk, p, pageBytes)
		if err != nil {
			return nil, err
		}
		if whole {
			return page, nil
		}
		// Rows are removed only after a flip that leaves their version, so the head
		// just read says that none was missing the first time: the cursor is wrong.
		if !shown && try > 0 {
			return nil, job.ErrCursor
		}
	}
	return nil, fmt.Errorf("comments: read: version incomplete: %w", job.ErrUnavailable)
}

// locate reads the head and says where the page begins, and whether that is in the
// version shown, of which nothing is taken from the cursor but the index. from is
// nil at the beginning.
func (t *Table) locate(ctx context.Context, pk string, from *position) (p position, shown bool, err error) {
	_, live, err := t.readHead(ctx, pk)
	switch {
	case err != nil:
		return position{}, false, err
	case live == nil, from == nil && live.Tombstone():
		return position{}, false, job.ErrNotFound
	case from != nil && !live.shows(from.version):
		return position{}, false, job.ErrGone
	case from != nil && live.Version != from.version:
		return *from, false, nil
	}
	p = position{version: live.Version, count: live.Count, appliedAt: live.AppliedAt}
	if from != nil {
		p.index = from.index
		if p.encode() != from.encode() {
			return position{}, false, job.ErrCursor
		}
	}
	return p, true, nil
}

// readPage reads rows from p on. Not whole means that they are not those up to
// p.count: the version is being removed, and the head read again says what is
// shown instead; or p is a made-up cursor's.
func (t *Table) readPage(ctx context.Context, pk string, p position, pageBytes int) (page *job.PublishedPage, whole bool, err error) {
	page = &job.PublishedPage{JobID: jobOf(p.version), AppliedAt: p.appliedAt}
	next, size, full := p.index, 0, false
	var encodeErr error
	err = t.query(ctx, pk, "#sk BETWEEN :first AND :last", item{
		":first": str(rowKey(p.version, p.index)), ":last": str(rowKey(p.version, maxRows-1)),
	}, nil, func(it item) bool {
		if getStr(it, attrSK) != rowKey(p.version, next) || next >= p.count {
			next = -1
			return false
		}
		row := job.PublishedComment{ID: getStr(it, attrID), Text: getStr(it, attrText), Original: getStr(it, attrOriginal)}
		n, err := encodedLen(row)
		if err != nil {
			encodeErr = err
			return false
		}
		if size+n > pageBytes && len(page.Comments) > 0 {
			full = true
			return false
		}
		page.Comments = append(page.Comments, row)
		size += n
		next++
		return true
	})
	if err == nil {
		err = encodeErr
	}
	if err != nil {
		return nil, false, err
	}
	if full {
		p.index = next
		page.Next = p.encode()
		return page, true, nil
	}
	return page, next == p.count, nil
}

// encodedLen returns the length of row in JSON without HTML escaping.
func encodedLen(row job.PublishedComment) (int, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(row); err != nil {
		return 0, fmt.Errorf("comments: measure a row: %w", err)
	}
	return b.Len() - 1, nil // Encode adds a newline
}
