// Package local is Sunhwa on one machine: the handlers of the Lambda functions
// behind a front that makes API Gateway events, an endpoint that speaks Lambda's
// Invoke API, and a schedule. Redis, DynamoDB and the language model are
// embedded stand-ins unless the configuration names real ones; Stack.Parts says
// which are.
package local
