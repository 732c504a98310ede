package comments_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
	"github.com/stretchr/testify/require"

	"sunhwa/infra/testkit"
	"sunhwa/shared/comments"
	"sunhwa/shared/job"
)

var target = job.Target{Tenant: "acme:한국", ID: "course-1"}

// world is one table of its own on one server, and a clock that tests move.
type world struct {
	server *testkit.DynamoServer
	table  string
	client *dynamodb.Client // without faults

	mu  sync.Mutex
	now time.Time
}

var tables atomic.Int64

func newWorld(t *testing.T, server *testkit.DynamoServer) *world {
	t.Helper()
	w := &world{
		server: server,
		table:  fmt.Sprintf("comments-%d", tables.Add(1)),
		client: server.Client(),
		now:    time.Date(2030, 1, 2, 3, 4, 5, 678_000_000, time.UTC),
	}
	require.NoError(t, w.open().EnsureTable(t.Context()))
	return w
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// open returns the table as another process would see it, its calls going through
// the faults in order.
func (w *world) open(faults ...fault) *comments.Table {
	client := w.server.Client(comments.Tune, func(o *dynamodb.Options) {
		for _, f := range slices.Backward(faults) { // each is put before those there
			o.APIOptions = append(o.APIOptions, f.install)
		}
	})
	return comments.New(client, comments.Options{
		Table: w.table, Now: w.clock, Retention: time.Hour, Logger: slog.New(slog.DiscardHandler),
	})
}

// fault stands between the table and the SDK's retry. It may change the call,
// not make it, make it twice, hold it up, or change its answer.
type fault func(ctx context.Context, in any, call func() (any, error)) (any, error)

func (f fault) install(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("fault",
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			var meta middleware.Metadata
			result, err := f(ctx, in.Parameters, func() (any, error) {
				out, m, err := next.HandleInitialize(ctx, in)
				meta = m
				return out.Result, err
			})
			return middleware.InitializeOutput{Result: result}, meta, err
		}), middleware.Before)
}

// flips reports whether a call writes a head.
func flips(in any) bool { return puts(in, "HEAD") }

// puts reports whether a call is a PutItem of a sort key with that prefix.
func puts(in any, prefix string) bool {
	p, ok := in.(*dynamodb.PutItemInput)
	return ok && strings.HasPrefix(p.Item["sk"].(*types.AttributeValueMemberS).Value, prefix)
}

func deletesRows(in any) bool {
	b, ok := in.(*dynamodb.BatchWriteItemInput)
	if !ok {
		return false
	}
	for _, reqs := range b.RequestItems {
		return reqs[0].DeleteRequest != nil
	}
	return false
}

// killed is a process that dies just before the first call that at picks: that
// call and all after it are never made.
func killed(at func(in any) bool) fault {
	var dead atomic.Bool
	return func(_ context.Context, in any, call func() (any, error)) (any, error) {
		if dead.Load() || at(in) {
			dead.Store(true)
			return nil, errKilled
		}
		return call()
	}
}

var errKilled = fmt.Errorf("killed by the test")

// gate holds up the first call that at picks: it closes reached and goes on when
// open is closed.
type gate struct {
	at      func(in any) bool
	reached chan struct{}
	open    chan struct{}
	once    sync.Once
}

func newGate(at func(in any) bool) *gate {
	return &gate{at: at, reached: make(chan struct{}), open: make(chan struct{})}
}

func (g *gate) fault(ctx context.Context, in any, call func() (any, error)) (any, error) {
	if g.at(in) {
		g.once.Do(func() {
			close(g.reached)
			select {
			case <-g.open:
			case <-ctx.Done():
			}
		})
	}
	return call()
}

// nth picks the n-th call, from 1, of those that at picks.
func nth(n int64, at func(in any) bool) func(in any) bool {
	var seen atomic.Int64
	return func(in any) bool { return at(in) && seen.Add(1) == n }
}

func writesRows(in any) bool {
	_, ok := in.(*dynamodb.BatchWriteItemInput)
	return ok && !deletesRows(in)
}

// id returns the job id of the n-th minute.
func id(t *testing.T, n int) job.ID {
	t.Helper()
	j, err := job.NewID(time.Date(2030, 1, 1, 0, n, 0, 0, time.UTC), target)
	require.NoError(t, err)
	return j
}

func version(j job.ID) string { return string(j) + ".tok-En_" }

// results makes n results that tell which job they are of.
func results(j job.ID, n int) []job.Rewritten {
	rows := make([]job.Rewritten, n)
	for i := range rows {
		rows[i] = job.Rewritten{
			ID: fmt.Sprintf("c%d", i), Before: fmt.Sprintf("%s <최악> \"%d\"", j, i), After: fmt.Sprintf("%s 아쉬워요 & %d", j, i),
		}
	}
	return rows
}

func published(rows []job.Rewritten) []job.PublishedComment {
	out := make([]job.PublishedComment, len(rows))
	for i, r := range rows {
		out[i] = job.PublishedComment{ID: r.ID, Text: r.After, Original: r.Before}
	}
	return out
}

// failure is what Publish answered, without the time.
func failure(_ time.Time, err error) error { return err }

func publish(t *testing.T, table *comments.Table, j job.ID, n int) {
	t.Helper()
	require.NoError(t, failure(table.Publish(t.Context(), target, j, version(j), results(j, n))))
}

// items returns every item of the target, by sort key.
func (w *world) items(t *testing.T) map[string]map[string]types.AttributeValue {
	t.Helper()
	all := map[string]map[string]types.AttributeValue{}
	pages := dynamodb.NewQueryPaginator(w.client, &dynamodb.QueryInput{
		TableName: &w.table, ConsistentRead: aws.Bool(true),
		KeyConditionExpression:    aws.String("#pk = :pk"),
		ExpressionAttributeNames:  map[string]string{"#pk": "pk"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":pk": &types.AttributeValueMemberS{Value: target.TenantKey() + "#" + target.ID}},
	})
	for pages.HasMorePages() {
		out, err := pages.NextPage(t.Context())
		require.NoError(t, err)
		for _, it := range out.Items {
			all[it["sk"].(*types.AttributeValueMemberS).Value] = it
		}
	}
	return all
}

// counts returns how many rows each version has, under "HEAD" 1 when there is a
// head, and under "STAGE" how many stage records there are.
func (w *world) counts(t *testing.T) map[string]int {
	t.Helper()
	n := map[string]int{}
	for sk := range w.items(t) {
		name, _, _ := strings.Cut(sk, "#")
		n[name]++
	}
	return n
}

// readAll follows the cursors from the beginning.
func readAll(ctx context.Context, table *comments.Table, pageBytes int) (job.ID, []job.PublishedComment, int, error) {
	var all []job.PublishedComment
	cursor, pages := "", 0
	for {
		page, err := table.Read(ctx, target, cursor, pageBytes)
		if err != nil {
			return "", nil, pages, err
		}
		pages++
		all = append(all, page.Comments...)
		if page.Next == "" {
			return page.JobID, all, pages, nil
		}
		cursor = page.Next
	}
}
