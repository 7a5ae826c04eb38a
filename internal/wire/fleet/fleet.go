// Package fleet is the wire between a gateway and the workers that execute tools for it: JSON objects,
// one a WebSocket message, on a connection that the worker makes. docs/workers.md describes it.
//
// Each frame has a type. Members that a side does not know are passed over, and so are frames.
package fleet

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/lathe-run/lathe"
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

// Path is where a gateway takes workers.
const Path = "/v1/worker"

// The types of frames. From a worker: hello, tools, credit, started, progress, result, error, beat,
// drain. From a gateway: welcome, tools, call, cancel, ack, beat, drain.
const (
	Hello    = "hello"    // the first: who the worker is, what it serves, and what it still holds
	Welcome  = "welcome"  // its answer
	Tools    = "tools"    // the worker serves other tools; the answer says which of them are refused
	Credit   = "credit"   // how many calls the worker takes at once
	Call     = "call"     // a call to execute
	Started  = "started"  // the worker has it
	Progress = "progress" // the call goes on
	Result   = "result"   // what the tool returned
	Error    = "error"    // there is no output, or the call was not run
	Ack      = "ack"      // the result, or the error, need not be sent again
	Cancel   = "cancel"   // nobody waits for the call any more
	Beat     = "beat"     // the sender lives; a worker's names the calls that it holds
	Drain    = "drain"    // the sender is about to go: a worker takes no more calls, a gateway wants it to go elsewhere
)

// A Frame is one message. Which fields count is decided by its type.
type Frame struct {
	Type string `json:"type"`

	// hello, and tools of a worker
	Worker string `json:"worker,omitempty"`
	SDK    string `json:"sdk,omitempty"`
	// Instance tells the process from others of that name, before and after it: a text made up when it begins. Calls
	// of a process that names itself so, and that does not hold them when it comes back, were not run.
	Instance string             `json:"instance,omitempty"`
	Offers   []lathe.WorkerTool `json:"offers,omitempty"`
	Credits  int                `json:"credits,omitempty"` // hello, credit
	Held     []Ref              `json:"held,omitempty"`    // hello, beat

	// welcome, and tools of a gateway
	LeaseMS int64             `json:"lease_ms,omitempty"` // without a beat for that long the connection is dead
	Refused map[string]string `json:"refused,omitempty"`  // why, by the name of the tool

	// AtMS is the gateway's clock: milliseconds since the connection was made. It is in welcome, call and beat.
	AtMS int64 `json:"at_ms,omitempty"`

	// call, started, progress, result, error, ack, cancel
	Ref
	Invoke *Invoke           `json:"call,omitempty"`
	Output *lathe.CallResult `json:"output,omitempty"` // result
	// Code and Detail are of an error, Detail is for the model. NotRun says that the tool was not called.
	Code   lathe.Code `json:"code,omitempty"`
	Detail string     `json:"detail,omitempty"`
	NotRun bool       `json:"not_run,omitempty"`
	// Taken, of an ack, says that the result counts.
	Taken bool `json:"taken,omitempty"`
}

// A Ref names an attempt of a call.
type Ref struct {
	Key     string `json:"key,omitempty"` // the idempotency key
	Attempt int    `json:"attempt,omitempty"`
}

// Invoke is what a worker needs to know to execute a call.
type Invoke struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	RunID     string          `json:"run_id"`
	CallID    string          `json:"call_id"`
	RequestID string          `json:"request_id,omitempty"`
	SessionID string          `json:"session_id,omitempty"`
	Depth     int             `json:"depth,omitempty"`
	// Traceparent and Tracestate name the span of the call, where somebody keeps spans.
	Traceparent string `json:"traceparent,omitempty"`
	Tracestate  string `json:"tracestate,omitempty"`
	// DeadlineMS is when its time is up, on the clock of [Frame.AtMS].
	DeadlineMS int64 `json:"deadline_ms"`
}

// Encode returns the frame as it is sent.
func Encode(f *Frame) ([]byte, error) {
	b, err := json.Marshal(f)
	if err == nil && len(b) > MaxFrame {
		err = fmt.Errorf("the frame has %d bytes, and at most %d are sent", len(b), MaxFrame)
	}
	return b, err
}

// Decode reads a frame. The error says nothing of its content.
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
