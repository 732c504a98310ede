package handler

import (
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
)

const (
	// defaultTenant owns every target when no TENANT_CLAIM is configured.
	defaultTenant = "default"
	// maxTenantBytes keeps a tenant well inside what a DynamoDB key may hold.
	maxTenantBytes = 256
)

// tenantOf returns whose targets the caller may touch: the value of the claim
// that the gateway's authorizer has verified, and nothing else. No header, path
// or body names a tenant; a front that knows its callers by other means puts
// what it verified into the event as a JWT claim, as the gateway does.
//
// claim "" means one tenant for all, `default`. A JWT authorizer's claim is
// taken whole: an array reaches Lambda as the string `[a b]` and is never split.
// The IAM authorizer knows accountId, userId and userArn. A value that is
// missing, empty, longer than 256 bytes or not UTF-8 is UNAUTHENTICATED.
// https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
func tenantOf(claim string, a *events.APIGatewayV2HTTPRequestContextAuthorizerDescription) (string, error) {
	if claim == "" {
		return defaultTenant, nil
	}
	tenant := claimOf(claim, a)
	if tenant == "" || len(tenant) > maxTenantBytes || !utf8.ValidString(tenant) {
		return "", &refusal{code: codeUnauthenticated, detail: "The caller's identity names no tenant."}
	}
	return tenant, nil
}

func claimOf(claim string, a *events.APIGatewayV2HTTPRequestContextAuthorizerDescription) string {
	switch {
	case a == nil:
		return ""
	case a.JWT != nil:
		return a.JWT.Claims[claim]
	case a.IAM != nil:
		switch claim {
		case "accountId":
			return a.IAM.AccountID
		case "userId":
			return a.IAM.UserID
		case "userArn":
			return a.IAM.UserARN
		}
	}
	return ""
}
