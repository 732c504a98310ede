package invoke

import (
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"sync"
	"time"
)

// Lambda's quotas in bytes
// (https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html).
const (
	MaxSyncPayload  = 6_291_456 // into a synchronous invocation
	MaxAsyncPayload = 1_048_576 // into an asynchronous invocation
	MaxResponse     = 6_291_556 // out of a function
)

// MaxTimeout is the longest run time Lambda gives a function.
const MaxTimeout = 15 * time.Minute

// maxRecords bounds the on-failure records held; the oldest go first.
const maxRecords = 1000

// Function is what an invocation runs. lambda.Handler of aws-lambda-go is one:
// lambda.NewHandler decodes and encodes as the Lambda runtime does.
type Function interface {
	Invoke(ctx context.Context, payload []byte) ([]byte, error)
}

// Options configure a Server. The zero value of every member but Functions has
// a meaning.
type Options struct {
	// Functions by name.
	Functions map[string]Function
	// Timeouts are run times by function name; MaxTimeout where absent.
	Timeouts map[string]time.Duration
	// RetryDelays are the waits before each further delivery of a failed
	// asynchronous event. Lambda has two: 1 and 2 minutes. None: no retry.
	RetryDelays []time.Duration
	// Duplicates is the share of asynchronous events delivered twice, 0..1.
	Duplicates float64
	// Concurrency is how many asynchronous deliveries run at once; 0 means 64.
	Concurrency int
	// Grace is how long a function may go on after its time is up or its server
	// is closed, before it is left behind; 0 means 500 ms.
	Grace time.Duration
	// Logger gets one line for each event that failed; nil means slog.Default().
	Logger *slog.Logger

	// Wait blocks for d or until ctx is done; nil means a timer.
	Wait func(ctx context.Context, d time.Duration) error
	// Chance gives numbers in 0..1; nil means math/rand.
	Chance func() float64
	// Now is the clock of on-failure records; nil means time.Now.
	Now func() time.Time
}

// Server runs functions. Its methods are safe for concurrent use.
type Server struct {
	functions   map[string]Function
	timeouts    map[string]time.Duration
	retryDelays []time.Duration
	duplicates  float64
	grace       time.Duration
	log         *slog.Logger
	wait        func(context.Context, time.Duration) error
	chance      func() float64
	now         func() time.Time

	slots chan struct{} // one per asynchronous delivery that runs
	life  context.Context
	kill  context.CancelFunc

	mu      sync.Mutex
	closing bool
	pending int           // invocations accepted and not yet over
	idle    chan struct{} // closed once closing and nothing is pending
	records []Record
}

// New returns a Server that runs o.Functions until Drain.
func New(o Options) *Server {
	if o.Concurrency <= 0 {
		o.Concurrency = 64
	}
	if o.Grace <= 0 {
		o.Grace = 500 * time.Millisecond
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Wait == nil {
		o.Wait = wait
	}
	if o.Chance == nil {
		o.Chance = rand.Float64
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	life, kill := context.WithCancel(context.Background())
	return &Server{
		functions:   maps.Clone(o.Functions),
		timeouts:    maps.Clone(o.Timeouts),
		retryDelays: append([]time.Duration(nil), o.RetryDelays...),
		duplicates:  o.Duplicates,
		grace:       o.Grace,
		log:         o.Logger,
		wait:        o.Wait,
		chance:      o.Chance,
		now:         o.Now,
		slots:       make(chan struct{}, o.Concurrency),
		life:        life,
		kill:        kill,
		idle:        make(chan struct{}),
	}
}

// Drain refuses new invocations and waits for those accepted, retries included.
// When ctx ends first, running functions see their context canceled, queued
// events and retries are dropped, and Drain returns ctx's error and how many
// invocations it gave up. Once drained, a further call returns at once.
func (s *Server) Drain(ctx context.Context) (abandoned int, err error) {
	s.mu.Lock()
	if !s.closing {
		s.closing = true
		if s.pending == 0 {
			close(s.idle)
		}
	}
	s.mu.Unlock()

	select {
	case <-s.idle:
		s.kill()
		return 0, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	abandoned = s.pending
	s.mu.Unlock()
	s.kill()
	<-s.idle // bounded by grace: every wait below selects on life
	return abandoned, ctx.Err()
}

// Pending reports how many invocations are accepted and not yet over.
func (s *Server) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pending
}

// begin counts one invocation in, unless the server is closing.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	s.pending++
	return true
}

func (s *Server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending--
	if s.closing && s.pending == 0 {
		close(s.idle)
	}
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
