package testkit

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"sunhwa/infra/local/dynamo"
)

// DynamoServer is a running DynamoDB stand-in, on loopback.
type DynamoServer struct {
	Name string // "embedded", "dynalite" or "moto"
	URL  string // for BaseEndpoint or AWS_ENDPOINT_URL_DYNAMODB
	Pid  int    // of the child process; 0 for the embedded one

	// Pages reports whether a Query ends at 1 MB as DynamoDB's does.
	Pages bool
	// Slow reports that a call takes tens of milliseconds: tests do with fewer.
	Slow bool

	transport http.RoundTripper
}

// DynamoNames lists the stand-ins that DynamoStart knows.
func DynamoNames() []string { return []string{"embedded", "dynalite", "moto"} }

// DynamoStart starts the named stand-in, empty, for this test, and ends it with
// the test. One whose program is not installed fails the test and names the
// command that installs it.
func DynamoStart(t testing.TB, name string) *DynamoServer {
	t.Helper()
	switch name {
	case "embedded":
		s, err := dynamo.Start(slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return &DynamoServer{Name: name, URL: s.URL(), transport: &settled{next: &http.Transport{}}}
	case "dynalite":
		s := dynamoProcess(t, "dynalite", "npm/node_modules/.bin/dynalite", "--host", "127.0.0.1", "--createTableMs", "0", "--port")
		s.Name, s.Pages, s.transport = name, true, &settled{next: &http.Transport{}}
		return s
	case "moto":
		s := dynamoProcess(t, "moto_server", "moto/bin/moto_server", "-H", "127.0.0.1", "-p")
		// Its tables are not made for several requests at once, and it closes every
		// connection after its answer.
		s.Name, s.Pages, s.Slow, s.transport = name, true, true, &settled{turn: &sync.Mutex{}, next: &http.Transport{DisableKeepAlives: true}}
		return s
	}
	t.Fatalf("testkit: no DynamoDB stand-in %q", name)
	return nil
}

// Client returns an SDK client of the server, with the SDK's own retry.
func (s *DynamoServer) Client(fns ...func(*dynamodb.Options)) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(s.URL),
		Region:       "us-east-1", // moto keeps tables by region
		Credentials:  credentials.NewStaticCredentialsProvider("test", "test", ""),
		HTTPClient:   &http.Client{Transport: s.transport},
	}, fns...)
}

// dynamoProcess runs an installed program with a free port as its last argument
// and waits until it answers.
func dynamoProcess(t testing.TB, name, underTools string, args ...string) *DynamoServer {
	t.Helper()
	path, err := program(name, underTools)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	for {
		port, err := freePort()
		if err != nil {
			t.Fatal(err)
		}
		p, err := startProcess(t.TempDir(), path, append(args, strconv.Itoa(port))...)
		if err != nil {
			t.Fatal(err)
		}
		s := &DynamoServer{URL: "http://" + loopback(port), Pid: p.cmd.Process.Pid}
		err = poll(ctx, func(ctx context.Context) error {
			if p.ended() {
				return nil // below
			}
			return dynamoAnswers(ctx, s.URL)
		})
		if err == nil && !p.ended() {
			t.Cleanup(func() {
				if p.ended() {
					t.Errorf("testkit: %s ended during the test\n%s", name, p.logTail())
				}
				p.kill()
			})
			return s
		}
		p.kill()
		if err != nil || ctx.Err() != nil {
			t.Fatalf("testkit: %s did not start: %v\n%s", name, err, p.logTail())
		}
		t.Logf("testkit: %s ended at once, as when its port was taken meanwhile; trying another\n%s", name, p.logTail())
	}
}

// dynamoAnswers makes one plain request; any answer below 500 will do.
func dynamoAnswers(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	_ = resp.Body.Close() // nothing in it is of interest
	if resp.StatusCode >= http.StatusInternalServerError {
		return fmt.Errorf("testkit: %s answers %s", url, resp.Status)
	}
	return nil
}

// settled is a transport whose every request is carried out to its end, its answer
// read, before the caller hears of it, even when the caller's context ends in
// between. So a test that gave up a call knows that the server is done with it; and
// dynalite, which dies of a request that is broken off, lives.
type settled struct {
	turn *sync.Mutex // held for each request; nil when they may overlap
	next http.RoundTripper
}

func (s *settled) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.turn != nil {
		s.turn.Lock()
		defer s.turn.Unlock()
	}
	resp, err := s.next.RoundTrip(r.WithContext(context.WithoutCancel(ctx)))
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close() // read to its end
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}
