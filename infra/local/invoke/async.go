package invoke

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Record is what Lambda sends to an on-failure destination about an event it
// gave up
// (https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html).
type Record struct {
	Version        string          `json:"version"`
	Timestamp      string          `json:"timestamp"` // RFC 3339, UTC, milliseconds
	RequestContext RequestContext  `json:"requestContext"`
	RequestPayload json.RawMessage `json:"requestPayload"`
	// ResponseContext and ResponsePayload describe the last delivery.
	ResponseContext ResponseContext `json:"responseContext"`
	ResponsePayload json.RawMessage `json:"responsePayload"`
}

// RequestContext says which event was given up, and why.
type RequestContext struct {
	RequestID              string `json:"requestId"`
	FunctionARN            string `json:"functionArn"`
	Condition              string `json:"condition"` // RetriesExhausted
	ApproximateInvokeCount int    `json:"approximateInvokeCount"`
}

// ResponseContext says how the last delivery ended.
type ResponseContext struct {
	StatusCode      int    `json:"statusCode"`
	ExecutedVersion string `json:"executedVersion"`
	FunctionError   string `json:"functionError"`
}

// Queue accepts an event for the function and returns its request id at once;
// the function runs later, at least once. Its errors are ErrTooLarge,
// ErrNoFunction and ErrClosing, and then nothing runs.
func (s *Server) Queue(name string, payload []byte) (requestID string, err error) {
	if len(payload) > MaxAsyncPayload {
		return "", fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(payload), MaxAsyncPayload)
	}
	if _, ok := s.functions[name]; !ok {
		return "", fmt.Errorf("%w: %s", ErrNoFunction, name)
	}
	deliveries := 1
	if s.duplicates > 0 && s.chance() < s.duplicates {
		deliveries = 2
	}
	// The payload is the caller's buffer; the event outlives the call.
	payload = slices.Clone(payload)
	requestID = newRequestID()
	if !s.begin() {
		return "", ErrClosing
	}
	go s.deliver(name, requestID, payload)
	if deliveries == 2 && s.begin() {
		s.log.Info("event delivered twice, as asked", "function", name, "requestId", requestID)
		go s.deliver(name, requestID, payload)
	}
	return requestID, nil
}

// deliver runs an event until it succeeds or the retries are used, and records
// it then. A retry gives up its slot while it waits.
func (s *Server) deliver(name, requestID string, payload []byte) {
	defer s.end()
	for n := 1; ; n++ {
		select {
		case s.slots <- struct{}{}:
		case <-s.life.Done():
			return
		}
		if s.life.Err() != nil { // both were ready and select took the slot
			<-s.slots
			return
		}
		_, fail := s.run(name, requestID, payload)
		<-s.slots
		if fail == nil {
			return
		}
		if n > len(s.retryDelays) {
			s.giveUp(name, requestID, payload, n, fail)
			return
		}
		delay := s.retryDelays[n-1]
		s.log.Warn("invocation failed, event will be delivered again",
			"function", name, "requestId", requestID, "delivery", n, "errorType", fail.Type, "delay", delay.String())
		if s.wait(s.life, delay) != nil {
			return
		}
	}
}

func (s *Server) giveUp(name, requestID string, payload []byte, deliveries int, fail *FunctionError) {
	s.log.Error("event given up",
		"function", name, "requestId", requestID, "deliveries", deliveries, "errorType", fail.Type)
	r := Record{
		Version:   "1.0",
		Timestamp: s.now().UTC().Format("2006-01-02T15:04:05.000Z"),
		RequestContext: RequestContext{
			RequestID:              requestID,
			FunctionARN:            arn(name) + ":$LATEST",
			Condition:              "RetriesExhausted",
			ApproximateInvokeCount: deliveries,
		},
		RequestPayload:  payload,
		ResponseContext: ResponseContext{StatusCode: 200, ExecutedVersion: "$LATEST", FunctionError: "Unhandled"},
		ResponsePayload: fail.body(),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.records) == maxRecords {
		s.records = s.records[1:]
	}
	s.records = append(s.records, r)
}

// GivenUp returns the records of events given up, oldest first, at most 1,000.
func (s *Server) GivenUp() []Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.records)
}
