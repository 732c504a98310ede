package samtest

import (
	"testing"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSDK_emptyEndpointIsNone: the template declares the endpoints' variables empty,
// so that sam local can set them; to the SDK that is the region's own endpoint.
func TestSDK_emptyEndpointIsNone(t *testing.T) {
	t.Setenv("AWS_REGION", "eu-west-1")
	for _, value := range []string{"", "http://127.0.0.1:1"} {
		t.Setenv("AWS_ENDPOINT_URL_LAMBDA", value)
		t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", value)
		cfg, err := awsconfig.LoadDefaultConfig(t.Context())
		require.NoError(t, err)
		for _, endpoint := range []*string{lambda.NewFromConfig(cfg).Options().BaseEndpoint, dynamodb.NewFromConfig(cfg).Options().BaseEndpoint} {
			if value == "" {
				assert.Nil(t, endpoint)
			} else {
				require.NotNil(t, endpoint)
				assert.Equal(t, value, *endpoint)
			}
		}
	}
}
