package comments

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"
)

const (
	// batchSize is what one BatchWriteItem takes at most
	// (https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchWriteItem.html).
	batchSize = 25
	// batchesAtOnce is how many are under way together.
	batchesAtOnce = 4
)

// writeAll carries out every request, in no order, and returns nil only when
// DynamoDB has taken them all.
func (t *Table) writeAll(ctx context.Context, action string, reqs []types.WriteRequest) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(batchesAtOnce)
	for batch := range slices.Chunk(reqs, batchSize) {
		g.Go(func() error { return t.writeBatch(ctx, action, batch) })
	}
	return g.Wait() // writeBatch has wrapped it
}

// writeBatch sends at most batchSize requests, and what DynamoDB hands back as
// unprocessed again after a jittered wait, until nothing is left or ctx ends.
func (t *Table) writeBatch(ctx context.Context, action string, batch []types.WriteRequest) error {
	for try := 0; ; try++ {
		out, err := t.db.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{
			RequestItems: map[string][]types.WriteRequest{t.name: batch},
		})
		if err != nil {
			return wrap(action, err)
		}
		if batch = out.UnprocessedItems[t.name]; len(batch) == 0 {
			return nil
		}
		if err := wait(ctx, backoff(try)); err != nil {
			return wrap(action, err)
		}
	}
}

// deleteKeys deletes items of one partition by their sort keys; absent ones are fine.
func (t *Table) deleteKeys(ctx context.Context, pk string, sks []string) error {
	deletes := make([]types.WriteRequest, len(sks))
	for i, sk := range sks {
		deletes[i] = types.WriteRequest{DeleteRequest: &types.DeleteRequest{
			Key: item{attrPK: str(pk), attrSK: str(sk)},
		}}
	}
	return t.writeAll(ctx, "delete rows", deletes)
}

// query reads one partition consistently, in order of the sort key, and hands
// every item to visit until that returns false. cond is a condition on #sk with
// the values given; attrs are the attributes wanted, all when there are none.
func (t *Table) query(ctx context.Context, pk, cond string, values item, attrs []string, visit func(item) bool) error {
	values[":pk"] = str(pk)
	in := &dynamodb.QueryInput{
		TableName:                 &t.name,
		ConsistentRead:            aws.Bool(true),
		KeyConditionExpression:    aws.String("#pk = :pk AND " + cond),
		ExpressionAttributeNames:  names(append([]string{attrPK, attrSK}, attrs...)...),
		ExpressionAttributeValues: values,
	}
	if len(attrs) > 0 {
		in.ProjectionExpression = aws.String(projection(attrs))
	}
	for {
		out, err := t.db.Query(ctx, in)
		if err != nil {
			return wrap("query", err)
		}
		for _, it := range out.Items {
			if !visit(it) {
				return nil
			}
		}
		if len(out.LastEvaluatedKey) == 0 {
			return nil
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

func projection(attrs []string) string {
	s := ""
	for i, a := range attrs {
		if i > 0 {
			s += ", "
		}
		s += "#" + a
	}
	return s
}
