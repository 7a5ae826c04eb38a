// Package uistream speaks the stream protocols of chat pages, in both directions and without I/O:
// an [Encoder] turns the events of a run into one of five protocols, and [ParseRequest] turns what
// such pages send into a history that a model can be given.
//
// What an encoder writes is always a whole lifecycle, whatever the run does: one block of text is
// open at a time, each block, call and step that was opened is closed, and the stream ends once.
package uistream

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lathe-run/lathe"
)

// A Protocol is a stream protocol of chat pages.
type Protocol string

// The protocols.
const (
	// UIMessages is the UI message stream v1 of the AI SDK, versions 5 to 7. It is the default.
	UIMessages Protocol = "ui-message-stream"
	// UIMessagesV5 is the subset of it that the first versions 5 read, which refuse what they do not know.
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

// Headers returns the names and values of the response headers that the protocol's clients look at,
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

// AppendKeepAlive appends what keeps a connection of the protocol alive and says nothing.
func (p Protocol) AppendKeepAlive(dst []byte) []byte {
	if p == DataStream {
		return append(dst, '\n')
	}
	return append(dst, ": ping\n\n"...)
}

// Options say how an [Encoder] writes. They are copied.
type Options struct {
	// MessageID names the assistant message that the stream makes; empty: `msg_` and the run's id.
	MessageID string
	// ThreadID is AG-UI's; empty: the run's session, else its id.
	ThreadID string
	// RunID is what AG-UI clients call the run; empty: the run's id.
	RunID string
	// HideReasoning leaves the model's reasoning out.
	HideReasoning bool
	// MaxArgs and MaxResult bound the characters that are told of one call, so that what a page sends
	// back is within the limits of a request; 0: no bound. What is longer is cut, and says by how much.
	MaxArgs, MaxResult int
	// Approvals says that calls may wait for a person. UI messages then tell one call of a turn as it is
	// written, the others when their turn comes: pages go on once all calls that they see are answered, so
	// what waits behind an approval is not told before it.
	Approvals bool
	// State, of [AssistantTransport], is what the page holds and is told the changes of; nil: it holds none.
	State *State
	// Open are calls that an earlier stream of the same message has told: what comes of them is told
	// in this one, which goes on where that one ended.
	Open []OpenCall
}

// An OpenCall is a call that an earlier stream has told.
type OpenCall struct {
	lathe.ToolCall
	// Approval is the digest of the approval that was asked for; empty: none was.
	Approval string
	// Untold says that the earlier stream has not told the call, as it waited behind another.
	Untold bool
}

// An Encoder writes the events of one run, in order, as one stream. It may be given live events, or
// those of a log, where the text of whole messages stands in place of deltas, or first the one and
// then the other. It is used by one goroutine.
type Encoder struct {
	w    writer
	opts Options
	sse  bool
	// inOrder has calls told in order; live is the one of the turn that is told as it is written.
	inOrder bool
	live    string

	begun, ended bool
	head         head
	turn         int
	inStep       bool // the protocol was told that a step has begun
	step         step

	block  block
	blocks int // in this turn
	streak streak

	calls  []*call
	paused *lathe.RunPaused
	over   *lathe.RunFinished
	frame  int // where in dst the last frame begins
	lastID int64
}

// head is what a stream says of its run first.
type head struct{ messageID, threadID, runID, agRunID, requestID, model string }

// step is what a turn came to.
type step struct {
	finish lathe.FinishReason
	usage  lathe.Usage
}

// A block is a stretch of text of one kind. It is open while kind is not noBlock.
type block struct {
	kind kind
	id   string // made of the turn, and of its place within that
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
	holed bool       // deltas are missing: the rest is told once the message is whole
	bytes [kinds]int // told
}

// A call is one tool call as the stream tells it.
type call struct {
	id       string // as the run knows it
	shown    string // as the stream does: it differs where the run gave an id again
	name     string
	index    int // of its part, for protocols that count
	sent     int // bytes of the argument text
	client   bool
	carried  bool // told by an earlier stream
	told     bool // begun in this one
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
	begin(dst []byte, h *head) []byte
	stepStart(dst []byte, turn int) []byte
	blockStart(dst []byte, b block) []byte
	blockDelta(dst []byte, b block, text string) []byte
	blockEnd(dst []byte, b block) []byte
	callStart(dst []byte, c *call) []byte
	callArgs(dst []byte, c *call, text string) []byte
	callReady(dst []byte, c *call) []byte
	approval(dst []byte, c *call) []byte
	result(dst []byte, c *call, o *outcome) []byte
	file(dst []byte, mediaType, url string) []byte
	stepEnd(dst []byte, turn int, s *step) []byte
	end(dst []byte, e *ending) []byte
	// knowsOpen says that calls of an earlier stream need not be told again.
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
		e.calls = append(e.calls, &call{id: o.ID, shown: o.ID, name: shownName(o.Name, ""), carried: true, told: e.w.knowsOpen() && !o.Untold, ready: e.w.knowsOpen() && !o.Untold,
			args: o.Arguments, approval: o.Approval})
	}
	return e
}

// HasEnded reports whether the stream is over: nothing more is written then.
func (e *Encoder) HasEnded() bool { return e.ended }
