package handler

import (
	"fmt"
	"strconv"
	"unicode"
	"unicode/utf8"

	"sunhwa/shared/job"
)

// inputLimits are what one start may carry.
type inputLimits struct {
	comments int // MAX_COMMENTS
	chars    int // MAX_COMMENT_CHARS, in code points
}

// startInput is a start's body, validated.
type startInput struct {
	comments []job.Comment
	fresh    bool
}

// parseStart reads a start's body: `{"comments":[{"id","text"}], "fresh":false}`.
// It returns every fault there is, at most 100 of them, each with its pointer;
// no fault means that the input keeps every rule. Member names are matched
// exactly, unknown ones are ignored (their strings must still be text), and of a
// member named twice the last counts. Texts are kept as they are, byte for byte.
// more reports that faults were left out.
func parseStart(data []byte, limits inputLimits) (in startInput, faults []fieldError, more bool) {
	if f := checkJSON(data); f != nil {
		return startInput{}, []fieldError{*f}, false
	}
	v := &startValidator{scanner: scanner{data: data}, limits: limits}
	if v.peek() != '{' {
		v.fault("must be an object")
		return startInput{}, v.faults, false
	}
	v.root()
	return v.in, v.faults, v.more && len(v.faults) > 0
}

type startValidator struct {
	scanner
	limits inputLimits
	in     startInput
}

func (v *startValidator) root() {
	seen := map[string]bool{}
	v.object(func(name string) {
		if name == "comments" || name == "fresh" {
			if seen[name] {
				v.forget()
			}
			seen[name] = true
		}
		switch name {
		case "comments":
			v.comments()
		case "fresh":
			v.in.fresh, _ = v.boolean()
		default:
			v.skip()
		}
	})
	if !seen["comments"] {
		v.fault("is required", "comments")
	}
}

func (v *startValidator) comments() {
	v.in.comments = nil
	if v.peek() != '[' {
		v.fault("must be an array")
		v.skip()
		return
	}
	count, ids := 0, map[string]int{}
	v.array(func(i int) {
		count++
		c, ok := v.comment()
		if !ok || count > v.limits.comments {
			return
		}
		if first, dup := ids[c.ID]; dup {
			v.fault(fmt.Sprintf("repeats the id of #/comments/%d", first), "id")
			return
		}
		ids[c.ID] = i
		v.in.comments = append(v.in.comments, c)
	})
	if count < 1 || count > v.limits.comments {
		v.fault("must hold 1 to " + strconv.Itoa(v.limits.comments) + " comments, has " + strconv.Itoa(count))
	}
}

// comment reads one comment. It is ok when its id is usable; a faulty text has
// been noted and fails the request all the same.
func (v *startValidator) comment() (c job.Comment, ok bool) {
	if v.peek() != '{' {
		v.fault("must be an object with id and text")
		v.skip()
		return c, false
	}
	seen := map[string]bool{}
	v.object(func(name string) {
		if name != "id" && name != "text" {
			v.skip()
			return
		}
		if seen[name] {
			v.forget()
		}
		seen[name] = true
		if name == "id" {
			c.ID, ok = v.commentID()
		} else {
			c.Text = v.commentText()
		}
	})
	for _, name := range []string{"id", "text"} {
		if !seen[name] {
			v.fault("is required", name)
		}
	}
	return c, ok
}

func (v *startValidator) commentID() (string, bool) {
	id, ok := v.text()
	if ok && !validID(id) {
		v.fault(pathIDRule)
		ok = false
	}
	return id, ok
}

func (v *startValidator) commentText() string {
	text, ok := v.text()
	switch n := utf8.RuneCountInString(text); {
	case !ok:
	case blank(text):
		v.fault("must not be blank")
	case n > v.limits.chars:
		v.fault(fmt.Sprintf("has %d characters, at most %d are allowed", n, v.limits.chars))
	}
	return text
}

// blank reports whether a reader sees nothing in s: white space, control and
// format characters, and what Unicode calls default ignorable, the Hangul
// fillers among it. The Braille blank is a symbol to Unicode and blank to a reader.
func blank(s string) bool {
	for _, r := range s {
		if !unicode.IsSpace(r) && r != '\u2800' &&
			!unicode.In(r, unicode.Cc, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
			return false
		}
	}
	return true
}
