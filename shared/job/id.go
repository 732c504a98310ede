package job

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
)

// ID names one job: a valid ULID of 26 upper-case characters, the same string in
// Redis, in DynamoDB and over HTTP. Its last two characters are the shard of its
// target, so an ID alone says in which Redis Cluster slot its keys are.
type ID string

// crockford is the alphabet of a ULID, in its sort order
// (https://github.com/ulid/spec).
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// Shards is how many hash tags all targets are spread over. Two characters of
// base32 give 1,024; each lies in a Redis Cluster slot of its own.
const Shards = len(crockford) * len(crockford)

// ShardAt returns the shard of index i, 0 <= i < Shards: two characters.
func ShardAt(i int) string {
	return string([]byte{crockford[i/len(crockford)], crockford[i%len(crockford)]})
}

// NewID mints an ID for a job of t. Its time is at (millisecond precision) and
// its entropy is read from crypto/rand, never monotonic; the last two characters
// are t.Shard(). It fails only when the system has no randomness or at lies
// outside what a ULID can hold.
func NewID(at time.Time, t Target) (ID, error) { return newID(at, t, rand.Reader) }

func newID(at time.Time, t Target, entropy io.Reader) (ID, error) {
	u, err := ulid.New(ulid.Timestamp(at), entropy)
	if err != nil {
		return "", fmt.Errorf("job: mint an id: %w", err)
	}
	s := u.String()
	return ID(s[:len(s)-2] + t.Shard()), nil
}

// ParseID accepts a ULID in either case and returns it upper-cased. Anything
// else is ErrNotFound: an id that cannot exist names no job.
func ParseID(s string) (ID, error) {
	u, err := ulid.ParseStrict(strings.ToUpper(s))
	if err != nil {
		return "", fmt.Errorf("%w: malformed id", ErrNotFound)
	}
	return ID(u.String()), nil
}

// Shard returns the hash tag of the job's keys: the id's last two characters.
// It must be called only on an ID that ParseID or NewID gave.
func (id ID) Shard() string { return string(id[len(id)-2:]) }

// Time returns the time inside the id, in UTC with millisecond precision. It
// orders ids; it is not when the job was created. The zero time if id is empty.
func (id ID) Time() time.Time {
	u, err := ulid.ParseStrict(string(id))
	if err != nil {
		return time.Time{}
	}
	return ulid.Time(u.Time()).UTC()
}

// NewToken returns a fresh random token for one worker invocation: 128 bits in
// base64url, never empty. It fails only when the system has no randomness.
func NewToken() (string, error) {
	b := make([]byte, 16)
	if _, err := rand.Read(b); err != nil {
		return "", fmt.Errorf("job: mint a token: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(b), nil
}

// Target is the thing whose comments are rewritten, inside its tenant. Both are
// part of every key, so (a:b, c) and (a, b:c) are two targets.
type Target struct {
	Tenant string // raw, as the verified caller gave it
	ID     string // the caller's targetId
}

// TenantKey returns the tenant as it stands in keys: unpadded base64url, so that
// no tenant can hold a separator.
func (t Target) TenantKey() string { return base64.RawURLEncoding.EncodeToString([]byte(t.Tenant)) }

// Shard returns the two Crockford base32 characters that all Redis keys of the
// target share: the first ten bits of SHA-256 over tenant, a NUL byte, targetId.
func (t Target) Shard() string {
	h := sha256.Sum256([]byte(t.Tenant + "\x00" + t.ID))
	return ShardAt(int(h[0])<<2 | int(h[1])>>6)
}

// Ref names a job together with its target: what a worker's event carries, and
// what every move on a job needs besides its arguments.
type Ref struct {
	ID     ID
	Target Target
}

// Event is what a worker is invoked with: ids only, never a text.
type Event struct {
	JobID    string `json:"jobId"`
	Tenant   string `json:"tenant"` // raw
	TargetID string `json:"targetId"`
}

// Event returns the event that makes a worker take up the job.
func (r Ref) Event() Event {
	return Event{JobID: string(r.ID), Tenant: r.Target.Tenant, TargetID: r.Target.ID}
}

// Ref returns the job the event names, or ErrNotFound when its id is malformed
// or not an id of that target.
func (e Event) Ref() (Ref, error) {
	id, err := ParseID(e.JobID)
	if err != nil {
		return Ref{}, err
	}
	t := Target{Tenant: e.Tenant, ID: e.TargetID}
	if id.Shard() != t.Shard() {
		return Ref{}, fmt.Errorf("%w: id of another target", ErrNotFound)
	}
	return Ref{ID: id, Target: t}, nil
}
