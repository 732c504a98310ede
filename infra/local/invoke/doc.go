// Package invoke is a stand-in for AWS Lambda's Invoke API on one machine: an
// HTTP endpoint that the AWS SDK's own Lambda client calls, and behind it the
// semantics that Sunhwa's design leans on. An asynchronous invocation answers
// 202 at once and waits in a queue; a failed one is delivered again after a
// delay and then recorded as given up; an event may be delivered twice; sizes
// and run time are bounded as Lambda bounds them.
//
// What it does not do: it checks no signature and no permission, holds its queue
// in memory only, and cannot kill a function that ignores its context.
//
// API: https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
// Retries: https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
package invoke
