// Package llmkey holds the key of the language model: given in clear, or fetched
// by ARN from Secrets Manager or SSM and fetched again when the model refuses it.
//
// It asks by the SDK and not by the Parameters and Secrets Lambda extension: the
// extension's cache cannot be told that a key was refused, so a rotated key would
// fail jobs until its time to live has passed; and it is one more layer, of
// another ARN in each region.
package llmkey

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
)

// pause is how long a fetched key is kept although the model refuses it, so
// that a key that is wrong everywhere costs one look-up in a while.
const pause = 10 * time.Second

// Source is a key that may change. Safe for concurrent use.
type Source struct {
	fetch func(context.Context) (string, error)
	now   func() time.Time

	mu  sync.Mutex
	key string
	at  time.Time // of the last fetch
}

// Fixed returns a Source whose key never changes.
func Fixed(key string) *Source {
	return &Source{key: key, now: time.Now}
}

// Open returns a Source for the secret or parameter named by arn and fetches it
// once, so that a key that cannot be had is known at start-up. No error of this
// package holds a key.
func Open(ctx context.Context, arn string, sdk aws.Config) (*Source, error) {
	var fetch func(context.Context) (string, error)
	if name, found := strings.CutPrefix(arn[strings.LastIndex(arn, ":")+1:], "parameter/"); found {
		client := ssm.NewFromConfig(sdk)
		fetch = func(ctx context.Context) (string, error) { return parameter(ctx, client, arn, name) }
	} else {
		client := secretsmanager.NewFromConfig(sdk)
		fetch = func(ctx context.Context) (string, error) { return secret(ctx, client, arn) }
	}
	return open(ctx, fetch, time.Now)
}

func open(ctx context.Context, fetch func(context.Context) (string, error), now func() time.Time) (*Source, error) {
	s := &Source{fetch: fetch, now: now}
	if _, err := s.Refresh(ctx, ""); err != nil {
		return nil, err
	}
	return s, nil
}

// Key returns the key as it was last fetched.
func (s *Source) Key(context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.key, nil
}

// Refresh returns the key to use after refused was refused. It fetches unless
// another caller has already found a different one, or the last fetch is younger
// than 10 s; callers wait for one another, so that many refusals are one fetch.
// On an error the key stays as it was.
func (s *Source) Refresh(ctx context.Context, refused string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fetch == nil || s.key != refused || (!s.at.IsZero() && s.now().Sub(s.at) < pause) {
		return s.key, nil
	}
	raw, err := s.fetch(ctx)
	if err != nil {
		return "", fmt.Errorf("llm key: fetch: %w", err)
	}
	key, err := keyIn(raw)
	if err != nil {
		return "", err
	}
	s.key, s.at = key, s.now()
	return key, nil
}

type secrets interface {
	GetSecretValue(context.Context, *secretsmanager.GetSecretValueInput, ...func(*secretsmanager.Options)) (*secretsmanager.GetSecretValueOutput, error)
}

func secret(ctx context.Context, client secrets, arn string) (string, error) {
	out, err := client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &arn})
	if err != nil {
		return "", fmt.Errorf("read the secret: %w", err)
	}
	return aws.ToString(out.SecretString), nil
}

type parameters interface {
	GetParameter(context.Context, *ssm.GetParameterInput, ...func(*ssm.Options)) (*ssm.GetParameterOutput, error)
}

// parameter asks by ARN, which GetParameter takes as a name:
// https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetParameter.html
func parameter(ctx context.Context, client parameters, arn, name string) (string, error) {
	out, err := client.GetParameter(ctx, &ssm.GetParameterInput{Name: &arn, WithDecryption: aws.Bool(true)})
	if err != nil {
		return "", fmt.Errorf("read the parameter %s: %w", name, err)
	}
	if out.Parameter == nil {
		return "", nil
	}
	return aws.ToString(out.Parameter.Value), nil
}

var (
	errEmpty = errors.New("llm key: the secret is empty or holds a blank inside")
	errJSON  = errors.New("llm key: the secret is a JSON object without a member LLM_API_KEY and with more than one member")
)

// keyIn takes the key out of a secret's text: the text itself, or, as the
// console of Secrets Manager writes it, a JSON object's member LLM_API_KEY or
// its only member.
func keyIn(raw string) (string, error) {
	key := strings.TrimSpace(raw)
	if strings.HasPrefix(key, "{") {
		var members map[string]string
		if json.Unmarshal([]byte(key), &members) != nil {
			return "", errJSON // the decoder's error might quote the text
		}
		named, ok := members["LLM_API_KEY"]
		if !ok && len(members) != 1 {
			return "", errJSON
		}
		for _, only := range members {
			key = only
		}
		if ok {
			key = named
		}
		key = strings.TrimSpace(key)
	}
	if key == "" || strings.ContainsAny(key, " \t\r\n") {
		return "", errEmpty
	}
	return key, nil
}
