package server

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/gateway/splice"
	"github.com/lathe-run/lathe/internal/wire"
)

// A handover writes calls of client tools into the stream of an answer. Calls of tools of this server are not written.
//
// The first call of a turn may be begun early: its arguments are written while the model writes them, once its tool and its
// id are known and it is certain that it is within the limits. The piece that closes the arguments is written only after
// the run has ended with the call: until then the model server may report the call as unreadable, and the run may refuse
// it, while some clients execute a call as soon as its arguments are complete. If the run continues or ends without a call
// that was begun, the stream ends with an error: see [chat.Withdrawn]. The other calls are written at the end, because
// clients read one call after the other. On wires that show calls of this server, a client call is not begun early if a
// call of this server precedes it in the turn, so that the answer has the calls in their order.
type handover struct {
	// Set before the first event.
	writer  wire.Writer
	ids     *splice.CallIDs // converts the ids of calls; nil: clients get the ids of the model server
	turn    int             // the turn of the calls, if the messages of the run are replayed; 0: the turn of each event
	names   map[string]bool // names of client tools; false: the model may not call the tool
	early   bool            // the first call may be begun before the end of its turn
	ordered bool            // it is not begun early if a call of this server precedes it in the turn
	mends   bool            // arguments in a code fence or in a JSON string are unwrapped
	single  bool            // the client gets only the first call of a turn (parallel_tool_calls: false)
	most    int             // maximum number of calls of the run

	// Set from events: by appendPiece and, at the start and end of a turn, by [chat.AppendEvent] or [content.replayTurn].
	mixed   bool       // the current turn has a call of this server
	planned int        // number of calls of earlier turns
	begun   *begunCall // the call whose beginning was written; nil: none
}

// A begunCall is a call whose beginning was written to the client.
type begunCall struct {
	id       string // the id that the client has
	theirs   string // the id of the model server
	space    string // white space before the arguments
	sent     []byte // the text of the arguments that was written
	object   openObject
	deferred bool // the rest of the arguments is written at the end
}

func (a *content) handOver(s *lathe.Settings, l *lathe.Limits) {
	a.calls = newHandover(a.writer, a.req.Tools, s, l)
	a.calls.ordered, a.calls.early = a.showsCalls, a.calls.early && a.protocol.pieces
}

func newHandover(writer wire.Writer, tools []*lathe.ToolSpec, s *lathe.Settings, l *lathe.Limits) *handover {
	h := &handover{writer: writer, single: s.ParallelToolCalls != nil && !*s.ParallelToolCalls, most: l.WithDefaults().MaxToolCalls}
	h.early = s.OnParseError != lathe.ParseErrorRetryWithout // with that setting a turn whose calls cannot be read is repeated without tools
	h.mends = s.Repair != lathe.RepairOff
	if len(tools) > 0 {
		h.names = make(map[string]bool, len(tools))
	}
	for _, t := range tools {
		h.names[t.Name] = !t.Disallowed
	}
	return h
}

// appendPiece appends a piece of a call if the call is begun early, and appends nothing otherwise.
func (h *handover) appendPiece(dst []byte, turn int, d *event.ToolCallDelta) []byte {
	if !h.names[d.Tool] {
		h.mixed = true
		return dst
	}
	if d.ToolCallID == "" || !h.early {
		return dst
	}
	if h.begun == nil {
		if !h.mayBegin(d) {
			return dst
		}
		h.begun = &begunCall{id: h.ids.Of(cmp.Or(h.turn, turn), d.ToolCallID), theirs: d.ToolCallID}
		dst = h.writer.AppendDelta(dst, lathe.Delta{Kind: lathe.DeltaCallStart, ID: h.begun.id, Name: d.Tool})
	}
	if h.begun.theirs != d.ToolCallID {
		return dst
	}
	return h.appendArgs(dst, 0, h.begun.advance(d.Text))
}

// mayBegin reports whether it is certain that the client gets the call, and that no other call precedes it in the answer.
func (h *handover) mayBegin(d *event.ToolCallDelta) bool {
	isRefused := h.single && d.Index > 0 || h.planned+d.Index >= h.most
	isPreceded := h.ordered && h.mixed
	return !isRefused && !isPreceded
}

// advance adds the next text of the arguments and returns what can be written now.
func (c *begunCall) advance(text string) string {
	if c.deferred {
		return ""
	}
	if len(c.sent) == 0 {
		text = c.space + text
		begin := strings.TrimLeft(text, " \t\r\n")
		if begin == "" {
			c.space = text
			return ""
		}
		c.deferred = begin[0] != '{' // other arguments may be unwrapped at the end, and each prefix of a number is a number
	}
	c.deferred = c.deferred || c.object.scan(text)
	if c.deferred {
		return ""
	}
	c.sent = append(c.sent, text...)
	return text
}

// toolName returns the name of the client's tool that a call of the model names: models write a dot for an underscore. It
// returns the name itself if the client has no such tool.
func (h *handover) toolName(name string) string {
	if known := strings.ReplaceAll(name, ".", "_"); h.names[known] {
		return known
	}
	return name
}

// forClient returns the call of a turn as the client gets it: with the id that the client has, and with unwrapped
// arguments, like those of a tool of this server.
func (h *handover) forClient(turn int, call lathe.ToolCall) lathe.ToolCall {
	call.ID = h.ids.Of(turn, call.ID)
	if h.mends {
		call.Arguments = splice.Unwrapped(call.Arguments)
	}
	return call
}

func (h *handover) appendArgs(dst []byte, index int, text string) []byte {
	if text == "" {
		return dst
	}
	return h.writer.AppendDelta(dst, lathe.Delta{Kind: lathe.DeltaCallArgs, Index: index, Text: text})
}

// rest returns the part of the arguments of call that was not written. It returns false if call is not the begun call, or
// its arguments do not begin with those that were written.
func (c *begunCall) rest(call *lathe.ToolCall) (string, bool) {
	if c == nil || call.ID != c.id {
		return "", false
	}
	return strings.CutPrefix(call.Arguments, string(c.sent))
}

// completes reports whether the begun call is one of calls. It returns true if no call was begun.
func (h *handover) completes(calls []lathe.ToolCall) bool {
	return h.begun == nil || slices.ContainsFunc(calls, func(call lathe.ToolCall) bool {
		_, ok := h.begun.rest(&call)
		return ok
	})
}

// appendAll appends the calls that the client is to execute: first the rest of the begun call, then the others.
func (h *handover) appendAll(dst []byte, calls []lathe.ToolCall) []byte {
	for i := range calls {
		if rest, ok := h.begun.rest(&calls[i]); ok {
			dst = h.appendEnd(h.appendArgs(dst, 0, rest), 0)
		}
	}
	index := 0
	if h.begun != nil {
		index = 1
	}
	for i := range calls {
		if _, ok := h.begun.rest(&calls[i]); ok {
			continue
		}
		dst = h.writer.AppendDelta(dst, lathe.Delta{Kind: lathe.DeltaCallStart, Index: index, ID: calls[i].ID, Name: calls[i].Name})
		dst = h.appendEnd(h.appendArgs(dst, index, calls[i].Arguments), index)
		index++
	}
	return dst
}

func (h *handover) appendEnd(dst []byte, index int) []byte {
	return h.writer.AppendDelta(dst, lathe.Delta{Kind: lathe.DeltaCallEnd, Index: index})
}

// An openObject scans the text of a JSON object piece by piece. The zero value is at the start of the object.
type openObject struct {
	depth            int
	inString, escape bool
}

// scan reads the next piece. closed is true if the object ends in it. If the text is not JSON, the end may be reported too
// early, but never too late.
func (o *openObject) scan(text string) (closed bool) {
	for i := range len(text) {
		switch c := text[i]; {
		case o.escape:
			o.escape = false
		case c == '"':
			o.inString = !o.inString
		case o.inString:
			o.escape = c == '\\'
		case c == '{' || c == '[':
			o.depth++
		case c == '}' || c == ']':
			if o.depth--; o.depth <= 0 {
				return true
			}
		}
	}
	return false
}
