package job

import (
	"strings"
	"testing"
)

// FuzzParseID: whatever is taken is a whole ULID in upper case that names its own
// shard, and is taken as it is the second time.
func FuzzParseID(f *testing.F) {
	for _, s := range []string{
		"", "01JZZZZZZZZZZZZZZZZZZZZZZZ", "01jzzzzzzzzzzzzzzzzzzzzzzz", "81JZZZZZZZZZZZZZZZZZZZZZZZ",
		"01JZZZZZZZZZZZZZZZZZZZZZZU", "../../etc/passwd", "01JZZZZZZZZZZZZZZZZZZZZZ한", "ıııııııııııııııııııııııııı",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseID(s)
		if err != nil {
			return
		}
		if string(id) != strings.ToUpper(s) || len(id) != 26 {
			t.Fatalf("%q was read as %q", s, id)
		}
		if again, err := ParseID(string(id)); err != nil || again != id {
			t.Fatalf("%q is not taken as it is: %v", id, err)
		}
		found := false
		for i := range Shards {
			found = found || ShardAt(i) == id.Shard()
		}
		if !found {
			t.Fatalf("%q names the shard %q, which is none", id, id.Shard())
		}
	})
}
