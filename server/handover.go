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

// A handover writes calls to the client's tools into the stream of an answer. Calls to tools of this server are
// not written.
//
// The first call of a turn is begun early: its arguments are written as the model writes them, once it is certain which
// tool it names, under which id, and that it is within the limits. The piece that closes the arguments is written after
// the run has ended with the call: until then the model server may report the call as unreadable, and the run may refuse
// it, while some clients execute a call as soon as its arguments are whole. If the run continues or ends without a call
// that was begun, the stream ends with an error: see [chat.Withdrawn]. The other calls are written at the end, because
// clients read one call after the other. On wires that show the calls of this server, a call of the client is not begun
// early if a call of this server is before it in its turn, so that the answer has them in this order.
type handover struct {
	writer  wire.Writer
	ids     *splice.CallIDs // of the calls; nil: they have those of the model server
	turn    int             // of the calls, if the messages of the run are replayed; 0: it is that of the events
	names   map[string]bool // of the client's tools
	early   bool            // the first call is begun before the end of its turn
	ordered bool            // it is not begun early after a call of this server in its turn
	mixed   bool            // the turn has a call of this server
	mends   bool            // arguments in a fence, or written as a JSON string, are unwrapped
	single  bool            // only the first call of a turn is handed over
	most    int             // calls of the run that are handed over
	planned int             // calls of earlier turns
	begun   *begunCall      // nil: the client has not got the beginning of a call
}

// A begunCall is a call of which the client has got the beginning.
type begunCall struct {
	id       string // as the client got it
	theirs   string // of the model server
	space    string // before the arguments
	sent     []byte // the argument text that the client has got
	object   openObject
	deferred bool // the rest of the arguments is written at the end
}

// handOver has the answer of the run hand over calls to the client's tools.
func (a *content) handOver(s *lathe.Settings, l *lathe.Limits) {
	a.calls = newHandover(a.writer, a.req.Tools, s, l)
	a.calls.ordered, a.calls.early = a.shows, a.calls.early && a.protocol.pieces
}

// newHandover returns one for a run that hands over calls to these tools.
func newHandover(writer wire.Writer, tools []*lathe.ToolSpec, s *lathe.Settings, l *lathe.Limits) *handover {
	h := &handover{writer: writer, single: s.ParallelToolCalls != nil && !*s.ParallelToolCalls, most: l.WithDefaults().MaxToolCalls}
	h.early = s.OnParseError != lathe.ParseErrorRetryWithout // else a turn may be taken back
	h.mends = s.Repair != lathe.RepairOff
	if len(tools) > 0 {
		h.names = make(map[string]bool, len(tools))
	}
	for _, t := range tools {
		h.names[t.Name] = !t.Disallowed
	}
	return h
}

// appendPiece appends a piece of a call of a turn, if the call is begun early.
func (h *handover) appendPiece(dst []byte, turn int, d *event.ToolCallDelta) []byte {
	if !h.names[d.Tool] {
		h.mixed = true
		return dst
	}
	if d.ToolCallID == "" || !h.early {
		return dst
	}
	if h.begun == nil {
		if h.single && d.Index > 0 || h.planned+d.Index >= h.most || h.ordered && h.mixed {
			return dst
		}
		h.begun = &begunCall{id: h.ids.Of(cmp.Or(h.turn, turn), d.ToolCallID), theirs: d.ToolCallID}
		dst = h.writer.AppendDelta(dst, lathe.Delta{Kind: lathe.DeltaCallStart, ID: h.begun.id, Name: d.Tool})
	}
	c, text := h.begun, d.Text
	if c.theirs != d.ToolCallID || c.deferred {
		return dst
	}
	if len(c.sent) == 0 {
		text = c.space + text
		begin := strings.TrimLeft(text, " \t\r\n")
		if begin == "" {
			c.space = text
			return dst
		}
		c.deferred = begin[0] != '{' // it may be unwrapped, and each piece of a number is a number
	}
	if c.deferred = c.deferred || c.object.closedBy(text); c.deferred {
		return dst
	}
	c.sent = append(c.sent, text...)
	return h.appendArgs(dst, 0, text)
}

// forClient returns the call of a turn as the client gets it: under its own id, with its arguments unwrapped, as those of a tool of
// this server are.
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

// rest returns the arguments of the begun call that the client has not got. It reports false if call is another one, or
// has other arguments than those that were written.
func (c *begunCall) rest(call *lathe.ToolCall) (string, bool) {
	if c == nil || call.ID != c.id {
		return "", false
	}
	return strings.CutPrefix(call.Arguments, string(c.sent))
}

// completes reports whether the call that was begun, if any, is one of the calls that are handed over.
func (h *handover) completes(calls []lathe.ToolCall) bool {
	return h.begun == nil || slices.ContainsFunc(calls, func(call lathe.ToolCall) bool {
		_, ok := h.begun.rest(&call)
		return ok
	})
}

// appendAll appends the calls that are handed over, which complete the call that was begun.
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

// An openObject reads the text of a JSON object up to its closing brace. The zero value has read nothing.
type openObject struct {
	depth            int
	inString, escape bool
}

// closedBy reads more text and reports whether the object ends in it. Text that is no JSON may seem to end early, never
// late.
func (o *openObject) closedBy(text string) bool {
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
