// Package handler turns API Gateway and Lambda events into moves of the domain
// and back: one file a function. It knows HTTP and events; it knows neither
// Redis nor DynamoDB nor a language model, which it meets only through the small
// interfaces declared beside their use.
//
// The HTTP handlers (Start, Status, Apply, Comments) route on the event's
// RouteKey and PathParameters, which the gateway has decoded once, and never on
// a raw path. Whatever goes wrong leaves as an RFC 9457 problem; problem.go is
// the only place that knows which error is which status.
package handler
