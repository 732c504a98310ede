package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"sunhwa/infra/local/gateway"
	"sunhwa/infra/local/invoke"
	"sunhwa/shared/config"
)

// maxHeader is what the front reads of a request's header before it answers by
// itself; the gateway's own, smaller quota is checked behind it.
const maxHeader = 64 << 10

// Options configure a Stack.
type Options struct {
	Config *config.Local
	Logger *slog.Logger // nil means slog.Default()
	// Wrap, when set, stands between the Invoke endpoint and each function, by
	// its short name: a test makes functions fail with it.
	Wrap func(name string, f invoke.Function) invoke.Function
}

// Part is one thing the stack runs on.
type Part struct {
	Name    string // "Redis"
	What    string // where it is, or what stands in for it
	StandIn bool
}

// Stack is the running local stack.
type Stack struct {
	log       *slog.Logger
	parts     []Part
	warnings  []string
	sweeper   string // the name under which the schedule invokes it
	url       string
	invokeURL string
	front     *http.Server
	endpoint  *http.Server
	invoke    *invoke.Server

	stopSweep  context.CancelFunc
	background sync.WaitGroup // servers and the schedule
	closers    []func() error // last first
	failed     chan error     // a server that ended by itself
}

// Start brings a stack up and returns when it answers. ctx bounds the start
// only. The caller closes the stack.
func Start(ctx context.Context, o Options) (*Stack, error) {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	s := &Stack{log: o.Logger, failed: make(chan error, 2), stopSweep: func() {}}
	if err := s.start(ctx, o); err != nil {
		return nil, errors.Join(err, s.release())
	}
	return s, nil
}

func (s *Stack) start(ctx context.Context, o Options) error {
	cfg := o.Config
	// First of all, so that a taken port is told before anything else happens.
	front, err := listen(ctx, cfg.HTTPAddr)
	if err != nil {
		return fmt.Errorf("HTTP_ADDR %s: %w", cfg.HTTPAddr, err)
	}
	s.onClose(func() error { return ignoreClosed(front.Close()) })
	inner, err := listen(ctx, "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the Invoke endpoint: %w", err)
	}
	s.onClose(func() error { return ignoreClosed(inner.Close()) })

	s.invokeURL = "http://" + inner.Addr().String()
	d, err := s.adapters(ctx, cfg)
	if err != nil {
		return err
	}
	functions, timeouts := d.functions(cfg, s.log)
	names := cfg.FunctionNames()
	s.sweeper = names["sweeper"]
	if o.Wrap != nil {
		for name, f := range functions {
			functions[name] = o.Wrap(name, f)
		}
	}
	s.invoke = invoke.New(invoke.Options{
		Functions:   renamed(names, functions),
		Timeouts:    renamed(names, timeouts),
		RetryDelays: cfg.RetryDelays,
		Duplicates:  cfg.Duplicates,
		Logger:      s.log,
	})
	s.endpoint = &http.Server{Handler: s.invoke.Handler(), ReadHeaderTimeout: 10 * time.Second}
	s.serve("Invoke endpoint", s.endpoint, inner)

	g := gateway.Options{Functions: names, Logger: s.log}
	if cfg.TenantHeader {
		g.TenantClaim, g.DefaultTenant = tenancy(cfg)
	}
	s.warnings = warnings(cfg)
	s.url = "http://" + front.Addr().String()
	s.front = &http.Server{
		Handler:           home(s, gateway.New(s.invoke, g)),
		ReadHeaderTimeout: 10 * time.Second,
		MaxHeaderBytes:    maxHeader,
		// OPTIONS * too is the gateway's to refuse.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	s.serve("front", s.front, front)

	sweepCtx, stop := context.WithCancel(context.Background())
	s.stopSweep = stop
	s.background.Go(func() { s.schedule(sweepCtx, cfg.SweepEvery) })

	for _, p := range s.parts {
		s.log.Info("part", "name", p.Name, "what", p.What, "standIn", p.StandIn)
	}
	for _, w := range s.warnings {
		s.log.Warn(w)
	}
	s.log.Info("local stack is up", "url", s.url)
	return nil
}

// URL is where the front answers, without a slash at its end.
func (s *Stack) URL() string { return s.url }

// Parts says what the stack runs on.
func (s *Stack) Parts() []Part { return append([]Part(nil), s.parts...) }

// Warnings says what of the configuration has another effect here than its user
// may expect.
func (s *Stack) Warnings() []string { return append([]string(nil), s.warnings...) }

// GivenUp returns what an on-failure destination would hold.
func (s *Stack) GivenUp() []invoke.Record { return s.invoke.GivenUp() }

// Failed yields the error of a server that stopped by itself.
func (s *Stack) Failed() <-chan error { return s.failed }

// Close takes no more requests, waits for those under way and for the queue of
// invocations, and releases everything. When ctx ends first, workers are
// canceled, and Close says how many invocations were given up: with a real Redis
// their jobs stay RUNNING and the next stack's sweeper takes them up. Once
// closed, a further call does nothing.
func (s *Stack) Close(ctx context.Context) error {
	var errs []error
	if err := s.front.Shutdown(ctx); err != nil {
		errs = append(errs, fmt.Errorf("close the front: %w", err))
		_ = s.front.Close()
	}
	s.stopSweep()
	if n, err := s.invoke.Drain(ctx); err != nil {
		errs = append(errs, fmt.Errorf("drain: %d invocation(s) given up: %w", n, err))
	}
	_ = s.endpoint.Close() // nothing is under way behind it
	s.background.Wait()
	return errors.Join(append(errs, s.release())...)
}

func (s *Stack) serve(name string, srv *http.Server, l net.Listener) {
	s.background.Go(func() {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- fmt.Errorf("%s: %w", name, err)
		}
	})
}

func (s *Stack) onClose(f func() error) { s.closers = append(s.closers, f) }

// release ends what start has begun, the newest first.
func (s *Stack) release() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i]())
	}
	s.closers = nil
	return errors.Join(errs...)
}

func listen(ctx context.Context, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen: %w (is another stack running? HTTP_ADDR=127.0.0.1:0 takes any free port)", err)
	}
	return l, nil
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
