package explore

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// entry is one key: its type, its content, and the ms it still lives (0: for ever).
// An entry is never changed once made.
type entry struct {
	kind   string // string, hash or set
	text   string // of a string
	fields map[string]string
	ttl    int64
}

// snapshot is every key of the server, by name. It is never changed once made.
type snapshot map[string]*entry

// field returns a hash's field; "" when the key or the field is not there.
func (s snapshot) field(key, name string) string {
	if e := s[key]; e != nil {
		return e.fields[name]
	}
	return ""
}

// number returns a hash's field as an integer, 0 when it is not there.
func (s snapshot) number(key, name string) int64 {
	n, _ := strconv.ParseInt(s.field(key, name), 10, 64)
	return n
}

// text returns a string key's content, "" when it is not there.
func (s snapshot) text(key string) string {
	if e := s[key]; e != nil {
		return e.text
	}
	return ""
}

// size returns the number of fields or members, 0 when the key is not there.
func (s snapshot) size(key string) int {
	if e := s[key]; e != nil {
		return len(e.fields)
	}
	return 0
}

func (s snapshot) ttl(key string) int64 {
	if e := s[key]; e != nil {
		return e.ttl
	}
	return 0
}

// same reports whether two entries hold the same for the same time.
func (e *entry) same(o *entry) bool {
	if e == nil || o == nil {
		return e == o
	}
	return e.ttl == o.ttl && e.alike(o)
}

// alike is same without the time.
func (e *entry) alike(o *entry) bool {
	return e.kind == o.kind && e.text == o.text && maps.Equal(e.fields, o.fields)
}

// changed lists the keys that differ between two snapshots, sorted.
func changed(a, b snapshot) []string {
	var names []string
	for k, e := range a {
		if !e.same(b[k]) {
			names = append(names, k)
		}
	}
	for k := range b {
		if a[k] == nil {
			names = append(names, k)
		}
	}
	slices.Sort(names)
	return names
}

// digest is a hash of a world or of its keys.
type digest [16]byte

func (s snapshot) append(b []byte) []byte {
	for _, k := range slices.Sorted(maps.Keys(s)) {
		e := s[k]
		b = append(append(b, k...), 0)
		b = append(append(b, e.kind...), 0)
		b = append(append(b, e.text...), 0)
		for _, f := range slices.Sorted(maps.Keys(e.fields)) {
			b = append(append(b, f...), 0)
			b = append(append(b, e.fields[f]...), 0)
		}
		b = binary.AppendVarint(b, e.ttl)
	}
	return b
}

func (s snapshot) digest() digest { return sum(s.append(nil)) }

func sum(b []byte) digest {
	h := sha256.Sum256(b)
	return digest(h[:16])
}

// read takes a snapshot of m.
func read(m *miniredis.Miniredis) snapshot {
	db := m.DB(0)
	s := snapshot{}
	for _, k := range db.Keys() {
		e := &entry{kind: db.Type(k), ttl: db.TTL(k).Milliseconds()}
		switch e.kind {
		case "string":
			e.text, _ = db.Get(k)
		case "hash":
			names, _ := db.HKeys(k)
			e.fields = make(map[string]string, len(names))
			for _, f := range names {
				e.fields[f] = db.HGet(k, f)
			}
		case "set":
			members, _ := db.Members(k)
			e.fields = make(map[string]string, len(members))
			for _, f := range members {
				e.fields[f] = ""
			}
		}
		s[k] = e
	}
	return s
}

// write makes m hold exactly s.
func write(m *miniredis.Miniredis, s snapshot) {
	db := m.DB(0)
	db.FlushDB()
	for k, e := range s {
		switch e.kind {
		case "string":
			_ = db.Set(k, e.text)
		case "hash":
			flat := make([]string, 0, 2*len(e.fields))
			for f, v := range e.fields {
				flat = append(flat, f, v)
			}
			db.HSet(k, flat...)
		case "set":
			for f := range e.fields {
				_, _ = db.SetAdd(k, f)
			}
		}
		if e.ttl != 0 {
			db.SetTTL(k, time.Duration(e.ttl)*time.Millisecond)
		}
	}
}

// kindOf returns what a key is by its name: run, job, in, out, memo, last, kept or watch.
func kindOf(key string) string {
	_, rest, _ := strings.Cut(key, "}:")
	kind, _, _ := strings.Cut(rest, ":")
	return kind
}
