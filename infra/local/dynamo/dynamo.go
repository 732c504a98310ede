// Package dynamo is an embedded stand-in for DynamoDB: an in-memory server on
// loopback that the real AWS SDK talks to over HTTP. It is for the local stack and
// for tests, and is no DynamoDB: it keeps nothing when it ends, has no throttling,
// no TTL, no item or page size limit, and checks no signature.
package dynamo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/truora/minidyn/server"
)

// maxRequest is the largest request DynamoDB takes, in bytes
// (https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchWriteItem.html).
const maxRequest = 16 << 20

// closeTimeout bounds how long Close waits for requests under way. Connections
// that a client has opened and not used yet make every Close take that long.
const closeTimeout = 300 * time.Millisecond

// Server is a running stand-in.
type Server struct {
	http *http.Server
	addr string
	done chan struct{} // closed once Serve has returned
}

// Start serves an empty stand-in on a free loopback port until Close. It logs that
// it is one; nil means slog.Default().
func Start(log *slog.Logger) (*Server, error) {
	if log == nil {
		log = slog.Default()
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("dynamo: listen: %w", err)
	}
	s := &Server{
		http: &http.Server{Handler: &serial{next: server.NewServer()}, ReadHeaderTimeout: 5 * time.Second},
		addr: l.Addr().String(),
		done: make(chan struct{}),
	}
	go func() {
		defer close(s.done)
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("the DynamoDB stand-in ended", "error", err)
		}
	}()
	log.Info("DynamoDB is an embedded stand-in; what is published is lost when this process ends", "endpoint", s.URL())
	return s, nil
}

// URL returns the endpoint for the SDK's BaseEndpoint or AWS_ENDPOINT_URL_DYNAMODB.
func (s *Server) URL() string { return "http://" + s.addr }

// Close ends the server, after requests under way or 300 ms, and waits for it.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	<-s.done
	if err != nil {
		return fmt.Errorf("dynamo: close: %w", err)
	}
	return nil
}

// serial lets one request at a time into next: the library locks its tables in
// some operations only, and encodes answers after it has let go of the lock.
type serial struct {
	mu   sync.Mutex
	next http.Handler
}

// ServeHTTP reads the request before and writes the answer after its turn, so that
// no slow client holds up the others.
func (s *serial) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		http.Error(w, "request not read", http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer := &buffer{header: w.Header(), status: http.StatusOK}
	s.serve(answer, r)
	w.WriteHeader(answer.status)
	_, _ = w.Write(answer.body.Bytes()) // the client has gone; nobody is left to tell
}

func (s *serial) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next.ServeHTTP(w, r)
}

// buffer keeps an answer until it can be written.
type buffer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (b *buffer) Header() http.Header { return b.header }

func (b *buffer) WriteHeader(status int) { b.status = status }

func (b *buffer) Write(p []byte) (int, error) { return b.body.Write(p) }
