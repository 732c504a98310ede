package input

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// entry is a comment in a file. An id may also be a number, as spreadsheets'
// exports have it.
type entry struct {
	ID   json.RawMessage `json:"id"`
	Text *string         `json:"text"`
}

// json reads an array of comments, or an object with one under "comments".
func (g *gatherer) json(text string) error {
	d := json.NewDecoder(strings.NewReader(text))
	var root json.RawMessage
	if err := d.Decode(&root); err != nil {
		return syntax(text, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more after the JSON value; a file with one object a line is .jsonl")
	}
	var entries []json.RawMessage
	if root[0] == '{' {
		var o struct {
			Comments []json.RawMessage `json:"comments"`
		}
		if err := json.Unmarshal(root, &o); err != nil || o.Comments == nil {
			return errors.New(`the object has no array "comments"`)
		}
		entries = o.Comments
	} else if err := json.Unmarshal(root, &entries); err != nil {
		return errors.New(`the file is neither an array of comments nor an object with an array "comments"`)
	}
	for i, e := range entries {
		g.entry(fmt.Sprintf("comment %d", i+1), e)
	}
	return nil
}

// jsonLines reads one comment a line; blank lines count but hold none.
func (g *gatherer) jsonLines(text string) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		if line = strings.TrimSpace(line); line != "" {
			g.entry(fmt.Sprintf("line %d", n), []byte(line))
		}
	}
}

func (g *gatherer) entry(where string, raw []byte) {
	var e entry
	if err := json.Unmarshal(raw, &e); err != nil {
		var kind *json.UnmarshalTypeError
		switch {
		case errors.As(err, &kind) && kind.Field != "":
			g.problem(where, fmt.Sprintf("%s is a %s, not a string", kind.Field, kind.Value))
		case errors.As(err, &kind):
			g.problem(where, `it is no object {"id":…,"text":…}`)
		default:
			g.problem(where, "it is no JSON object: "+reason(err))
		}
		return
	}
	id := ""
	if len(e.ID) > 0 && string(e.ID) != "null" {
		if err := json.Unmarshal(e.ID, &id); err != nil {
			var n json.Number
			if json.Unmarshal(e.ID, &n) != nil {
				g.problem(where, "the id is neither a string nor a number")
				return
			}
			id = n.String()
		}
	}
	if e.Text == nil {
		e.Text = new(string)
	}
	g.add(where, id, *e.Text)
}

// syntax says in which line a JSON file is broken.
func syntax(text string, err error) error {
	var s *json.SyntaxError
	if errors.As(err, &s) {
		line := 1 + strings.Count(text[:min(int(s.Offset), len(text))], "\n")
		return fmt.Errorf("line %d is no JSON: %s", line, reason(err))
	}
	return fmt.Errorf("the file is no JSON: %s", reason(err))
}

// reason is the decoder's own words, which quote one character at most.
func reason(err error) string {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return "it ends too early"
	}
	return err.Error()
}
