package input

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// csv reads rows under a header that names the columns id and text, in any order
// and case, among others. The separator is what stands in the header: comma,
// semicolon or tab, as Excel writes them. A row is numbered as a spreadsheet
// numbers it, the header being row 1; its line is named too where line breaks
// inside quotes make them differ. Rows with nothing in them are passed over.
func (g *gatherer) csv(text string) error {
	r := csv.NewReader(strings.NewReader(text))
	r.Comma = separator(text)
	r.FieldsPerRecord = -1 // checked by the columns that are needed

	header, err := r.Read()
	if err != nil {
		return fmt.Errorf("the header cannot be read: %s", csvReason(err))
	}
	idAt, textAt := column(header, "id"), column(header, "text")
	if idAt < 0 || textAt < 0 {
		return errors.New("the first row must name the columns id and text")
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
			g.problem(where(row, p.StartLine), csvReason(err))
			continue
		}
		if !slices.ContainsFunc(fields, func(f string) bool { return strings.TrimSpace(f) != "" }) {
			continue
		}
		line, _ := r.FieldPos(0)
		if len(fields) <= max(idAt, textAt) {
			g.problem(where(row, line), fmt.Sprintf("it has %d column(s); the header has %d", len(fields), len(header)))
			continue
		}
		g.add(where(row, line), fields[idAt], fields[textAt])
	}
}

func where(row, line int) string {
	if row == line {
		return fmt.Sprintf("row %d", row)
	}
	return fmt.Sprintf("row %d (line %d)", row, line)
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

func column(header []string, name string) int {
	return slices.IndexFunc(header, func(h string) bool { return strings.EqualFold(strings.TrimSpace(h), name) })
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
