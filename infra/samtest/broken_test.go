//go:build sam

package samtest

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stacks are what cfn-lint reads.
func stacks(texts map[string]string) []string {
	var files []string
	for _, f := range keysOf(texts) {
		if strings.HasSuffix(f, ".yaml") {
			files = append(files, f)
		}
	}
	return files
}

func TestTemplate_passesEveryCheck(t *testing.T) {
	texts := copied(t, rootFolder(t))
	require.Len(t, stacks(texts), 4)
	m := models(t, []map[string]string{texts}, []wanted{{lint: stacks(texts), local: true}})[0]
	for name, check := range checks {
		t.Run(name, func(t *testing.T) { assert.Empty(t, check(m)) })
	}
}

// edit is one way to break the template, and the check that must say so.
type edit struct {
	name, file, old, new, caughtBy string
}

// Each old text stands in its file; all its occurrences are replaced.
var broken = []edit{
	{"a minute in the plural", "template.yaml", "rate(1 minute)", "rate(1 minutes)", "schedule"},
	{"an hour in the plural", "template.yaml", "rate(1 minute)", "rate(1 hours)", "schedule"},
	{"five minutes in the singular", "template.yaml", "rate(1 minute)", "rate(5 minute)", "schedule"},
	{"no schedule", "template.yaml", "          Type: Schedule\n          Properties:\n            Schedule: rate(1 minute)\n", "          Type: EventBridgeRule\n          Properties:\n            Pattern: {source: [aws.ec2]}\n", "schedule"},
	{"another handler", "template.yaml", "Handler: bootstrap", "Handler: main", "bootstrap"},
	{"another runtime", "template.yaml", "Runtime: provided.al2023", "Runtime: provided.al2", "bootstrap"},
	{"outside the VPC", "template.yaml", "      SubnetIds: !Split [\",\", !If [MakeNetwork", "      Subnets: !Split [\",\", !If [MakeNetwork", "translates|bootstrap|cfn-lint"},
	{"a nested file that is not there", "template.yaml", "TemplateURL: infra/cache.yaml", "TemplateURL: infra/redis.yaml", "nested"},
	{"a nested parameter misspelt", "template.yaml", "        NodeType: !Ref CacheNodeType", "        NodeTyp: !Ref CacheNodeType", "nested"},
	{"a nested parameter left out", "template.yaml", "        FunctionSecurityGroup: !GetAtt FunctionSecurityGroup.GroupId\n        NodeType", "        NodeType", "nested"},
	{"a nested output misspelt", "template.yaml", "!GetAtt Cache.Outputs.Address", "!GetAtt Cache.Outputs.Addr", "nested"},
	{"every worker may be invoked", "template.yaml", "              Resource: !GetAtt WorkerFunction.Arn", "              Resource: \"*\"", "star"},
	{"the reason taken away", "infra/alarms.yaml", "\"*\" # in a key's policy this means the key itself", "\"*\"", "star"},
	{"every function of the account", "template.yaml", "              Resource: !GetAtt WorkerFunction.Arn", "              Resource: !Sub arn:${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}:function:*", "star"},
	{"one more action", "template.yaml", "Action: [dynamodb:GetItem, dynamodb:Query", "Action: [dynamodb:Scan, dynamodb:GetItem, dynamodb:Query", "permissions"},
	{"one action less", "template.yaml", "dynamodb:DeleteItem, ", "", "permissions"},
	{"every action", "template.yaml", "Action: lambda:InvokeFunction\n              Resource: !GetAtt", "Action: lambda:*\n              Resource: !GetAtt", "permissions"},
	{"a managed policy", "template.yaml", "      Policies:\n        - Version: \"2012-10-17\"", "      Policies:\n        - AmazonDynamoDBFullAccess\n        - Version: \"2012-10-17\"", "permissions|translates"},
	{"no Redis address", "template.yaml", "        REDIS_ADDR:", "        REDIS_ADDRESS:", "environment"},
	{"no model name", "template.yaml", "          LLM_MODEL: !Ref LlmModel\n", "", "environment"},
	{"no key's ARN", "template.yaml", "          LLM_API_KEY_SECRET_ARN: !Ref LlmApiKeySecretArn\n", "", "environment"},
	{"the deadline without its unit", "template.yaml", `JOB_DEADLINE: !Sub "${DeadlineSeconds}s"`, "JOB_DEADLINE: !Ref DeadlineSeconds", "environment"},
	{"IAM without TLS", "template.yaml", "REDIS_TLS: !If [MakeCache, \"on\"", "REDIS_TLS: !If [MakeCache, \"off\"", "environment"},
	{"an unknown mode", "template.yaml", "REDIS_MODE: !If [MakeCache, cluster", "REDIS_MODE: !If [MakeCache, clustered", "environment"},
	{"the lease above the shortest deadline", "template.yaml", "  JobLease:\n    Type: String\n    Default: \"\"", "  JobLease:\n    Type: String\n    Default: 2m", "environment"},
	{"sam local cannot set the endpoint", "template.yaml", "          AWS_ENDPOINT_URL_LAMBDA: \"\" # here so that sam local can set it; empty is AWS's own\n", "", "env file"},
	{"the local file misspells", "infra/env.local.json", "\"REDIS_MODE\"", "\"REDIS_MOD\"", "env file"},
	{"logs for ever", "template.yaml", "      LogGroupName: !Sub /aws/lambda/${AWS::StackName}-status\n      RetentionInDays: !Ref LogRetentionDays\n", "      LogGroupName: !Sub /aws/lambda/${AWS::StackName}-status\n", "logs"},
	{"a log group of another name", "template.yaml", "/aws/lambda/${AWS::StackName}-sweeper", "/aws/lambda/${AWS::StackName}-sweep", "logs"},
	{"a log group made too late", "template.yaml", "    DependsOn: ApplyLogs\n", "", "logs"},
	{"the cache in clear", "infra/cache.yaml", "AtRestEncryptionEnabled: true", "AtRestEncryptionEnabled: false", "encryption"},
	{"the way to it in clear", "infra/cache.yaml", "TransitEncryptionMode: required", "TransitEncryptionMode: preferred", "encryption"},
	{"the queue in clear", "template.yaml", "      SqsManagedSseEnabled: true\n", "      SqsManagedSseEnabled: false\n", "encryption"},
	{"the topic in clear", "infra/alarms.yaml", "    Properties:\n      KmsMasterKeyId: !Ref TopicKey", "    Properties:\n      DisplayName: alarms", "encryption"},
	{"the model in clear", "template.yaml", "Default: https://api.openai.com/v1", "Default: http://api.openai.com/v1", "encryption"},
	{"no recovery of the table", "template.yaml", "PointInTimeRecoveryEnabled: true", "PointInTimeRecoveryEnabled: false", "encryption"},
	{"Redis open to the world", "infra/cache.yaml", "          SourceSecurityGroupId: !Ref FunctionSecurityGroup", "          CidrIp: 0.0.0.0/0", "public"},
	{"public addresses", "infra/network.yaml", "MapPublicIpOnLaunch: false", "MapPublicIpOnLaunch: true", "public"},
	{"any API may call", "template.yaml", "      SourceArn: !Sub arn:${AWS::Partition}:execute-api:${AWS::Region}:${AWS::AccountId}:${Api}/*\n", "", "public"},
	{"a function's own URL", "template.yaml", "      Description: claims a target and starts its job\n", "      Description: claims a target and starts its job\n      FunctionUrlConfig: {AuthType: NONE}\n", "public"},
	{"a route misspelt", "template.yaml", "RouteKey: POST /jobs/{jobId}/apply", "RouteKey: POST /jobs/{jobId}/publish", "routes"},
	{"a route to another function", "template.yaml", "RouteKey: GET /jobs/{jobId}/results\n      AuthorizationType: !If [Jwt, JWT, AWS_IAM]\n      AuthorizerId: !If [Jwt, !Ref JwtAuthorizer, !Ref AWS::NoValue]\n      Target: !Sub integrations/${StatusIntegration}", "RouteKey: GET /jobs/{jobId}/results\n      AuthorizationType: !If [Jwt, JWT, AWS_IAM]\n      AuthorizerId: !If [Jwt, !Ref JwtAuthorizer, !Ref AWS::NoValue]\n      Target: !Sub integrations/${CommentsIntegration}", "routes"},
	{"a function that sam local does not find", "template.yaml", "arn:${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}:function:${StatusFunction}/", "${StatusFunction.Arn}/", "start-api"},
	{"a function before the API", "template.yaml", "\nResources:\n", "\nResources:\n  Early:\n    Type: AWS::Serverless::Function\n    Metadata: {BuildMethod: makefile}\n    Properties: {Runtime: provided.al2023}\n", "start-api"},
	{"the old payload", "template.yaml", "PayloadFormatVersion: \"2.0\"", "PayloadFormatVersion: \"1.0\"", "routes"},
	{"no permission for the API", "template.yaml", "      FunctionName: !Ref ApplyFunction\n      Principal: apigateway.amazonaws.com", "      FunctionName: !Ref ApplyFunction\n      Principal: events.amazonaws.com", "routes"},
	{"an open route", "template.yaml", "RouteKey: GET /targets/{targetId}/comments\n      AuthorizationType: !If [Jwt, JWT, AWS_IAM]", "RouteKey: GET /targets/{targetId}/comments\n      AuthorizationType: NONE", "authorizer"},
	{"a route that forgot it", "template.yaml", "RouteKey: DELETE /jobs/{jobId}\n      AuthorizationType: !If [Jwt, JWT, AWS_IAM]\n", "RouteKey: DELETE /jobs/{jobId}\n", "authorizer"},
	{"open under JWT only", "template.yaml", "AuthorizationType: !If [Jwt, JWT, AWS_IAM]", "AuthorizationType: !If [Jwt, NONE, AWS_IAM]", "authorizer"},
	{"all callers one tenant", "template.yaml", "          TENANT_CLAIM: !Ref TenantClaim\n", "          TENANT_CLAIM: \"\"\n", "authorizer"},
	{"SAM's own authorizer by a parameter", "template.yaml", "  Api:\n    Type: AWS::ApiGatewayV2::Api\n    Properties:\n      Name: !Ref AWS::StackName\n      ProtocolType: HTTP\n", "  Other:\n    Type: AWS::Serverless::HttpApi\n    Properties:\n      Auth: {DefaultAuthorizer: !If [Jwt, A, B]}\n  Api:\n    Type: AWS::ApiGatewayV2::Api\n    Properties:\n      Name: !Ref AWS::StackName\n      ProtocolType: HTTP\n", "translates"},
	{"an event that outlives its job", "template.yaml", "MaximumEventAgeInSeconds: !Ref DeadlineSeconds", "MaximumEventAgeInSeconds: 3600", "async"},
	{"retries for hours", "template.yaml", "MaximumRetryAttempts: 1", "MaximumRetryAttempts: 2", "async"},
	{"what is given up is lost", "template.yaml", "        DestinationConfig:\n          OnFailure: {Type: SQS, Destination: !GetAtt FailedEvents.Arn}\n", "", "async"},
	{"a worker killed before the deadline", "template.yaml", "  WorkerTimeoutSeconds:\n    Type: Number\n    Default: 900", "  WorkerTimeoutSeconds:\n    Type: Number\n    Default: 600", "async"},
	{"live jobs evicted", "infra/cache.yaml", "maxmemory-policy: noeviction", "maxmemory-policy: volatile-lru", "cache"},
	{"no replica", "template.yaml", "  CacheReplicas:\n    Type: Number\n    Default: 1", "  CacheReplicas:\n    Type: Number\n    Default: 0", "cache"},
	{"a stale binary", "samconfig.toml", "cached = false", "cached = true", "build"},
	{"no build target", "Makefile", "\nbuild-SweeperFunction:\n", "\nbuild-Sweeper:\n", "build"},
	{"the wrong machine", "infra/make/x86_64/Makefile", "amd64", "arm64", "build"},
	{"no build method", "template.yaml", "BuildMethod: makefile, ", "", "build"},
	{"a property misspelt", "template.yaml", "BillingMode: PAY_PER_REQUEST", "BilingMode: PAY_PER_REQUEST", "cfn-lint"},
	{"an unknown value", "infra/network.yaml", "VpcEndpointType: Gateway", "VpcEndpointType: Gate", "cfn-lint"},
	{"a reference to nothing", "infra/network.yaml", "GatewayId: !Ref Internet\n", "GatewayId: !Ref Internett\n", "cfn-lint"},
	{"no YAML", "template.yaml", "\n  Network:\n", "\n  Network\n", "translates"},
}

// TestBroken_eachIsCaught: an edit that breaks the template fails the check that
// is named for it.
func TestBroken_eachIsCaught(t *testing.T) {
	t.Parallel()
	real := copied(t, rootFolder(t))
	var versions []map[string]string
	var want []wanted
	for _, e := range broken {
		require.Truef(t, strings.Contains(real[e.file], e.old), "%s: the text to edit is gone; edit the table too", e.name)
		texts := maps.Clone(real)
		texts[e.file] = strings.ReplaceAll(texts[e.file], e.old, e.new)
		versions = append(versions, texts)
		w := wanted{local: e.caughtBy == "start-api", quick: e.caughtBy != "authorizer" && e.caughtBy != "environment"}
		if strings.Contains(e.caughtBy, "cfn-lint") {
			w.lint = []string{e.file}
		}
		want = append(want, w)
	}
	caught := map[string]int{}
	for i, m := range models(t, versions, want) {
		e := broken[i]
		t.Run(e.name, func(t *testing.T) {
			var said []string
			for _, name := range strings.Split(e.caughtBy, "|") {
				for _, bad := range checks[name](m) {
					said = append(said, fmt.Sprintf("%s: %s", name, bad))
				}
				caught[name]++
			}
			require.NotEmpty(t, said, "nothing caught it")
			t.Log(said[0])
		})
	}
	for name := range checks {
		assert.Positivef(t, caught[name], "no broken template shows that the check %q works", name)
	}
}

func keysOf(m map[string]string) []string {
	o := object{}
	for k, v := range m {
		o[k] = v
	}
	return keys(o)
}
