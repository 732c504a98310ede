package invoke

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"

	"github.com/aws/aws-lambda-go/lambdacontext"
)

var (
	// ErrNoFunction: no function of that name.
	ErrNoFunction = errors.New("invoke: no such function")
	// ErrTooLarge: the payload is larger than the kind of invocation allows.
	ErrTooLarge = errors.New("invoke: payload too large")
	// ErrClosing: the server takes no invocation any more.
	ErrClosing = errors.New("invoke: server is shutting down")
)

// FunctionError is what a function ended with instead of a result, in the form
// in which Lambda returns it.
type FunctionError struct {
	Message string `json:"errorMessage"`
	Type    string `json:"errorType"`
}

func (e *FunctionError) Error() string { return "invoke: function failed: " + e.Type }

// Call runs the function and returns its result, as a synchronous invocation
// does. The function is not canceled when ctx ends: Lambda lets it run on. Its
// errors are ErrTooLarge, ErrNoFunction, ErrClosing, *FunctionError, or ctx's.
func (s *Server) Call(ctx context.Context, name string, payload []byte) ([]byte, error) {
	if len(payload) > MaxSyncPayload {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(payload), MaxSyncPayload)
	}
	if _, ok := s.functions[name]; !ok {
		return nil, fmt.Errorf("%w: %s", ErrNoFunction, name)
	}
	if !s.begin() {
		return nil, ErrClosing
	}
	type outcome struct {
		out  []byte
		fail *FunctionError
	}
	done := make(chan outcome, 1)
	go func() {
		defer s.end()
		out, fail := s.run(name, newRequestID(), payload)
		done <- outcome{out, fail}
	}()
	select {
	case o := <-done:
		if o.fail != nil {
			return nil, o.fail
		}
		return o.out, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// run executes one delivery under the function's time limit, as one Lambda
// environment would: a panic is an error, and so is a result that is too large
// or comes too late.
func (s *Server) run(name, requestID string, payload []byte) ([]byte, *FunctionError) {
	limit := s.timeouts[name]
	if limit <= 0 || limit > MaxTimeout {
		limit = MaxTimeout
	}
	ctx, cancel := context.WithTimeout(s.life, limit)
	defer cancel()
	ctx = lambdacontext.NewContext(ctx, &lambdacontext.LambdaContext{
		AwsRequestID:       requestID,
		InvokedFunctionArn: arn(name),
	})

	type outcome struct {
		out  []byte
		fail *FunctionError
	}
	done := make(chan outcome, 1)
	go func() {
		out, fail := s.guarded(ctx, name, payload)
		done <- outcome{out, fail}
	}()
	select {
	case o := <-done:
		return o.out, o.fail
	case <-ctx.Done():
	}
	// The time is up or the server is killed: what comes within the grace counts.
	grace, stop := context.WithTimeout(context.Background(), s.grace)
	defer stop()
	select {
	case o := <-done:
		return o.out, o.fail
	case <-grace.Done():
		return nil, &FunctionError{
			Type:    "Sandbox.Timedout",
			Message: fmt.Sprintf("RequestId: %s Error: Task timed out after %.2f seconds", requestID, limit.Seconds()),
		}
	}
}

// guarded calls the function and turns an error or a panic into a FunctionError.
func (s *Server) guarded(ctx context.Context, name string, payload []byte) (out []byte, fail *FunctionError) {
	defer func() {
		if p := recover(); p != nil {
			// The panic's value may hold anything, so only its type and the stack
			// of the goroutine are logged.
			s.log.Error("function panicked", "function", name, "panic", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			out, fail = nil, &FunctionError{Type: "Runtime.Panic", Message: fmt.Sprintf("panic of type %T", p)}
		}
	}()
	out, err := s.functions[name].Invoke(ctx, payload)
	if err != nil {
		return nil, &FunctionError{Type: errorType(err), Message: err.Error()}
	}
	if len(out) > MaxResponse {
		return nil, &FunctionError{
			Type:    "Function.ResponseSizeTooLarge",
			Message: fmt.Sprintf("Response payload size exceeded maximum allowed payload size (%d bytes).", MaxResponse),
		}
	}
	return out, nil
}

// errorType names an error as the Go runtime of Lambda does: by its Go type.
func errorType(err error) string {
	t := reflect.TypeOf(err)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}

// arn is the name AWS would give the function; region and account are made up.
func arn(name string) string {
	return "arn:aws:lambda:us-east-1:000000000000:function:" + name
}

// newRequestID returns a random UUID (version 4). crypto/rand.Read does not fail.
func newRequestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// body returns e as the response payload that a caller sees.
func (e *FunctionError) body() json.RawMessage {
	b, err := json.Marshal(e)
	if err != nil { // two strings always encode
		return json.RawMessage(`{}`)
	}
	return b
}
