package job

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// slot is Redis Cluster's HASH_SLOT: CRC16/XMODEM mod 16384
// (https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/).
func slot(tag string) int {
	var crc uint16
	for i := 0; i < len(tag); i++ {
		crc ^= uint16(tag[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc % 16384)
}

func TestShards_areDistinctSlots(t *testing.T) {
	seen := map[int]string{}
	for i := range Shards {
		s := ShardAt(i)
		other, dup := seen[slot(s)]
		require.Falsef(t, dup, "%s and %s share a slot", s, other)
		seen[slot(s)] = s
	}
	assert.Len(t, seen, 1024)
	assert.Equal(t, 12739, slot("123456789"), "0x31C3, the check value of CRC16/XMODEM")
}

func TestNewID_carriesTimeAndShard(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 678_000_000, time.UTC)
	target := Target{Tenant: "acme", ID: "course-1"}
	a, err := NewID(at, target)
	require.NoError(t, err)
	b, err := NewID(at, target)
	require.NoError(t, err)
	assert.NotEqual(t, a, b, "entropy is random")
	assert.Len(t, string(a), 26)
	assert.Equal(t, target.Shard(), a.Shard())
	assert.Equal(t, at, a.Time())
	parsed, err := ParseID(string(a))
	require.NoError(t, err)
	assert.Equal(t, a, parsed)
}

func TestParseID_refusesWhatNoJobCanHave(t *testing.T) {
	for _, s := range []string{
		"", "x", "01J", "01JZZZZZZZZZZZZZZZZZZZZZZ", "01JZZZZZZZZZZZZZZZZZZZZZZZZ",
		"81JZZZZZZZZZZZZZZZZZZZZZZZ", "01JZZZZZZZZZZZZZZZZZZZZZZU", "01JZZZZZZZZZZZZZZZZZZZZZZ\n", "01JZZZZZZZZZZZZZZZZZZZZ한",
	} {
		_, err := ParseID(s)
		assert.ErrorIsf(t, err, ErrNotFound, "%q", s)
	}
	id, err := ParseID("01jzzzzzzzzzzzzzzzzzzzzzzz")
	require.NoError(t, err)
	assert.Equal(t, ID("01JZZZZZZZZZZZZZZZZZZZZZZZ"), id, "upper-cased on entry")
}

func TestTarget_separatorsDoNotCollide(t *testing.T) {
	a, b := Target{"a:b", "c"}, Target{"a", "b:c"}
	assert.NotEqual(t, a.TenantKey(), b.TenantKey())
	assert.NotContains(t, a.TenantKey(), ":")
}

func TestDigests_dependOnEveryPart(t *testing.T) {
	base := InputDigest([]Comment{{"a", "b"}, {"c", "d"}})
	for _, other := range [][]Comment{
		{{"a", "b"}}, {{"ab", ""}, {"c", "d"}}, {{"c", "d"}, {"a", "b"}}, {{"a", "bc"}, {"", "d"}},
	} {
		assert.NotEqual(t, base, InputDigest(other))
	}
	s := Spec{"m", "p", "o"}
	for _, o := range []Spec{{"x", "p", "o"}, {"m", "x", "o"}, {"m", "p", "x"}, {"mp", "", "o"}} {
		assert.NotEqual(t, s.MemoKey("t"), o.MemoKey("t"))
	}
	assert.NotEqual(t, s.MemoKey("t"), s.MemoKey("u"))
	assert.Equal(t, s.MemoKey("t"), s.MemoKey("t"))
}

func TestCodes_eachHasAMessage(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Codes() {
		m := c.Message()
		assert.NotEqual(t, Code("?").Message(), m, c)
		assert.False(t, seen[m], c)
		seen[m] = true
	}
	assert.Len(t, seen, 8)
}
