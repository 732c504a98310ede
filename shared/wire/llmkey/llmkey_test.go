package llmkey

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// cloud answers as Secrets Manager and SSM do, by the header that names the call.
func cloud(t *testing.T, value string) (aws.Config, *[]string) {
	t.Helper()
	var calls []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		calls = append(calls, r.Header.Get("X-Amz-Target")+" "+string(body))
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		if strings.HasPrefix(r.Header.Get("X-Amz-Target"), "secretsmanager") {
			_, _ = io.WriteString(w, `{"SecretString":"`+value+`"}`)
			return
		}
		_, _ = io.WriteString(w, `{"Parameter":{"Value":"`+value+`"}}`)
	}))
	t.Cleanup(srv.Close)
	return aws.Config{
		Region: "eu-west-1", BaseEndpoint: &srv.URL,
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	}, &calls
}

func TestOpen_byARN(t *testing.T) {
	for arn, call := range map[string]string{
		"arn:aws:secretsmanager:eu-west-1:123456789012:secret:llm-AbCdEf": "secretsmanager.GetSecretValue",
		"arn:aws:ssm:eu-west-1:123456789012:parameter/sunhwa/llm":         "AmazonSSM.GetParameter",
	} {
		sdk, calls := cloud(t, `marker\n`)
		s, err := Open(t.Context(), arn, sdk)
		require.NoError(t, err)
		key, err := s.Key(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "marker", key)
		require.Len(t, *calls, 1)
		assert.Contains(t, (*calls)[0], call)
		assert.Contains(t, (*calls)[0], arn)
	}
	sdk, _ := cloud(t, ` `)
	_, err := Open(t.Context(), "arn:aws:ssm:eu-west-1:123456789012:parameter/llm", sdk)
	assert.ErrorIs(t, err, errEmpty)
}

func TestSource_Refresh_manyRefusalsAreOneFetch(t *testing.T) {
	now := time.Unix(1000, 0)
	keys := []string{"old", "new", "newer"}
	fetched := 0
	s, err := open(t.Context(), func(context.Context) (string, error) {
		fetched++
		return keys[fetched-1], nil
	}, func() time.Time { return now })
	require.NoError(t, err)

	key, err := s.Refresh(t.Context(), "old")
	require.NoError(t, err)
	assert.Equal(t, "old", key, "just fetched")
	now = now.Add(pause)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			key, err := s.Refresh(t.Context(), "old")
			assert.NoError(t, err)
			assert.Equal(t, "new", key)
		})
	}
	wg.Wait()
	assert.Equal(t, 2, fetched)
}

func TestSource_Refresh_errorKeepsTheKey(t *testing.T) {
	now := time.Unix(1000, 0)
	var fail error
	s, err := open(t.Context(), func(context.Context) (string, error) { return "k", fail }, func() time.Time { return now })
	require.NoError(t, err)
	now, fail = now.Add(time.Hour), context.Canceled
	_, err = s.Refresh(t.Context(), "k")
	assert.True(t, errors.Is(err, context.Canceled))
	key, err := s.Key(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "k", key)
}

func TestFixed_neverChanges(t *testing.T) {
	key, err := Fixed("k").Refresh(t.Context(), "k")
	require.NoError(t, err)
	assert.Equal(t, "k", key)
}

func TestKeyIn(t *testing.T) {
	for raw, want := range map[string]string{
		"sk-1": "sk-1", " sk-1\n": "sk-1", `{"LLM_API_KEY":"a","other":"b"}`: "a", `{"anything":" a "}`: "a",
	} {
		got, err := keyIn(raw)
		require.NoError(t, err, raw)
		assert.Equal(t, want, got)
	}
	for _, raw := range []string{"", "  ", "a marker", `{"a":"marker","b":"marker"}`, `{"a":1}`, `{marker`, "{}", `{"LLM_API_KEY":"","a":"x"}`} {
		_, err := keyIn(raw)
		require.Error(t, err, raw)
		assert.NotContains(t, err.Error(), "marker")
	}
}
