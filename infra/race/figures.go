package main

import (
	"errors"
	"fmt"
	"io"
)

// figures are what the run saw.
type figures struct {
	Scenarios    int `json:"scenarios"`
	UsualHashes  int `json:"usualJobHashes"`           // job hashes two usual starts left behind, all targets
	Unreferenced int `json:"usualUnreferencedJobs"`    // … of which no pointer names
	Acquired     int `json:"acquired"`                 // starts that created a job
	Reused       int `json:"reused"`                   // starts that were told the other's
	Hashes       int `json:"jobHashes"`                // job hashes left behind
	UsualLate    int `json:"usualLateSuccess"`         // FAILED jobs that became SUCCESS
	Late         int `json:"lateSuccess"`              // … in the shipped store
	Rejected     int `json:"lateSuccessRejected"`      // late finishes refused after a new owner came
	Preserved    int `json:"currentPointersPreserved"` // targets that still name the new owner
}

// line is a figure line with what each of its figures must be.
type line struct {
	format string
	seen   []int
	want   []int
}

func (f figures) lines() []line {
	n := f.Scenarios
	return []line{
		{"GET -> SET: job hashes=%d, unreferenced jobs=%d", []int{f.UsualHashes, f.Unreferenced}, []int{2 * n, n}},
		{"Lua acquire: acquired=%d, reused=%d, job hashes=%d", []int{f.Acquired, f.Reused, f.Hashes}, []int{n, n, n}},
		{"Terminal transition: late SUCCESS before=%d, after=%d", []int{f.UsualLate, f.Late}, []int{n, 0}},
		{"Pointer ownership: late SUCCESS rejected=%d, current pointers preserved=%d", []int{f.Rejected, f.Preserved}, []int{n, n}},
	}
}

func (l line) text(figures []int) string {
	args := make([]any, len(figures))
	for i, n := range figures {
		args[i] = n
	}
	return fmt.Sprintf(l.format, args...)
}

// check returns an error when any figure is off.
func (f figures) check() error {
	for _, l := range f.lines() {
		for i := range l.seen {
			if l.seen[i] != l.want[i] {
				return errors.New("a figure is off")
			}
		}
	}
	return nil
}

// print writes each line once all its figures are as they must be; where one is
// off the line says what was expected and what was seen.
func (f figures) print(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "%d forced interleaving scenarios\n", f.Scenarios); err != nil {
		return err
	}
	for _, l := range f.lines() {
		text := l.text(l.seen)
		if expected := l.text(l.want); expected != text {
			text = "OFF: expected " + expected + "; seen " + text
		}
		if _, err := fmt.Fprintln(w, text); err != nil {
			return err
		}
	}
	if f.check() != nil {
		return nil
	}
	_, err := fmt.Fprintln(w, "All invariants passed")
	return err
}
