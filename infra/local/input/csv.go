package input

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// csv reads rows under a header that names the columns id and text, in any order
// and case, among others. The separator is what stands in the header: comma,
// semicolon or tab, as Excel writes them, or the one that its first line sep=
// names. A row is numbered as a spreadsheet numbers it, the header being row 1;
// its line is named too where a line sep= or line breaks inside quotes make them
// differ. Rows with nothing in them are passed over. A row with something beyond
// the header's last column is refused: most likely it is the rest of a text with
// an unquoted separator.
func (g *gatherer) csv(text string) error {
	text, comma, skipped, err := split(lineFeeds(text))
	if err != nil {
		return err
	}
	r := csv.NewReader(strings.NewReader(text))
	r.Comma = comma
	r.FieldsPerRecord = -1 // checked by the columns that are needed

	header, err := r.Read()
	if err != nil {
		return fmt.Errorf("the header cannot be read: %s", csvReason(err))
	}
	header = header[:filled(header)]
	idAt, textAt, err := columns(header)
	if err != nil {
		return err
	}
	row, offset := 1, r.InputOffset()
	row += blankLines(text[:offset]) // before the header
	for {
		fields, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		row += 1 + blankLines(text[offset:r.InputOffset()])
		offset = r.InputOffset()
		if err != nil {
			var p *csv.ParseError
			if !errors.As(err, &p) {
				return err
			}
			g.problem(where(row, skipped+p.StartLine), csvReason(err))
			continue
		}
		n := filled(fields)
		if n == 0 {
			continue
		}
		line, _ := r.FieldPos(0)
		at := where(row, skipped+line)
		switch {
		case n > len(header):
			g.problem(at, fmt.Sprintf("it has %s; the header has %d; a text with a %s must stand in quotes",
				count(n, "column"), len(header), name(comma)))
		case len(fields) <= max(idAt, textAt):
			g.problem(at, fmt.Sprintf("it has %s; the header has %d", count(len(fields), "column"), len(header)))
		default:
			g.add(at, fields[idAt], fields[textAt])
		}
	}
}

func where(row, line int) string {
	if row == line {
		return fmt.Sprintf("row %d", row)
	}
	return fmt.Sprintf("row %d (line %d)", row, line)
}

// lineFeeds gives every line a line feed at its end where the first line ends in a
// lone carriage return, as Excel's "CSV (Macintosh)" does. Other texts stay as they
// are.
func lineFeeds(text string) string {
	quoted := false
	for i, c := range text {
		switch {
		case c == '"':
			quoted = !quoted
		case quoted || c != '\r' && c != '\n':
		case c == '\r' && !strings.HasPrefix(text[i+1:], "\n"):
			return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
		default:
			return text
		}
	}
	return text
}

// split takes off Excel's first line sep=, which a spreadsheet does not number,
// and returns the rest, its separator, and how many lines were taken off.
func split(text string) (rest string, comma rune, skipped int, err error) {
	first, rest, _ := strings.Cut(text, "\n")
	first = strings.TrimSuffix(first, "\r")
	if len(first) < 4 || !strings.EqualFold(first[:4], "sep=") {
		return text, separator(text), 0, nil
	}
	comma, size := utf8.DecodeRuneInString(first[4:])
	if size == 0 || len(first) > 4+size || comma == '"' || comma == utf8.RuneError {
		return "", 0, 0, errors.New("the first line sep= must name one separator, as sep=; does")
	}
	return rest, comma, 1, nil
}

func name(separator rune) string {
	switch separator {
	case ',':
		return "comma"
	case ';':
		return "semicolon"
	case '\t':
		return "tab"
	}
	return strconv.QuoteRune(separator)
}

// separator takes the one that stands most often in the first line.
func separator(text string) rune {
	first, _, _ := strings.Cut(strings.TrimLeft(text, "\r\n"), "\n")
	best, most := ',', 0
	for _, c := range ",;\t" {
		if n := strings.Count(first, string(c)); n > most {
			best, most = c, n
		}
	}
	return best
}

// columns finds id and text in the header. Each must stand there once: of two, it
// would be a guess which is meant.
func columns(header []string) (idAt, textAt int, err error) {
	at := map[string]int{}
	for i, h := range header {
		h = strings.ToLower(strings.TrimSpace(h))
		if _, twice := at[h]; twice && (h == "id" || h == "text") {
			return 0, 0, fmt.Errorf("the first row names the column %s twice", h)
		}
		at[h] = i
	}
	idAt, hasID := at["id"]
	textAt, hasText := at["text"]
	if !hasID || !hasText {
		return 0, 0, errors.New("the first row must name the columns id and text")
	}
	return idAt, textAt, nil
}

// filled counts fields up to the last that is not blank: spreadsheets write empty
// ones to the right of what they hold.
func filled(fields []string) int {
	for i := len(fields); i > 0; i-- {
		if strings.TrimSpace(fields[i-1]) != "" {
			return i
		}
	}
	return 0
}

// blankLines counts the empty lines at the start of s, which the csv reader
// skips and a spreadsheet numbers.
func blankLines(s string) int {
	n := 0
	for {
		rest, ok := strings.CutPrefix(strings.TrimPrefix(s, "\r"), "\n")
		if !ok {
			return n
		}
		n, s = n+1, rest
	}
}

func csvReason(err error) string {
	switch {
	case errors.Is(err, csv.ErrQuote):
		return `a " inside a quoted text must be doubled, or the closing one is missing`
	case errors.Is(err, csv.ErrBareQuote):
		return `a text with a " in it must stand in quotes, its own doubled`
	case errors.Is(err, io.EOF):
		return "there is none"
	}
	return err.Error()
}
