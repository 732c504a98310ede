package input

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sunhwa/shared/job"
)

const (
	// maxFile is far above what any job may hold.
	maxFile = 64 << 20
	// maxProblems is how many bad rows an error names.
	maxProblems = 20
)

// Error says which rows of a file could not be read.
type Error struct {
	Name string    // the file, as it was named
	Rows []Problem // in the file's order, at most 20
	More int       // bad rows beyond those
}

// Problem is one bad row.
type Problem struct {
	Where  string // "row 3", "row 3 (line 5)", "comment 3"
	Reason string // what is wrong; it holds no comment text
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s cannot be read", e.Name, count(len(e.Rows)+e.More, "comment"))
	for _, p := range e.Rows {
		fmt.Fprintf(&b, "\n  %s: %s", p.Where, p.Reason)
	}
	if e.More > 0 {
		fmt.Fprintf(&b, "\n  and %d more", e.More)
	}
	return b.String()
}

// Read reads the comments of a .json, .jsonl (.ndjson), .csv or .tsv file. Every
// id is one the API takes and stands once, every text is there and not blank.
// It returns an *Error when rows are bad, and no comments then.
func Read(name string) ([]job.Comment, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, plain(name, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, plain(name, err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s: the file is larger than %d MB", name, maxFile>>20)
	}
	return Parse(name, data)
}

// Parse reads the comments out of a file's content; the name says which kind it
// is. Errors are as of Read.
func Parse(name string, data []byte) ([]job.Comment, error) {
	text, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if strings.TrimSpace(text) == "" {
		return nil, fmt.Errorf("%s: the file is empty", name)
	}
	g := &gatherer{name: name, seen: map[string]string{}}
	switch kind := strings.ToLower(filepath.Ext(name)); kind {
	case ".json":
		err = g.json(text)
	case ".jsonl", ".ndjson":
		g.jsonLines(text)
	case ".csv", ".tsv", ".txt":
		err = g.csv(text)
	default:
		err = fmt.Errorf("the kind of file is unknown (%q); name it .json, .jsonl or .csv", kind)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return g.result()
}

// gatherer collects comments and what is wrong with them.
type gatherer struct {
	name     string
	comments []job.Comment
	seen     map[string]string // id -> where it stood first
	bad      Error
}

// idPattern is what the API takes as a comment's id.
var idPattern = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,128}$`)

func (g *gatherer) add(where, id, text string) {
	id = strings.TrimSpace(id)
	switch {
	case id == "":
		g.problem(where, "the id is missing")
	case !idPattern.MatchString(id) || id == "." || id == "..":
		g.problem(where, "the id may have letters, digits and . _ ~ - only, at most 128")
	case g.seen[id] != "":
		g.problem(where, fmt.Sprintf("the id %q stands in %s already", id, g.seen[id]))
	case strings.TrimSpace(text) == "":
		g.problem(where, "the text is missing or blank")
	default:
		g.seen[id] = where
		g.comments = append(g.comments, job.Comment{ID: id, Text: text})
	}
}

func (g *gatherer) problem(where, reason string) {
	if len(g.bad.Rows) == maxProblems {
		g.bad.More++
		return
	}
	g.bad.Rows = append(g.bad.Rows, Problem{where, reason})
}

func (g *gatherer) result() ([]job.Comment, error) {
	if len(g.bad.Rows) > 0 {
		g.bad.Name = g.name
		return nil, &g.bad
	}
	if len(g.comments) == 0 {
		return nil, fmt.Errorf("%s: there is no comment in the file", g.name)
	}
	return g.comments, nil
}

// count is a number of things, in the singular where it is one.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// plain says what the system says about a file, without the name of a call.
func plain(name string, err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return fmt.Errorf("%s: %w", name, err)
}
