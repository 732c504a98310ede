package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// output is the file that gets the result. It is opened before the demo starts, so
// that a place that cannot be written to is said at once; what was in it stays
// until there is a result. A nil output is none.
type output struct {
	f    *os.File
	made bool // by this run
}

// openOutput opens name, making the file but no folder; an empty name is none. It
// refuses the input's own file.
func openOutput(name, input string) (*output, error) {
	if name == "" {
		return nil, nil
	}
	was, err := os.Stat(name)
	switch made := errors.Is(err, fs.ErrNotExist); {
	case err != nil && !made:
		return nil, outError(name, err)
	case err == nil && was.IsDir():
		return nil, fmt.Errorf("OUT=%s is a folder; name a file", name)
	case err == nil:
		if in, err := os.Stat(input); err == nil && os.SameFile(in, was) {
			return nil, fmt.Errorf("OUT=%s is the INPUT itself; name another file", name)
		}
	}
	_, err = os.Lstat(name)
	linked := was == nil && err == nil // a link to nowhere yet is the user's
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return nil, outError(name, err)
	}
	return &output{f: f, made: was == nil && !linked}, nil
}

// write replaces the content by b.
func (o *output) write(b []byte) error {
	// A pipe or a terminal has nothing to cut off, and says so.
	if info, err := o.f.Stat(); err == nil && info.Mode().IsRegular() {
		if err := o.f.Truncate(0); err != nil {
			return outError(o.f.Name(), err)
		}
	}
	if _, err := o.f.Write(b); err != nil {
		return outError(o.f.Name(), err)
	}
	o.made = false // it is the user's from now on
	return nil
}

// close closes the file, and removes it again when this run made it and had
// nothing to write.
func (o *output) close() error {
	if o == nil {
		return nil
	}
	err := o.f.Close()
	if o.made {
		err = errors.Join(err, os.Remove(o.f.Name()))
	}
	if err != nil {
		return outError(o.f.Name(), err)
	}
	return nil
}

// outError says what the system says, without the name of a call.
func outError(name string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return fmt.Errorf("OUT=%s: %w", name, err)
}
