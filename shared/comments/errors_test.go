package comments_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/infra/testkit"
	"sunhwa/shared/comments"
	"sunhwa/shared/job"
)

// everyCall calls each method once and hands its error to check.
func everyCall(t *testing.T, ctx context.Context, table *comments.Table, check func(name string, err error)) {
	t.Helper()
	j := id(t, 1)
	_, err := table.Head(ctx, target)
	check("Head", err)
	_, err = table.Read(ctx, target, "", 1)
	check("Read", err)
	check("Publish", failure(table.Publish(ctx, target, j, version(j), results(j, 3))))
	check("Entomb", table.Entomb(ctx, target, j))
	check("Erase", table.Erase(ctx, target))
}

func TestTable_unavailable(t *testing.T) {
	w := newWorld(t, testkit.DynamoStart(t, "embedded"))
	answer := func(err error) *comments.Table {
		return w.open(func(context.Context, any, func() (any, error)) (any, error) { return nil, err })
	}
	missing := comments.New(w.client, comments.Options{Table: "no-such-table", Now: w.clock})
	unreachable := &testkit.DynamoServer{URL: "http://" + testkit.FreeAddr(t)}
	for name, table := range map[string]*comments.Table{
		"throttled":     answer(&types.ProvisionedThroughputExceededException{}),
		"limited":       answer(&types.RequestLimitExceeded{}),
		"server fault":  answer(&types.InternalServerError{}),
		"access denied": answer(&smithy.GenericAPIError{Code: "AccessDeniedException", Fault: smithy.FaultClient}),
		"no table":      missing,
		"unreachable": comments.New(unreachable.Client(comments.Tune, func(o *dynamodb.Options) { o.HTTPClient = http.DefaultClient }),
			comments.Options{Table: w.table}),
	} {
		t.Run(name, func(t *testing.T) {
			everyCall(t, t.Context(), table, func(call string, err error) {
				assert.ErrorIs(t, err, job.ErrUnavailable, call)
			})
		})
	}
}

func TestTable_canceled(t *testing.T) {
	w := newWorld(t, testkit.DynamoStart(t, "embedded"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	everyCall(t, ctx, w.open(), func(call string, err error) {
		assert.ErrorIs(t, err, context.Canceled, call)
		assert.ErrorIs(t, err, job.ErrUnavailable, call)
	})
}

// A vendor's error may quote the item; ours must not.
func TestTable_errorsCarryNoText(t *testing.T) {
	w := newWorld(t, testkit.DynamoStart(t, "embedded"))
	table := w.open(func(context.Context, any, func() (any, error)) (any, error) {
		return nil, &smithy.GenericAPIError{Code: "ValidationException", Message: "bad value: 너무 별로예요"}
	})
	everyCall(t, t.Context(), table, func(call string, err error) {
		require.Error(t, err, call)
		assert.NotErrorIs(t, err, job.ErrUnavailable, "asking again would not help: "+call)
		assert.NotContains(t, err.Error(), "별로", call)
		assert.Contains(t, err.Error(), "ValidationException", call)
	})
}

// Rows that go missing under a shown head are never read as a shorter version.
func TestTable_Read_incomplete(t *testing.T) {
	w := newWorld(t, testkit.DynamoStart(t, "embedded"))
	j := id(t, 1)
	publish(t, w.open(), j, 5)
	page, err := w.open().Read(t.Context(), target, "", 1)
	require.NoError(t, err)
	heads := 0
	counting := func(_ context.Context, in any, call func() (any, error)) (any, error) {
		if _, ok := in.(*dynamodb.GetItemInput); ok {
			heads++
		}
		return call()
	}
	for _, lost := range []string{"#0004", "#0002", "#0001"} {
		_, err = w.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &w.table, Key: map[string]types.AttributeValue{
			"pk": &types.AttributeValueMemberS{Value: target.TenantKey() + "#" + target.ID},
			"sk": &types.AttributeValueMemberS{Value: version(j) + lost},
		}})
		require.NoError(t, err)
		for _, cursor := range []string{"", page.Next} {
			heads = 0
			_, err = w.open(counting).Read(t.Context(), target, cursor, 2_500_000)
			require.ErrorIs(t, err, job.ErrUnavailable)
			assert.Equal(t, 4, heads, "once and three times again")
		}
	}
}

func TestTable_Entomb_livesTwoMinutesAtLeast(t *testing.T) {
	w := newWorld(t, testkit.DynamoStart(t, "embedded"))
	table := comments.New(w.client, comments.Options{Table: w.table, Now: w.clock, Retention: 5 * time.Second})
	require.NoError(t, table.Entomb(t.Context(), target, id(t, 1)))
	w.advance(2 * time.Minute)
	_, err := table.Head(t.Context(), target)
	require.NoError(t, err)
	w.advance(2 * time.Second)
	_, err = table.Head(t.Context(), target)
	require.ErrorIs(t, err, job.ErrNotFound)
}
