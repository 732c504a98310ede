// Package comments keeps the published versions of every target in one DynamoDB
// table. A reader sees one version whole or none of it, and a target never goes
// back to a job acquired earlier, whatever crashes, repeats or races.
//
// A partition is one target. It holds the rows of its versions, the head that
// says which version is shown, and one stage record for every version that is
// being written. Rows are written first and seen by nobody; one conditional
// PutItem of the head then shows them all. No transaction is used: the head is
// the only truth, and what the head does not show is removed later.
package comments

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"sunhwa/shared/job"
)

const (
	// applyLimit is the longest a Publish may run, well below stageLife: whoever
	// finds a stage record older than stageLife knows that its writer has ended.
	applyLimit = 30 * time.Second
	// stageLife is how long a stage record protects the rows of its version.
	stageLife = 60 * time.Second
	// minTombstone is the shortest life of a tombstone: longer than any apply
	// that was under way when it was written.
	minTombstone = 2 * time.Minute
	// tablePoll is how often EnsureTable looks whether the table has become active.
	tablePoll = 100 * time.Millisecond
)

// Options of a Table.
type Options struct {
	Table     string
	Now       func() time.Time // nil = time.Now; decides appliedAt, the age of stage records, and expiry
	Retention time.Duration    // life of a tombstone, raised to two minutes when shorter
	Logger    *slog.Logger     // nil = slog.Default(); told of clean-up that failed
}

// Table is the published comments. It is safe for use from many goroutines and
// processes at once.
//
// Its methods answer job.ErrUnavailable when DynamoDB could not be reached,
// throttled or refused; a context's own error stays visible to errors.Is.
type Table struct {
	db        *dynamodb.Client
	name      string
	now       func() time.Time
	tombstone time.Duration
	log       *slog.Logger
}

// New returns the table named in o, reached through client.
func New(client *dynamodb.Client, o Options) *Table {
	t := &Table{db: client, name: o.Table, now: o.Now, tombstone: max(o.Retention, minTombstone), log: o.Logger}
	if t.now == nil {
		t.now = time.Now
	}
	if t.log == nil {
		t.log = slog.Default()
	}
	return t
}

// Tune sets the SDK's own retry for use behind an HTTP call: four attempts at
// most, half a second between two, a second to connect and five for one attempt.
// Pass it to dynamodb.NewFromConfig.
func Tune(o *dynamodb.Options) {
	if client, ok := o.HTTPClient.(*awshttp.BuildableClient); ok || o.HTTPClient == nil {
		if client == nil {
			client = awshttp.NewBuildableClient()
		}
		o.HTTPClient = client.WithTimeout(5 * time.Second).WithDialerOptions(func(d *net.Dialer) { d.Timeout = time.Second })
	}
	o.Retryer = retry.NewStandard(func(so *retry.StandardOptions) {
		so.MaxAttempts = 4
		so.MaxBackoff = 500 * time.Millisecond
	})
}

// EnsureTable creates the table when it is absent and waits until it is active.
// It is for local stacks and tests; the template makes the real one.
func (t *Table) EnsureTable(ctx context.Context) error {
	describe := &dynamodb.DescribeTableInput{TableName: &t.name}
	out, err := t.db.DescribeTable(ctx, describe)
	if missing := (*types.ResourceNotFoundException)(nil); errors.As(err, &missing) {
		if err := t.createTable(ctx); err != nil {
			return err
		}
		out, err = t.db.DescribeTable(ctx, describe)
	}
	for {
		if err != nil {
			return wrap("describe the table", err)
		}
		// An empty status is a stand-in that has none; its tables are active at once.
		if s := out.Table.TableStatus; s == "" || s == types.TableStatusActive {
			break
		}
		if err := wait(ctx, tablePoll); err != nil {
			return wrap("wait for the table", err)
		}
		out, err = t.db.DescribeTable(ctx, describe)
	}
	// Readers look at expiresAt themselves, so a server without TTL loses nothing
	// but the deletion of old tombstones; an enabled one answers an error as well.
	if _, err := t.db.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: &t.name,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{
			AttributeName: aws.String(attrExpiresAt), Enabled: aws.Bool(true),
		},
	}); err != nil {
		t.log.DebugContext(ctx, "table has no TTL of its own", "table", t.name, "error", wrap("set the TTL", err))
	}
	return nil
}

func (t *Table) createTable(ctx context.Context) error {
	_, err := t.db.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:   &t.name,
		BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String(attrPK), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String(attrSK), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String(attrPK), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String(attrSK), KeyType: types.KeyTypeRange},
		},
	})
	// Somebody else creating it at the same moment is as good.
	if inUse := (*types.ResourceInUseException)(nil); errors.As(err, &inUse) {
		return nil
	}
	return wrap("create the table", err)
}

// verdict says what a head means for job id: whether id may still be shown, and
// if not, what Publish answers. h is nil when the head is absent or expired.
func verdict(h *head, id job.ID) (open bool, err error) {
	switch {
	case h == nil || h.JobID < id:
		return true, nil
	case h.Tombstone():
		return false, job.ErrGone
	case h.JobID > id:
		return false, job.ErrSuperseded
	}
	return false, nil // this very job is shown
}
