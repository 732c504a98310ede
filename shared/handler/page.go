package handler

import (
	"encoding/base64"
	"encoding/json"
	"strconv"

	"sunhwa/shared/job"
)

const (
	// pageBytes is what one page of texts may take as JSON. Lambda encodes the
	// answer once more as a JSON string, which at worst doubles it (every
	// character a quote or backslash), and gives at most 6,291,556 bytes out.
	pageBytes = 2_500_000
	// envelopeBytes is set aside for what stands around a page's rows.
	envelopeBytes = 1000
)

// resultsPage returns the rows from index from on that fit into one page, at
// least one, each encoded as JSON, and the index after them.
func resultsPage(rows []job.Rewritten, from, limit int) ([]json.RawMessage, int, error) {
	page, size := []json.RawMessage{}, 0
	for i := from; i < len(rows); i++ {
		raw, err := encode(rows[i])
		if err != nil {
			return nil, 0, err
		}
		size += len(raw) + 1 // the comma
		if size > limit-envelopeBytes && len(page) > 0 {
			return page, i, nil
		}
		page = append(page, raw)
	}
	return page, len(rows), nil
}

// encodeCursor returns the cursor of the page that begins at row i. It is opaque
// to callers.
func encodeCursor(i int) string {
	return base64.RawURLEncoding.EncodeToString([]byte("row:" + strconv.Itoa(i)))
}

// decodeCursor returns the row a cursor names, 0 for the empty one. Anything
// that encodeCursor would not have given is job.ErrCursor.
func decodeCursor(cursor string) (int, error) {
	if cursor == "" {
		return 0, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(raw) < len("row:") {
		return 0, job.ErrCursor
	}
	i, err := strconv.Atoi(string(raw[len("row:"):]))
	if err != nil || i < 1 || encodeCursor(i) != cursor {
		return 0, job.ErrCursor
	}
	return i, nil
}
