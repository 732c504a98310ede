package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/rivo/uniseg"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"sunhwa/infra/local/client"
	"sunhwa/shared/job"
)

const (
	plainWidth = 100 // columns where the output is no terminal
	minWidth   = 60
	maxWidth   = 160
	maxShown   = 20  // comments shown side by side
	maxBody    = 160 // bytes of an answer shown
)

// screen writes what a person reads.
type screen struct {
	out      io.Writer
	terminal bool
	width    int
	steps    int
}

func newScreen(out io.Writer) *screen {
	s := &screen{out: out, width: plainWidth}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		s.terminal = true
		if w, _, err := term.GetSize(int(f.Fd())); err == nil {
			s.width = min(max(w, minWidth), maxWidth)
		}
	}
	return s
}

// line writes one line. A screen that cannot be written to ends nothing: OUT and
// the exit status still say how the run went.
func (s *screen) line(format string, args ...any) { _, _ = fmt.Fprintf(s.out, format+"\n", args...) }

func (s *screen) step(format string, args ...any) {
	s.steps++
	s.line("\n%d. %s", s.steps, fmt.Sprintf(format, args...))
}

func (s *screen) fact(format string, args ...any) { s.line("   = "+format, args...) }

// exchange shows a request and its answer; of several pages, the first answer
// and how many there were.
func (s *screen) exchange(answers ...*client.Answer) {
	a := answers[0]
	s.line("   > %s", a.Request)
	body := printable(strings.TrimSpace(string(a.Body)))
	if len(body) > maxBody {
		body = fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(body[:maxBody], ""), len(a.Body))
	}
	s.line("   < %d in %d ms  %s", a.Status, a.Took.Milliseconds(), body)
	if n := len(answers); n > 1 {
		s.line("     and %d more pages", n-1)
	}
}

// bar shows progress: a bar on a terminal, plain lines elsewhere.
type bar struct {
	s     *screen
	total int
	shown int // in tenths, where the output is no terminal
	bar   *progressbar.ProgressBar
}

func (s *screen) progress(total int) *bar {
	b := &bar{s: s, total: total, shown: -1}
	if s.terminal {
		b.bar = progressbar.NewOptions(total,
			progressbar.OptionSetWriter(s.out), progressbar.OptionSetDescription("   rewriting"),
			progressbar.OptionShowCount(), progressbar.OptionSetWidth(30), progressbar.OptionClearOnFinish())
	}
	return b
}

func (b *bar) set(done int) {
	if b.bar != nil {
		_ = b.bar.Set(done) // a bar that cannot be drawn harms nothing
		return
	}
	if tenth := 10 * done / max(b.total, 1); tenth > b.shown {
		b.shown = tenth
		b.s.line("   %d of %d", done, b.total)
	}
}

func (b *bar) end() {
	if b.bar != nil {
		_ = b.bar.Finish()
	}
}

// sideBySide shows each comment before and after, in two columns.
func (s *screen) sideBySide(results []job.Rewritten) {
	column := (s.width - 6) / 2
	rule := "   " + strings.Repeat("-", column) + "+" + strings.Repeat("-", column+1)
	s.line("\n   %s| %s\n%s", pad("BEFORE", column), "AFTER", rule)
	for i, r := range results {
		if i == maxShown {
			s.line("   … and %d more; OUT=result.json writes them all", len(results)-maxShown)
			return
		}
		before, after := wrap(r.Before, column-1), wrap(r.After, column-1)
		for n := range max(len(before), len(after)) {
			s.line("   %s| %s", pad(at(before, n), column), at(after, n))
		}
		s.line("%s", rule)
	}
}

func at(lines []string, n int) string {
	if n < len(lines) {
		return lines[n]
	}
	return ""
}

// pad fills up to width columns; Hangul and most emoji take two each.
func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-uniseg.StringWidth(s)))
}

// wrap breaks text into lines of at most width columns, between words where it
// can. Control characters do not reach the terminal.
func wrap(text string, width int) []string {
	var lines []string
	for paragraph := range strings.SplitSeq(text, "\n") {
		line, used := "", 0
		for _, word := range strings.Fields(printable(paragraph)) {
			w := uniseg.StringWidth(word)
			if used > 0 && used+1+w > width {
				lines, line, used = append(lines, line), "", 0
			}
			if used > 0 {
				line, used = line+" ", used+1
			}
			for g := uniseg.NewGraphemes(word); g.Next(); {
				if used+g.Width() > width {
					lines, line, used = append(lines, line), "", 0
				}
				line, used = line+g.Str(), used+g.Width()
			}
		}
		lines = append(lines, line)
	}
	return lines
}

func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
}
