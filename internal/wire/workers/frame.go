// Package workers is the wire between a gateway and the workers that execute tools for it: JSON objects,
// one per WebSocket message, on a connection that the worker opens. docs/workers.md describes it.
//
// Each frame has a type. Both sides ignore unknown members and unknown frames.
package workers

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/remote"
)

// Limits of what either side reads.
const (
	// MaxFrame bounds a frame: the largest arguments or output, with binary parts in base64.
	MaxFrame = 16 << 20
	// MaxHello bounds the first frame of a worker, and with it the definitions of its tools.
	MaxHello = 1 << 20
	// MaxTools bounds the tools of one worker.
	MaxTools = 256
	// MaxHeld bounds the calls that one worker holds.
	MaxHeld = 1_024
	// MaxName bounds the name that a worker gives itself.
	MaxName = 64
)

// Protocol is the WebSocket subprotocol.
const Protocol = "lathe.worker.v1"

// Path is the path of a gateway's endpoint for workers.
const Path = "/v1/worker"

// The types of frames. From a worker: hello, tools, credit, started, progress, result, error, beat,
// drain. From a gateway: welcome, tools, call, cancel, ack, beat, drain.
const (
	Hello    = "hello"    // the first: the worker's name, its tools, and the calls that it still holds
	Welcome  = "welcome"  // its answer
	Tools    = "tools"    // the worker's tools have changed; the answer lists the refused ones
	Credit   = "credit"   // the number of concurrent calls that the worker accepts
	Call     = "call"     // a call to execute
	Started  = "started"  // the worker has it
	Progress = "progress" // the call makes progress
	Result   = "result"   // what the tool returned
	Error    = "error"    // there is no output, or the call was not run
	Ack      = "ack"      // the gateway has stored the result, or the error
	Cancel   = "cancel"   // no caller waits for the call any more
	Beat     = "beat"     // a heartbeat; a worker's names the calls that it holds
	Drain    = "drain"    // the sender is about to stop: a worker accepts no more calls, a gateway asks the worker to connect to another gateway
)

// A Frame is one message. Its type determines which fields are used.
type Frame struct {
	Type string `json:"type"`

	// hello, and tools of a worker
	Worker string `json:"worker,omitempty"`
	SDK    string `json:"sdk,omitempty"`
	// Instance distinguishes the process from others with that name: a unique text that the process generates at its start. Calls
	// that a process with the same Instance does not hold when it reconnects were not executed.
	Instance string        `json:"instance,omitempty"`
	Offers   []remote.Tool `json:"offers,omitempty"`
	Credits  int           `json:"credits,omitempty"` // hello, credit
	Held     []Ref         `json:"held,omitempty"`    // hello, beat

	// welcome, and tools of a gateway
	LeaseMS int64             `json:"lease_ms,omitempty"` // a connection without a beat for that long is lost
	Refused map[string]string `json:"refused,omitempty"`  // the reason, by tool

	// AtMS is the gateway's clock: milliseconds since the connection was made. It is in welcome, call and beat.
	AtMS int64 `json:"at_ms,omitempty"`

	// call, started, progress, result, error, ack, cancel
	Ref
	Invoke *Invoke        `json:"call,omitempty"`
	Output *remote.Result `json:"output,omitempty"` // result
	// Code and Detail describe an error; the model reads Detail. NotRun means that the tool was not called.
	Code   lathe.Code `json:"code,omitempty"`
	Detail string     `json:"detail,omitempty"`
	NotRun bool       `json:"not_run,omitempty"`
	// Taken, in an ack, means that the result counts.
	Taken bool `json:"taken,omitempty"`
}

// A Ref names an attempt of a call.
type Ref struct {
	Key     string `json:"key,omitempty"` // the idempotency key
	Attempt int    `json:"attempt,omitempty"`
}

// Invoke is a call to execute.
type Invoke struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	RunID     string          `json:"run_id"`
	CallID    string          `json:"call_id"`
	RequestID string          `json:"request_id,omitempty"`
	SessionID string          `json:"session_id,omitempty"`
	Depth     int             `json:"depth,omitempty"`
	// Traceparent and Tracestate name the span of the call, if spans are exported.
	Traceparent string `json:"traceparent,omitempty"`
	Tracestate  string `json:"tracestate,omitempty"`
	// DeadlineMS is the deadline of the call, on the clock of [Frame.AtMS].
	DeadlineMS int64 `json:"deadline_ms"`
}

// Encode returns the JSON of a frame, or an error if it is longer than MaxFrame.
func Encode(f *Frame) ([]byte, error) {
	b, err := json.Marshal(f)
	if err == nil && len(b) > MaxFrame {
		err = fmt.Errorf("the frame has %d bytes, and at most %d are sent", len(b), MaxFrame)
	}
	return b, err
}

// Decode decodes a frame. The error contains nothing of its content.
func Decode(b []byte) (*Frame, error) {
	f := &Frame{}
	if err := json.Unmarshal(b, f); err != nil {
		return nil, errors.New("the frame is not one of this protocol")
	}
	switch {
	case f.Type == "":
		return nil, errors.New("the frame has no type")
	case len(f.Held) > MaxHeld:
		return nil, fmt.Errorf("a worker holds %d calls at most", MaxHeld)
	case len(f.Offers) > MaxTools:
		return nil, fmt.Errorf("a worker has %d tools at most", MaxTools)
	}
	return f, nil
}

// ValidName reports whether a worker may give itself the name: 1 to 64 of a-z, A-Z, 0-9, _, - and dots.
func ValidName(s string) bool {
	if s == "" || len(s) > MaxName {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.') {
			return false
		}
	}
	return true
}
