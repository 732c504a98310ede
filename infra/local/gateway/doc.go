// Package gateway is a stand-in for an Amazon API Gateway HTTP API on one
// machine: it turns HTTP requests into events of payload format 2.0, has the
// function of their route invoked, and turns the functions' answers back. It
// keeps the gateway's quotas (10 MB a body, 10,240 header bytes, 30 s) and its
// own answers, `{"message":"Not Found"}` among them.
//
// What it does not do: no authorizer (Options.TenantClaim plays one), no CORS,
// no stage in the path.
//
// Event format: https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
// Quotas: https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-quotas.html
package gateway
