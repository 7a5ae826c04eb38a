// Package uistream implements the stream protocols of chat pages, in both directions and without I/O:
// an [Encoder] encodes the events of a run in one of five protocols, and [ParseRequest] parses requests of
// such pages into a history for a model.
//
// The output of an encoder is always complete: one block of text is
// open at a time, the encoder closes each block, call and step that it opens, and the stream ends once.
package uistream

import (
	"errors"
	"fmt"
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
	// DataStream is the data stream v1: one line of a code and JSON for each part.
	DataStream Protocol = "data-stream"
	// AssistantTransport is that of assistant-ui.
	AssistantTransport Protocol = "assistant-transport"
	// AGUI is the event stream of AG-UI.
	AGUI Protocol = "ag-ui"
)

// Protocols are the names that [ParseProtocol] knows.
var protocols = []Protocol{UIMessages, UIMessagesV5, DataStream, AssistantTransport, AGUI}

// Protocols returns the names of all protocols, the default first.
func Protocols() []Protocol { return slices.Clone(protocols) }

// ParseProtocol returns the protocol of that name; an empty name is the default.
func ParseProtocol(name string) (Protocol, error) {
	if name == "" {
		return UIMessages, nil
	}
	if p := Protocol(name); slices.Contains(protocols, p) {
		return p, nil
	}
	return "", errors.New("the protocol is one of " + fmt.Sprint(protocols))
}

// Headers returns the names and values of the response headers that the protocol's clients read,
// the content type first.
func (p Protocol) Headers() [][2]string {
	plain := [2]string{"Content-Type", "text/event-stream; charset=utf-8"}
	cache, proxy := [2]string{"Cache-Control", "no-cache"}, [2]string{"X-Accel-Buffering", "no"}
	switch p {
	case DataStream:
		return [][2]string{{"Content-Type", "text/plain; charset=utf-8"}, cache, proxy, {"X-Vercel-Ai-Data-Stream", "v1"}}
	case UIMessages, UIMessagesV5:
		return [][2]string{plain, cache, proxy, {"X-Vercel-Ai-Ui-Message-Stream", "v1"}}
	case AssistantTransport, AGUI:
	}
	return [][2]string{plain, cache, proxy}
}

// AppendKeepAlive appends a frame without content that keeps a connection alive.
func (p Protocol) AppendKeepAlive(dst []byte) []byte {
	if p == DataStream {
		return wire.JSON(dst).Lit("\n")
	}
	return wire.JSON(dst).Lit(": ping\n\n")
}

// Options configure an [Encoder]. They are copied.
type Options struct {
	// MessageID is the id of the assistant message of the stream; empty: `msg_` and the run's id.
	MessageID string
	// ThreadID is AG-UI's; empty: the run's session, else its id.
	ThreadID string
	// RunID is the id of the run for AG-UI clients; empty: the run's id.
	RunID string
	// HideReasoning omits the model's reasoning.
	HideReasoning bool
	// MaxArgs and MaxResult bound the characters of the arguments and the result of one call, so that a page can send them
	// back within the limits of a request; 0: no bound. Longer text is cut, with the number of omitted characters.
	MaxArgs, MaxResult int
	// Approvals means that calls may wait for an approval. UI message streams then contain one call of a turn while it is
	// written, and the others in order: pages continue a message once all calls in it have results, so
	// calls behind a pending approval are not streamed before it.
	Approvals bool
	// State, of [AssistantTransport], is the page's state, whose changes are streamed; nil: the page has none.
	State *State
	// Open are calls that an earlier stream of the same message has shown: this stream contains their results
	// and continues where that one ended.
	Open []OpenCall
}

// An OpenCall is a call that an earlier stream has shown.
type OpenCall struct {
	lathe.ToolCall
	// Approval is the digest of the requested approval, or empty.
	Approval string
	// Unsent means that the earlier stream has not shown the call, because it waited behind another.
	Unsent bool
}

// An Encoder encodes the events of one run, in order, as one stream. It accepts live events,
// stored events, in which the text of whole messages replaces deltas, or first the one and
// then the other. It is used by one goroutine at a time.
type Encoder struct {
	w    writer
	opts Options
	sse  bool
	// inOrder streams calls in order; live is the call of the turn that is streamed while it is written.
	inOrder bool
	live    string

	begun, ended bool
	head         head
	turn         int
	inStep       bool // the begin of a step was written
	step         step

	block  block
	blocks int // in this turn
	streak streak

	calls  []*call
	paused *event.RunPaused
	over   *event.RunFinished
	frame  int // where in dst the last frame begins
	lastID int64
}

// head is the data of a run at the beginning of its stream.
type head struct{ messageID, threadID, runID, agRunID, requestID, model string }

// step is the result of a turn.
type step struct {
	finish lathe.FinishReason
	usage  lathe.Usage
}

// A block is a contiguous text of one kind. It is open while kind is not noBlock.
type block struct {
	kind kind
	id   string // derived from the turn and the number of the block in it
}

type kind uint8

const (
	noBlock kind = iota
	textBlock
	commentaryBlock
	reasoningBlock
	kinds
)

// A streak follows the deltas of one attempt of a model call.
type streak struct {
	next  int64      // the number of the next delta
	any   bool       // a delta was seen
	holed bool       // deltas are missing: the rest is written when the message is complete
	bytes [kinds]int // written
}

// A call is the state of one tool call in the stream.
type call struct {
	id       string // in the run
	shown    string // in the stream: differs if the run used an id again
	name     string
	index    int // of its part, for protocols that count
	sent     int // bytes of the argument text
	client   bool
	carried  bool // shown by an earlier stream
	begun    bool // its beginning was written in this stream
	ready    bool // its arguments are whole
	done     bool
	approval string
	args     string // whole, once it is ready
	expires  string
}

// outcome is what came of a call.
type outcome struct {
	content string
	failed  bool
	code    lathe.Code
	message string
	denied  bool // by the person who was asked
}

// ending is how a stream ends.
type ending struct {
	head    *head
	reason  lathe.Reason
	finish  string // as the AI SDK names it
	failure string // a fixed text, where the run failed
	code    string
	aborted bool
	usage   lathe.Usage
	turns   int
	calls   int
	pending []*call
}

// A writer writes one protocol. The encoder calls it in an order that the protocol allows.
type writer interface {
	begin(dst wire.JSON, h *head) wire.JSON
	stepStart(dst wire.JSON, turn int) wire.JSON
	blockStart(dst wire.JSON, b block) wire.JSON
	blockDelta(dst wire.JSON, b block, text string) wire.JSON
	blockEnd(dst wire.JSON, b block) wire.JSON
	callStart(dst wire.JSON, c *call) wire.JSON
	callArgs(dst wire.JSON, c *call, text string) wire.JSON
	callReady(dst wire.JSON, c *call) wire.JSON
	// callBroken is written in place of callReady for a call that fails before its arguments are complete; its
	// failed result follows.
	callBroken(dst wire.JSON, c *call) wire.JSON
	approval(dst wire.JSON, c *call) wire.JSON
	result(dst wire.JSON, c *call, o *outcome) wire.JSON
	file(dst wire.JSON, mediaType, url string) wire.JSON
	stepEnd(dst wire.JSON, turn int, s *step) wire.JSON
	end(dst wire.JSON, e *ending) wire.JSON
	// knowsOpen says that calls of an earlier stream need not be written again.
	knowsOpen() bool
}

// NewEncoder returns an encoder of the protocol.
func NewEncoder(p Protocol, opts *Options) *Encoder {
	e := &Encoder{sse: p != DataStream, frame: -1}
	if opts != nil {
		e.opts = *opts
	}
	e.inOrder = e.opts.Approvals && p == UIMessages
	mark := func(at int) { e.frame = at }
	switch p {
	case UIMessagesV5:
		e.w = &uiWriter{mark: mark, strict: true}
	case DataStream:
		e.w = &dataWriter{}
	case AssistantTransport:
		e.w = &transportWriter{mark: mark}
		if e.opts.State != nil {
			e.w = &stateWriter{transportWriter: transportWriter{mark: mark}, state: e.opts.State}
		}
	case AGUI:
		e.w = &aguiWriter{mark: mark}
	case UIMessages:
		e.w = &uiWriter{mark: mark}
	default:
		panic("uistream: unknown protocol " + string(p))
	}
	for i := range e.opts.Open {
		o := &e.opts.Open[i]
		e.calls = append(e.calls, &call{id: o.ID, shown: o.ID, name: shownName(o.Name, ""), carried: true, begun: e.w.knowsOpen() && !o.Unsent, ready: e.w.knowsOpen() && !o.Unsent,
			args: o.Arguments, approval: o.Approval})
	}
	return e
}

// HasEnded reports whether the stream is over: nothing more is written then.
func (e *Encoder) HasEnded() bool { return e.ended }
