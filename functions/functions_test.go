// Package functions holds one command a Lambda; what they have in common is
// checked here.
package functions

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	openai   = "github.com/sashabaranov/go-openai"
	dynamodb = "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	invoke   = "github.com/aws/aws-sdk-go-v2/service/lambda"
	secrets  = "github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	params   = "github.com/aws/aws-sdk-go-v2/service/ssm"
	redis    = "github.com/redis/go-redis/v9"
)

// needs says which clients each function links; it must link no other of them.
var needs = map[string][]string{
	"start":    {redis, invoke},
	"worker":   {redis, openai, secrets, params},
	"status":   {redis},
	"apply":    {redis, dynamodb},
	"comments": {redis, dynamodb},
	"sweeper":  {redis, invoke},
}

func TestFunctions_linkOnlyWhatTheyUse(t *testing.T) {
	for name, used := range needs {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "sunhwa/functions/"+name)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		require.NoError(t, err, "%s: %s", name, stderr.String())
		deps := strings.Fields(string(out))
		for _, client := range []string{openai, dynamodb, invoke, secrets, params, redis} {
			assert.Equal(t, slices.Contains(used, client), slices.Contains(deps, client), "%s links %s", name, client)
		}
		for _, never := range []string{"testing", "github.com/alicebob/miniredis/v2", "github.com/truora/minidyn", "sunhwa/infra/local"} {
			assert.NotContains(t, deps, never, name)
		}
	}
}

func TestMains_wireAndNothingMore(t *testing.T) {
	mains, err := filepath.Glob("*/main.go")
	require.NoError(t, err)
	require.Len(t, mains, len(needs), "one folder a function")
	for _, main := range mains {
		assert.Contains(t, needs, filepath.Dir(main))
		b, err := os.ReadFile(main)
		require.NoError(t, err)
		assert.LessOrEqual(t, bytes.Count(b, []byte("\n")), 40, main)
		assert.NotContains(t, string(b), "os.Getenv", main)
		assert.NotContains(t, string(b), "func init()", main)
	}
}
