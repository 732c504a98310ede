package dynamo

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

func start(t *testing.T, log *slog.Logger) (*Server, *dynamodb.Client) {
	t.Helper()
	s, err := Start(log)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	client := dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(s.URL()), Region: "local",
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
	_, err = client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("t"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
	})
	require.NoError(t, err)
	return s, client
}

func TestServer_conditionHasOneWinner(t *testing.T) {
	_, client := start(t, slog.New(slog.DiscardHandler))
	wins := make(chan int, 50)
	var g errgroup.Group
	for i := range 50 {
		g.Go(func() error {
			_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{
				TableName:                aws.String("t"),
				Item:                     map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "x"}},
				ConditionExpression:      aws.String("attribute_not_exists(#pk)"),
				ExpressionAttributeNames: map[string]string{"#pk": "pk"},
			})
			if err == nil {
				wins <- i
			} else if !strings.Contains(err.Error(), "ConditionalCheckFailed") {
				return fmt.Errorf("put: %w", err)
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	assert.Len(t, wins, 1)
}

func TestServer_saysWhatItIs(t *testing.T) {
	var log bytes.Buffer
	s, _ := start(t, slog.New(slog.NewTextHandler(&log, nil)))
	assert.Contains(t, log.String(), "stand-in")
	assert.Contains(t, log.String(), s.URL())
}

func TestServer_Close_freesThePort(t *testing.T) {
	s, err := Start(slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_, err = net.Dial("tcp", s.addr)
	assert.Error(t, err)
	assert.NoError(t, s.Close(), "closing twice is harmless")
}
