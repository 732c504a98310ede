package job

import "time"

// Head says what is published for a target. The table keeps one a target.
type Head struct {
	JobID     ID     // the high-water mark: no job at or below it can be published any more
	Version   string // what is shown, `<jobId>.<token>`; empty in a tombstone (after an erase)
	Previous  string // the version shown before; its rows are still there; may be empty
	Count     int    // comments in Version
	AppliedAt time.Time
}

// Tombstone reports whether the head remembers an erase and shows nothing.
func (h *Head) Tombstone() bool { return h.Version == "" }

// PublishedComment is one row of a published version.
type PublishedComment struct {
	ID       string `json:"id"`
	Text     string `json:"text"`     // the polite text
	Original string `json:"original"` // the text as it was sent
}

// PublishedPage is a run of consecutive rows of one version.
type PublishedPage struct {
	JobID     ID
	AppliedAt time.Time
	Comments  []PublishedComment
	Next      string // cursor of the following page; empty on the last
}
