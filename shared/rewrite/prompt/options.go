package prompt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
)

// Response formats a model may be asked for
// (https://platform.openai.com/docs/api-reference/chat/create#chat-create-response_format).
// With the JSON ones the answer is an object whose member "text" is the result.
const (
	FormatText       = "text"
	FormatJSONObject = "json_object"
	FormatJSONSchema = "json_schema"
)

// ErrOptions is what Validate and Decode wrap.
var ErrOptions = errors.New("prompt: sampling options not understood")

// Options are the sampling options of a job. What is not set is not sent: some
// models refuse a parameter whatever its value.
type Options struct {
	Temperature         *float32 `json:"temperature,omitempty"`         // 0 to 2; 0 is sent as 0
	MaxTokens           *int     `json:"maxTokens,omitempty"`           // at least 1
	MaxCompletionTokens *int     `json:"maxCompletionTokens,omitempty"` // at least 1; what newer models take instead of MaxTokens
	ResponseFormat      string   `json:"responseFormat,omitempty"`      // one of the Format constants, or empty: not sent
}

// JSON reports whether an answer under o is a JSON object.
func (o Options) JSON() bool {
	return o.ResponseFormat == FormatJSONObject || o.ResponseFormat == FormatJSONSchema
}

// Validate returns an error that wraps ErrOptions and names every member whose
// value no model takes.
func (o Options) Validate() error {
	var errs []error
	if t := o.Temperature; t != nil && !(*t >= 0 && *t <= 2) {
		errs = append(errs, fmt.Errorf("%w: temperature must be between 0 and 2", ErrOptions))
	}
	if o.MaxTokens != nil && *o.MaxTokens < 1 {
		errs = append(errs, fmt.Errorf("%w: max tokens must be at least 1", ErrOptions))
	}
	if o.MaxCompletionTokens != nil && *o.MaxCompletionTokens < 1 {
		errs = append(errs, fmt.Errorf("%w: max completion tokens must be at least 1", ErrOptions))
	}
	switch o.ResponseFormat {
	case "", FormatText, FormatJSONObject, FormatJSONSchema:
	default:
		errs = append(errs, fmt.Errorf("%w: response format must be %s, %s or %s",
			ErrOptions, FormatText, FormatJSONObject, FormatJSONSchema))
	}
	return errors.Join(errs...)
}

// Encode returns o as canonical JSON: members in a fixed order, only those that
// are set, so equal options are equal strings (they are part of a memo key). What
// JSON cannot hold (a temperature that is no number) becomes a string that Decode
// refuses: it is never dropped in silence.
func (o Options) Encode() string {
	if t := o.Temperature; t != nil && *t == 0 {
		zero := float32(math.Abs(float64(*t))) // -0 and 0 are one option
		o.Temperature = &zero
	}
	b, err := json.Marshal(o)
	if err != nil {
		return "invalid"
	}
	return string(b)
}

// Decode reads what Encode wrote; the empty string is the zero Options. A member
// this build does not know is an error that wraps ErrOptions: an option must not
// be ignored in silence.
func Decode(s string) (Options, error) {
	var o Options
	if s == "" {
		return o, nil
	}
	d := json.NewDecoder(bytes.NewReader([]byte(s)))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		return Options{}, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Options{}, fmt.Errorf("%w: trailing data", ErrOptions)
	}
	if err := o.Validate(); err != nil {
		return Options{}, err
	}
	return o, nil
}
