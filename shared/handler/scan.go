package handler

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// maxNesting is how many arrays and objects may stand inside each other.
	maxNesting = 32
	// maxFaults bounds the faults one answer lists, and with it the answer.
	maxFaults = 100
	// maxPointerName is the longest member name, in bytes, that a pointer spells
	// out; a fault below a longer one is reported at the object that holds it.
	maxPointerName = 100
)

// encoding/json is too forgiving to read a request with: it matches member names
// in any case, replaces lone surrogates silently and stops at the first wrong
// type. So the grammar is checked by it, and the values are read by scanner.

// checkJSON returns what is wrong with data as a JSON text: encoding, grammar,
// trailing data, nesting. Nil when a scanner may read it.
func checkJSON(data []byte) *fieldError {
	fault := func(format string, args ...any) *fieldError {
		return &fieldError{"#", fmt.Sprintf(format, args...)}
	}
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return fault("a JSON object is required")
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		return fault("the body begins with a byte order mark")
	case !utf8.Valid(data):
		return fault("the body is not valid UTF-8")
	case bytes.IndexByte(data, 0) >= 0:
		return fault("the body holds a NUL byte")
	case nesting(data) > maxNesting:
		return fault("arrays and objects are nested deeper than %d", maxNesting)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	var value json.RawMessage
	if err := d.Decode(&value); err != nil {
		if s := (*json.SyntaxError)(nil); errors.As(err, &s) {
			return fault("the body is not valid JSON (at byte %d)", s.Offset)
		}
		return fault("the body is not valid JSON (it ends too early)")
	}
	if at := d.InputOffset(); len(bytes.TrimLeft(data[at:], " \t\r\n")) > 0 {
		return fault("data follows the JSON value (after byte %d)", at)
	}
	return nil
}

// nesting returns the greatest depth of arrays and objects in data, which need
// not be valid.
func nesting(data []byte) (deepest int) {
	depth, inString := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}

// scanner walks a JSON text that checkJSON has passed, one value at a time and
// without building a tree, and collects faults with the pointer of where it
// stands. Each of its reading methods consumes exactly one value.
type scanner struct {
	data   []byte
	pos    int
	path   []string
	faults []fieldError
	more   bool // there were more than maxFaults
}

// peek returns the first byte of the next value: its kind.
func (s *scanner) peek() byte {
	for {
		switch c := s.data[s.pos]; c {
		case ' ', '\t', '\r', '\n':
			s.pos++
		default:
			return c
		}
	}
}

// object reads an object; visit must read the value of each member.
func (s *scanner) object(visit func(name string)) {
	s.group('}', func(int) {
		s.peek()
		name, fault := s.token()
		if fault != "" {
			s.fault("a member name " + fault)
		}
		s.peek()
		s.pos++ // the colon
		s.inside(name, func() { visit(name) })
	})
}

// array reads an array; visit must read each item.
func (s *scanner) array(visit func(i int)) {
	s.group(']', func(i int) {
		s.inside(strconv.Itoa(i), func() { visit(i) })
	})
}

func (s *scanner) group(closing byte, visit func(i int)) {
	s.peek()
	s.pos++
	for i := 0; s.peek() != closing; i++ {
		if s.data[s.pos] == ',' {
			s.pos++
		}
		visit(i)
	}
	s.pos++
}

func (s *scanner) inside(name string, visit func()) {
	s.path = append(s.path, name)
	visit()
	s.path = s.path[:len(s.path)-1]
}

// text reads a string. A value that is no string, or a string that no Unicode
// text can be, is a fault and not ok.
func (s *scanner) text() (value string, ok bool) {
	if s.peek() != '"' {
		s.fault("must be a string")
		s.skip()
		return "", false
	}
	value, fault := s.token()
	if fault != "" {
		s.fault(fault)
	}
	return value, fault == ""
}

// boolean reads true or false; anything else is a fault and not ok.
func (s *scanner) boolean() (value, ok bool) {
	c := s.peek()
	if c != 't' && c != 'f' {
		s.fault("must be true or false")
	}
	s.skip()
	return c == 't', c == 't' || c == 'f'
}

// skip reads any value and looks only at its strings, which must be text even
// where nobody asks for them.
func (s *scanner) skip() {
	switch s.peek() {
	case '{':
		s.object(func(string) { s.skip() })
	case '[':
		s.array(func(int) { s.skip() })
	case '"':
		s.text()
	default: // number, true, false, null
		for s.pos < len(s.data) && !strings.ContainsRune(",]} \t\r\n", rune(s.data[s.pos])) {
			s.pos++
		}
	}
}

// token reads the string that begins at pos and returns it with what is wrong
// with it, if anything.
func (s *scanner) token() (value, fault string) {
	from := s.pos
	escaped := false
	for s.pos++; s.data[s.pos] != '"'; s.pos++ {
		if s.data[s.pos] == '\\' {
			escaped = true
			s.pos++
		}
	}
	s.pos++
	raw := s.data[from:s.pos]
	if !escaped {
		return string(raw[1 : len(raw)-1]), ""
	}
	if err := json.Unmarshal(raw, &value); err != nil {
		return "", "is not a valid string"
	}
	return value, escapeFault(raw)
}

// escapeFault finds what JSON can write and text cannot hold: \u0000, and a
// surrogate without its partner, which encoding/json would replace silently.
func escapeFault(raw []byte) string {
	unit := func(i int) (uint64, bool) {
		if i+6 > len(raw) || raw[i] != '\\' || raw[i+1] != 'u' {
			return 0, false
		}
		u, err := strconv.ParseUint(string(raw[i+2:i+6]), 16, 16)
		return u, err == nil
	}
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		u, is := unit(i)
		switch {
		case !is:
			i++ // a two-byte escape
			continue
		case u == 0:
			return "holds a NUL character"
		case u >= 0xdc00 && u <= 0xdfff:
			return "holds a lone surrogate"
		case u >= 0xd800 && u <= 0xdbff:
			if low, is := unit(i + 6); !is || low < 0xdc00 || low > 0xdfff {
				return "holds a lone surrogate"
			}
			i += 6
		}
		i += 5
	}
	return ""
}

// fault notes what is wrong at the current place, or at the members named below it.
func (s *scanner) fault(detail string, below ...string) {
	if len(s.faults) == maxFaults {
		s.more = true
		return
	}
	s.faults = append(s.faults, fieldError{s.pointer(below...), detail})
}

// forget drops the faults at and below the current place: a member is named
// again, and the last one counts.
func (s *scanner) forget() {
	at := s.pointer()
	kept := s.faults[:0]
	for _, f := range s.faults {
		if f.Pointer != at && !strings.HasPrefix(f.Pointer, at+"/") {
			kept = append(kept, f)
		}
	}
	s.faults = kept
}

// pointer returns the JSON Pointer of the current place as a URI fragment
// (RFC 6901 section 6).
func (s *scanner) pointer(below ...string) string {
	var b strings.Builder
	b.WriteByte('#')
	for _, names := range [][]string{s.path, below} {
		for _, name := range names {
			if len(name) > maxPointerName {
				return b.String()
			}
			name = strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
			b.WriteByte('/')
			b.WriteString(url.PathEscape(name))
		}
	}
	return b.String()
}
