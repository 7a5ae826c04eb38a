// Package uistream implements the stream protocols of chat pages, in both directions and without I/O: an [Encoder] encodes the events of a
// run in one of five protocols, and [ParseRequest] converts requests of such pages to a history for a model.
//
// The output of an encoder is always complete: one block of text is open at a time, each block, call and step that was begun is ended, and
// the stream ends exactly once.
package uistream

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/wire"
)

// A Protocol is a stream protocol of chat pages.
type Protocol string

// The protocols.
const (
	// UIMessages is the UI message stream v1 of the AI SDK, versions 5 to 7. It is the default.
	UIMessages Protocol = "ui-message-stream"
	// UIMessagesV5 is the subset of it for the first releases of version 5, which refuse unknown parts.
	UIMessagesV5 Protocol = "ui-message-stream-v5"
	// DataStream is the data stream v1: for each part, one line with a code and JSON.
	DataStream Protocol = "data-stream"
	// AssistantTransport is the protocol of assistant-ui's transport.
	AssistantTransport Protocol = "assistant-transport"
	// AGUI is the event stream of AG-UI.
	AGUI Protocol = "ag-ui"
)

// protocols are the names that [ParseProtocol] accepts, the default first.
var protocols = []Protocol{UIMessages, UIMessagesV5, DataStream, AssistantTransport, AGUI}

// Protocols returns the names of all protocols, the default first.
func Protocols() []Protocol { return slices.Clone(protocols) }

// ParseProtocol returns the protocol with a name; "" is the default. Other names are an error.
func ParseProtocol(name string) (Protocol, error) {
	if name == "" {
		return UIMessages, nil
	}
	if p := Protocol(name); slices.Contains(protocols, p) {
		return p, nil
	}
	return "", errors.New("the protocol is one of " + fmt.Sprint(protocols))
}

// Headers returns the response headers that clients of the protocol require, as pairs of name and value, the content type first.
func (p Protocol) Headers() [][2]string {
	plain := [2]string{"Content-Type", "text/event-stream; charset=utf-8"}
	cache, proxy := [2]string{"Cache-Control", "no-cache"}, [2]string{"X-Accel-Buffering", "no"}
	switch p {
	case DataStream:
		return [][2]string{{"Content-Type", "text/plain; charset=utf-8"}, cache, proxy, {"X-Vercel-Ai-Data-Stream", "v1"}}
	case UIMessages, UIMessagesV5:
		return [][2]string{plain, cache, proxy, {"X-Vercel-Ai-Ui-Message-Stream", "v1"}}
	default:
		return [][2]string{plain, cache, proxy}
	}
}

// AppendKeepAlive appends a frame without content that keeps a connection alive.
func (p Protocol) AppendKeepAlive(dst []byte) []byte {
	if p == DataStream {
		return wire.JSON(dst).Lit("\n")
	}
	return wire.JSON(dst).Lit(": ping\n\n")
}

// Options are the options of [NewEncoder]. They are copied.
type Options struct {
	// MessageID is the id of the assistant message of the stream; empty: `msg_` and the run's id.
	MessageID string
	// ThreadID is the id of the thread for AG-UI clients; empty: the session of the run or, without a session, the run's id.
	ThreadID string
	// RunID is the id of the run for AG-UI clients; empty: the run's id.
	RunID string
	// HideReasoning omits the model's reasoning.
	HideReasoning bool
	// MaxArgs and MaxResult bound the characters of the arguments and of the result of one call, so that a page can return them within the
	// limits of a request; 0: no bound. In longer text, the middle is replaced by the number of omitted characters.
	MaxArgs, MaxResult int
	// Approvals is set if calls may wait for an approval. In UI message streams, only the first call of a turn is then streamed while the
	// model writes it, and the others follow in order. Pages continue a message once all calls in it have results, so calls after one with
	// a pending approval are not streamed before its approval.
	Approvals bool
	// State is the state of a page of [AssistantTransport], to which the stream contains the changes; nil: the page has none.
	State *State
	// Open are calls that an earlier stream of the same message has shown. This stream contains their results and continues where the
	// earlier one ended.
	Open []OpenCall
}

// An OpenCall is a call that an earlier stream has shown, unless Unsent is set.
type OpenCall struct {
	lathe.ToolCall
	// Approval is the digest of the requested approval; "": none was requested.
	Approval string
	// Unsent is set if the earlier stream has not shown the call, because a call before it waited for an approval.
	Unsent bool
}

// An Encoder encodes the events of one run, in order, as one stream. It accepts live events, stored events (in which complete messages
// replace the deltas of text), or stored events followed by live ones, and the reverse. It is used by one goroutine at a time.
type Encoder struct {
	progress
	sse     bool // the protocol has server-sent events
	inOrder bool // calls are streamed in order; see Options.Approvals

	// The phases of the stream:
	begun bool
	ended bool

	head     head
	paused   *event.RunPaused // the last one, unless the run was resumed after it
	finished *event.RunFinished
	out      output // what w appends to; set by write
	lastID   int64  // the largest id of an appended event

	// The current attempt of a model call:
	streak streak
	live   string // id of the call that is streamed while the model writes it, if calls are in order
}

// A head is the data of a run for the beginning of its stream.
type head struct{ messageID, threadID, runID, agRunID, model string }

// A step is the result of a turn.
type step struct {
	finish lathe.FinishReason
	usage  lathe.Usage
}

// A block is consecutive text of one kind. It is open unless its kind is noBlock.
type block struct {
	kind kind
	id   string // derived from the turn and the number of the block in the turn
}

type kind uint8

const (
	noBlock kind = iota
	textBlock
	commentaryBlock
	reasoningBlock
	kinds
)

// A streak records which deltas of one attempt of a model call were received.
type streak struct {
	next    int64      // number of the next delta
	any     bool       // a delta was written
	missing bool       // a delta is missing: it and those after it are written when the message is complete
	bytes   [kinds]int // number of bytes written, by kind
}

// A call is the state of one tool call in the stream. begun, ready and done are set in this order.
type call struct {
	id       string // id in the run
	shown    string // id in the stream, which differs if the run has used an id twice
	name     string
	index    int  // index of its part, for protocols that have one
	sent     int  // number of bytes of the arguments written
	carried  bool // shown by an earlier stream, or left to a later one
	begun    bool // its beginning was written in this stream
	ready    bool // its arguments are complete
	done     bool // its result was written
	approval string
	args     string // complete arguments, once ready is set
	expires  string
}

// calls are the calls of a run, in order.
type calls []*call

// An outcome is the result of a call.
type outcome struct {
	content string
	failed  bool
	code    lathe.Code
	message string
	denied  bool // an approver has denied the call
}

// An ending describes how a stream ends.
type ending struct {
	head    *head
	reason  lathe.Reason
	finish  string // finish reason in the terms of the AI SDK
	failure string // fixed text if the run failed; "": it did not
	code    string
	aborted bool
	usage   lathe.Usage
	turns   int
	calls   int
	pending []*call
}

// A writer writes one protocol. The encoder calls its methods in an order that the protocol allows.
type writer interface {
	begin(h *head)
	stepStart(turn int)
	blockStart(b block)
	blockDelta(b block, text string)
	blockEnd(b block)
	callStart(c *call)
	callArgs(c *call, text string)
	callReady(c *call)
	// callBroken is called instead of callReady for a call that fails before its arguments are complete. Its failed result follows.
	callBroken(c *call)
	approval(c *call)
	result(c *call, o *outcome)
	file(mediaType, url string)
	stepEnd(turn int, s *step)
	end(e *ending)
	// knowsOpen reports whether clients retain the calls of an earlier stream, so that they need not be written again.
	knowsOpen() bool
}

// NewEncoder returns an encoder of the protocol. It panics if the protocol is unknown.
func NewEncoder(p Protocol, opts *Options) *Encoder {
	e := &Encoder{sse: p != DataStream}
	if opts != nil {
		e.opts = *opts
	}
	e.inOrder = e.opts.Approvals && p == UIMessages
	switch p {
	case UIMessagesV5:
		e.w = &uiWriter{output: &e.out, strict: true}
	case DataStream:
		e.w = &dataWriter{output: &e.out}
	case AssistantTransport:
		w := transportWriter{output: &e.out}
		e.w = &w
		if e.opts.State != nil {
			own := *e.opts.State // which the writer changes
			own.calls = maps.Clone(own.calls)
			e.w = &stateWriter{transportWriter: w, state: &own}
		}
	case AGUI:
		e.w = &aguiWriter{output: &e.out}
	case UIMessages:
		e.w = &uiWriter{output: &e.out}
	default:
		panic("uistream: unknown protocol " + string(p))
	}
	for i := range e.opts.Open {
		o := &e.opts.Open[i]
		known := e.w.knowsOpen() && !o.Unsent
		e.calls = append(e.calls, &call{id: o.ID, shown: o.ID, name: shownName(o.Name, ""), carried: true, begun: known, ready: known,
			args: o.Arguments, approval: o.Approval})
	}
	return e
}

// HasEnded reports whether the stream has ended: nothing more is written.
func (e *Encoder) HasEnded() bool { return e.ended }
