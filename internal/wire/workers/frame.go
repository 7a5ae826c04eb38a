// Package workers defines the frames between a gateway and the workers that execute tools for it: JSON objects, one per WebSocket message,
// on a connection that the worker opens. docs/workers.md describes the protocol.
//
// Each frame has a type. Both sides ignore unknown members and unknown types.
package workers

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/lazy"
	"github.com/lathe-run/lathe/remote"
)

// Limits of the frames that either side reads.
const (
	// MaxFrame bounds a frame: the largest arguments or output, with binary parts in base64.
	MaxFrame = 16 << 20
	// MaxHello bounds the first frame of a worker, and with it the definitions of its tools.
	MaxHello = 1 << 20
	// MaxTools bounds the tools of one worker.
	MaxTools = 256
	// MaxHeld bounds the calls that one worker has at the same time.
	MaxHeld = 1_024
	// MaxName bounds the name of a worker, in bytes.
	MaxName = 64
)

// Protocol is the WebSocket subprotocol.
const Protocol = "lathe.worker.v1"

// Path is the path of a gateway's endpoint for workers.
const Path = "/v1/worker"

// Types of frames. Workers send hello, tools, credit, started, progress, result, error, beat and drain. Gateways send welcome, tools, call,
// cancel, ack, beat and drain.
const (
	Hello    = "hello"    // first frame of a worker: its name, its tools, and the calls that it already has
	Welcome  = "welcome"  // response to hello
	Tools    = "tools"    // the worker's tools have changed; the response lists the refused ones
	Credit   = "credit"   // the number of concurrent calls that the worker accepts
	Call     = "call"     // a call to execute
	Started  = "started"  // the worker has received the call
	Progress = "progress" // the worker is still executing the call
	Result   = "result"   // output of the tool
	Error    = "error"    // the call has no output, or was not run
	Ack      = "ack"      // the gateway has stored the result or the error
	Cancel   = "cancel"   // no caller waits for the call any longer
	Beat     = "beat"     // heartbeat; that of a worker lists its calls
	Drain    = "drain"    // the sender stops soon: a worker accepts no more calls; a gateway's workers connect to another one
)

// A Frame is one message. Its type determines which fields are used.
type Frame struct {
	Type string `json:"type"`

	// In hello, and in tools of a worker:
	Worker string `json:"worker,omitempty"`
	SDK    string `json:"sdk,omitempty"`
	// Instance is a unique text that the process generates at its start, which distinguishes it from other processes with the same name. If
	// a process reconnects with the same Instance, calls that it does not list were not executed.
	Instance string        `json:"instance,omitempty"`
	Offers   []remote.Tool `json:"offers,omitempty"`
	Credits  int           `json:"credits,omitempty"` // in hello and credit
	Held     []Ref         `json:"held,omitempty"`    // in hello and beat: the worker's calls

	// In welcome, and in tools of a gateway:
	LeaseMS int64             `json:"lease_ms,omitempty"` // a connection without a beat for this time is lost
	Refused map[string]string `json:"refused,omitempty"`  // reason by name of a refused tool

	// AtMS is the time on the gateway's clock: milliseconds since the connection was made. In welcome, call and beat.
	AtMS int64 `json:"at_ms,omitempty"`

	// In call, started, progress, result, error, ack and cancel:
	Ref
	Invoke *Invoke        `json:"call,omitempty"`
	Output *remote.Result `json:"output,omitempty"` // in result
	// Code and Detail describe an error; the model receives Detail. NotRun is set if the tool was not called.
	Code   lathe.Code `json:"code,omitempty"`
	Detail string     `json:"detail,omitempty"`
	NotRun bool       `json:"not_run,omitempty"`
	// Taken is set in an ack if the result was accepted.
	Taken bool `json:"taken,omitempty"`
}

// A Ref identifies one attempt of a call.
type Ref struct {
	Key     string `json:"key,omitempty"` // idempotency key
	Attempt int    `json:"attempt,omitempty"`
}

// An Invoke is a call to execute.
type Invoke struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	RunID     string          `json:"run_id"`
	CallID    string          `json:"call_id"`
	RequestID string          `json:"request_id,omitempty"`
	SessionID string          `json:"session_id,omitempty"`
	Depth     int             `json:"depth,omitempty"`
	// Traceparent and Tracestate are the span of the call, if spans are exported.
	Traceparent string `json:"traceparent,omitempty"`
	Tracestate  string `json:"tracestate,omitempty"`
	// DeadlineMS is the deadline of the call, on the clock of [Frame.AtMS].
	DeadlineMS int64 `json:"deadline_ms"`
}

// Encode returns the JSON of a frame, or an error if it is longer than MaxFrame bytes.
func Encode(f *Frame) ([]byte, error) {
	b, err := json.Marshal(f)
	if err == nil && len(b) > MaxFrame {
		err = fmt.Errorf("the frame has %d bytes, and at most %d are sent", len(b), MaxFrame)
	}
	return b, err
}

// Decode decodes a frame and checks its limits. The error does not quote the frame.
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

// ValidName reports whether a worker may have the name: 1 to 64 of a-z, A-Z, 0-9, _, - and dots.
func ValidName(s string) bool { return len(s) <= MaxName && workerName().MatchString(s) }

var workerName = lazy.Regexp(`^[\w.-]+$`)
