package jobstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"sunhwa/shared/job"
)

// schema is the shape of the job hash this version writes and reads. A worker
// refuses to begin a job of another.
const schema = "1"

// textsAfterApply is how long the texts of a published job live on.
const textsAfterApply = time.Hour

// maxGroups bounds the results of one record call: ElastiCache Serverless takes
// at most 3,999 arguments a request.
const maxGroups = 400

// askTimeout bounds one question to Redis, its retries included, where the
// caller's context gives it longer: a cold cluster client asks its nodes one after
// the other, and each may be silent for 2 s.
const askTimeout = 4 * time.Second

// Options say how a Store behaves. The zero value is usable.
type Options struct {
	MemoLimit   int              // most answers remembered a target; 0: 1000
	MaxAttempts int              // attempts a job may have; 0: 3
	Now         func() time.Time // displayed times only; nil: time.Now
	Logger      *slog.Logger     // nil: slog.Default()
	// Timing is told each script's name, how long it took and how it ended; nil: nobody.
	Timing func(move string, took time.Duration, err error)
	// Scripts replaces script texts by name (see Sources). It is there for the
	// program that proves that a faulty script would be noticed; nil in use.
	Scripts map[string]string
}

// Store moves jobs. It is safe for concurrent use. Every method returns
// job.ErrUnavailable (wrapped) when Redis could not be asked or said "not now";
// the move may then have happened, and repeating the call with the same
// arguments is safe and answers as the first would have.
type Store struct {
	rdb     redis.UniversalClient
	o       Options
	scripts map[string]*redis.Script
}

// New returns a store on rdb, which stays the caller's to close.
func New(rdb redis.UniversalClient, o Options) *Store {
	if o.MemoLimit == 0 {
		o.MemoLimit = 1000
	}
	if o.MaxAttempts == 0 {
		o.MaxAttempts = 3
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return &Store{rdb: rdb, o: o, scripts: compile(o.Scripts)}
}

// Ping asks the server whether it is there.
func (s *Store) Ping(ctx context.Context) error {
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return classify(ctx, "ping", s.rdb.Ping(asking).Err())
}

// EvictionPolicy returns the server's maxmemory-policy. Managed servers may
// refuse to tell; that is an error and nothing to worry about. Anything but
// noeviction may delete live jobs.
func (s *Store) EvictionPolicy(ctx context.Context) (string, error) {
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	text, err := s.rdb.Info(asking, "memory").Result() // CONFIG is refused by managed servers
	if err != nil {
		return "", classify(ctx, "info", err)
	}
	for line := range strings.Lines(text) {
		if policy, ok := strings.CutPrefix(strings.TrimSpace(line), "maxmemory_policy:"); ok {
			return policy, nil
		}
	}
	return "", errors.New("jobstore: info: the server does not tell its maxmemory_policy")
}

func (s *Store) now() string { return millis(s.o.Now()) }

// millis is a time as the hashes keep it: epoch milliseconds.
func millis(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

// run runs one script and turns a refusal into its sentinel. While a slot
// migrates it asks again with backoff, for as long as ctx and askTimeout allow.
func (s *Store) run(ctx context.Context, move string, keys []string, args ...any) (reply, error) {
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	began := time.Now()
	v, err := s.scripts[move].Run(asking, s.rdb, keys, args...).Result()
	for wait := 10 * time.Millisecond; migrating(err) && asking.Err() == nil; wait = min(2*wait, 250*time.Millisecond) {
		select {
		case <-asking.Done():
		case <-time.After(wait):
			v, err = s.scripts[move].Run(asking, s.rdb, keys, args...).Result()
		}
	}
	if s.o.Timing != nil {
		s.o.Timing(move, time.Since(began), err)
	}
	if err != nil {
		return nil, classify(ctx, move, err)
	}
	r, err := asReply(v)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", move, err)
	}
	return r, r.refusal(move)
}

// ms gives whole milliseconds as an argument; what is below one counts as one.
func ms(d time.Duration) int64 { return max(d.Milliseconds(), 1) }

func usageArgs(u job.Usage) []any {
	return []any{u.PromptTokens, u.CompletionTokens, u.TotalTokens, u.Calls, u.MemoHits}
}

func extraArgs(x job.Extra) []any { return append([]any{x.Seq}, usageArgs(x.Usage)...) }
