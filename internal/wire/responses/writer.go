package responses

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// Prefixes of the ids of items.
const (
	prefixMessage    = "msg_"
	prefixReasoning  = "rs_"
	prefixCall       = "fc_"
	prefixCustom     = "ctc_"
	prefixServer     = "mcp_"
	prefixApproval   = "mcpr_"
	prefixCompaction = "cmp_"
)

// A writer writes the events of one answer: see [wire.Writer]. One item is open at a time. Items that are received while a call is open,
// and calls without an id or a name, are queued. The input of a custom tool is written when it is complete.
type writer struct {
	res       *resource
	names     map[string]wire.ToolName
	padded    bool
	seq       int
	next      int        // output index of the next item
	open      []*outItem // items begun by the writer (at most one) or passed on
	output    []outDone
	calls     []*outCall
	queue     []op
	started   int // number of startEvents that were sent
	ended     bool
	closed    bool // [DONE] was sent
	failed    bool // an `error` event was passed on
	lastCall  *outItem
	unordered bool
}

// delta appends an event with a piece of the open part of an item, and adds the piece to the item. index is the name of the member for the
// index of the part; "": none. more are additional members, as JSON.
func (w *writer) delta(dst wire.JSON, it *outItem, typ, index, more, text string) wire.JSON {
	if dst = w.of(dst, typ, it); index != "" {
		dst = dst.Num(index, int64(it.parts))
	}
	dst = dst.Lit(more).Key("delta")
	from := len(dst)
	dst = dst.Quote(text)
	it.encoded = append(it.encoded, dst[from+1:len(dst)-1]...)
	return w.endPiece(dst, len(dst)-from)
}

// An outDone is an item that was written completely.
type outDone struct {
	index int
	json  []byte
}

// An op is an element of the queue: a call, a delta, or a function that writes an item.
type op struct {
	call  *outCall
	delta lathe.Delta
	show  func(dst wire.JSON) wire.JSON
}

// An outCall is a call, as far as it was received.
type outCall struct {
	index    int
	id, name string
	args     []byte // arguments not yet sent
	ended    bool   // all pieces were received
	cut      bool
	item     *outItem // nil: the item has not begun
	closed   bool     // completely sent
}

// NewWriter implements [wire.Served].
func (Codec) NewWriter(head *wire.AnswerHead) wire.Writer {
	w := newWriter(head)
	if head.Whole {
		return &wholeWriter{writer: w}
	}
	return w
}

func newWriter(head *wire.AnswerHead) *writer {
	w := &writer{res: newResource(head)}
	if head.Request != nil {
		w.names, w.padded = head.Request.Names, head.Request.Obfuscate
	}
	return w
}

// event appends the beginning of an event with the next sequence number.
func (w *writer) event(dst wire.JSON, typ string) wire.JSON {
	w.seq++
	return dst.Event(typ).Num("sequence_number", int64(w.seq-1))
}

// piece appends a member with a piece of text, and ends the event. If events are padded, events with texts of up to 64 encoded bytes have
// the same size, those of up to 128 bytes the next size, and so on.
func (w *writer) piece(dst wire.JSON, name, text string) wire.JSON {
	dst = dst.Key(name)
	from := len(dst)
	dst = dst.Quote(text)
	return w.endPiece(dst, len(dst)-from)
}

// endPiece ends an event with a piece of size encoded bytes, and pads it if events are padded.
func (w *writer) endPiece(dst wire.JSON, size int) wire.JSON {
	if w.padded {
		dst = dst.Str("obfuscation", wire.Padding(size))
	}
	return dst.EndEvent()
}

// startEvents are the types of the first events of a stream.
var startEvents = [...]string{"response.created", "response.in_progress"}

// AppendStart implements [wire.Writer].
func (w *writer) AppendStart(dst []byte) []byte {
	for ; w.started < len(startEvents); w.started++ {
		dst = w.event(dst, startEvents[w.started])
		dst = w.res.append(wire.JSON(dst).Key("response"), &state{status: statusInProgress}).EndEvent()
	}
	return dst
}

// AppendKeepAlive implements [wire.Writer].
func (*writer) AppendKeepAlive(dst []byte) []byte { return wire.JSON(dst).Lit(": keep-alive\n\n") }

// AppendDelta implements [wire.Writer].
func (w *writer) AppendDelta(dst []byte, d lathe.Delta) []byte {
	if w.ended {
		return dst
	}
	switch d.Kind {
	case lathe.DeltaText, lathe.DeltaCommentary, lathe.DeltaReasoning, lathe.DeltaRefusal, lathe.DeltaReasoningData,
		lathe.DeltaTextEnd, lathe.DeltaPart:
		if d.Text == "" && d.Kind != lathe.DeltaTextEnd && d.Kind != lathe.DeltaPart {
			return dst
		}
		d.Text = valid(d.Text)
		if len(w.queue) == 0 {
			return w.show(w.AppendStart(dst), d)
		}
		w.queue = append(w.queue, op{delta: d})
		return w.advance(dst)
	case lathe.DeltaCallStart, lathe.DeltaCallArgs, lathe.DeltaCallEnd:
		return w.callDelta(dst, &d)
	default: // other deltas are not written
		return dst
	}
}

// callDelta handles a delta of a call, and appends the events that can be written.
func (w *writer) callDelta(dst wire.JSON, d *lathe.Delta) wire.JSON {
	c := w.call(d.Index)
	switch d.Kind {
	case lathe.DeltaCallStart:
		if c.item == nil {
			c.id, c.name = d.ID, d.Name
		}
	case lathe.DeltaCallArgs:
		if c.ended {
			break
		}
		if c.item != nil && c.item.kind == itemCall && len(c.args) == 0 && d.Text != "" && len(w.queue) > 0 && w.queue[0].call == c {
			return w.args(dst, c.item, d.Text)
		}
		c.args = append(c.args, valid(d.Text)...)
	default:
		if c.item == nil && c.id == "" {
			c.id = d.ID
		}
		c.ended, c.cut = true, c.cut || d.Incomplete
	}
	return w.advance(dst)
}

// valid returns text with each byte that is not UTF-8 replaced by U+FFFD, so that the complete text equals the pieces that the client
// joins.
func valid(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return rawjson.Text(rawjson.AppendQuote(nil, text))
}

// call returns the call with an index, and queues a new one if none exists.
func (w *writer) call(index int) *outCall {
	for i := len(w.calls) - 1; i >= 0; i-- {
		if w.calls[i].index == index {
			return w.calls[i]
		}
	}
	c := &outCall{index: index}
	w.calls = append(w.calls, c)
	w.queue = append(w.queue, op{call: c})
	return c
}

// advance writes all elements of the queue that can be written now.
func (w *writer) advance(dst wire.JSON) wire.JSON {
	for len(w.queue) > 0 {
		o := &w.queue[0]
		switch {
		case o.call != nil:
			if dst = w.sendCall(dst, o.call); !o.call.closed {
				return dst
			}
		case o.show != nil:
			dst = o.show(w.closeItems(w.AppendStart(dst)))
		default:
			dst = w.show(w.AppendStart(dst), o.delta)
		}
		w.queue[0] = op{}
		w.queue = w.queue[1:]
	}
	return dst
}

// sendCall writes what was received of a call.
func (w *writer) sendCall(dst wire.JSON, c *outCall) wire.JSON {
	if c.item == nil {
		if c.id == "" || c.name == "" {
			return dst
		}
		dst = w.beginCall(w.closeItems(w.AppendStart(dst)), c)
	}
	it := c.item
	if it.kind == itemCustom {
		if c.ended {
			if more, ok := strings.CutPrefix(customInput(string(c.args)), it.text()); ok && more != "" {
				dst = w.args(dst, it, more)
			}
		}
	} else if len(c.args) > 0 {
		dst = w.args(dst, it, string(c.args))
		c.args = c.args[:0]
	}
	if !c.ended {
		return dst
	}
	if it.kind == itemCall && len(it.encoded) == 0 && !c.cut {
		dst = w.args(dst, it, "{}")
	}
	if it.cut = c.cut; it.kind == itemCall && !it.cut {
		_, it.cut = wire.ReadArguments([]byte(it.text()))
	}
	c.cut, c.closed = it.cut, true
	return w.closeItems(dst)
}

// AppendServerCall implements [wire.Writer]. It writes a complete mcp_call item.
func (w *writer) AppendServerCall(dst []byte, c *wire.ServerCall) []byte {
	call := *c
	return w.later(dst, func(dst wire.JSON) wire.JSON { return w.serverCall(dst, &call) })
}

// AppendApproval implements [wire.Writer]. It writes an mcp_approval_request item.
func (w *writer) AppendApproval(dst []byte, a *wire.Approval) []byte {
	approval := *a
	return w.later(dst, func(dst wire.JSON) wire.JSON {
		index := w.take()
		item := wire.JSON("{").Str("id", prefixApproval+approval.ID).Str("type", "mcp_approval_request").Str("server_label", label(approval.Server)).
			Str("name", approval.Name).Str("arguments", orEmptyObject(approval.Arguments)).Lit("}")
		return w.done(w.added(dst, index, item), index, item)
	})
}

// AppendCarrier implements [wire.Writer]. It writes a reasoning item without a summary.
func (w *writer) AppendCarrier(dst []byte, seal string) []byte {
	return w.later(dst, func(dst wire.JSON) wire.JSON {
		index := w.take()
		id := w.res.itemID(prefixReasoning, index)
		dst = w.added(dst, index, appendReasoning(nil, id, "", ""))
		return w.done(dst, index, appendReasoning(nil, id, "", seal))
	})
}

// later queues the function show, which writes an item, and writes what can be written.
func (w *writer) later(dst wire.JSON, show func(wire.JSON) wire.JSON) wire.JSON {
	if w.ended {
		return dst
	}
	w.queue = append(w.queue, op{show: show})
	return w.advance(dst)
}

// AppendFinish implements [wire.Writer].
func (w *writer) AppendFinish(dst []byte, f *lathe.Finish, extra []lathe.Member) []byte {
	if w.closed {
		return dst
	}
	if w.ended {
		w.closed = true
		return wire.JSON(dst).Lit("data: [DONE]\n\n")
	}
	if f == nil {
		f = &lathe.Finish{}
	}
	s := w.complete(&dst, f)
	s.extra = extra
	return w.terminal(dst, "response."+s.status, s)
}

// complete writes the rest of an answer, and returns the state of the response object at its end.
func (w *writer) complete(dst *[]byte, f *lathe.Finish) *state {
	for i, call := range f.Message.Calls() {
		w.completeCall(w.call(i), &call)
	}
	for _, c := range w.calls {
		if !c.ended {
			c.ended, c.cut = true, true
		}
	}
	w.queue = slices.DeleteFunc(w.queue, func(o op) bool { // a call without an id or a name cannot be written
		return o.call != nil && o.call.item == nil && (o.call.id == "" || o.call.name == "")
	})
	s := &state{status: statusCompleted, usage: &f.Usage}
	switch f.Reason {
	case lathe.FinishLength:
		s.status, s.reason = statusIncomplete, reasonLength
	case lathe.FinishContentFilter:
		s.status, s.reason = statusIncomplete, reasonFilter
	}
	*dst = w.advance(w.AppendStart(*dst))
	for _, it := range w.open {
		it.cut = it.cut || s.reason != ""
	}
	*dst = w.closeItems(*dst)
	for _, c := range w.calls {
		if c.cut && c.item != nil && s.reason == "" {
			s.status, s.reason = statusIncomplete, reasonLength
		}
	}
	s.output = w.items()
	return s
}

// completeCall adds what no delta contained of a call.
func (w *writer) completeCall(c *outCall, call *lathe.ToolCall) {
	if c.ended && (c.item != nil || c.id != "" && c.name != "") || call.ID == "" && call.Name == "" && call.Arguments == "" {
		return
	}
	if c.item == nil {
		if c.id == "" {
			c.id = call.ID
		}
		if c.id == "" {
			c.id = "call_" + w.res.rest + "_" + strconv.Itoa(c.index)
		}
		c.name = call.Name
		if c.name == "" {
			c.name = "unknown"
		}
		c.args = append(c.args[:0], valid(call.Arguments)...)
	} else if more, ok := strings.CutPrefix(valid(call.Arguments), c.item.text()+string(c.args)); ok {
		c.args = append(c.args, more...)
	}
	c.ended, c.cut = true, call.Incomplete
}

// terminal appends the event that ends the stream, and [DONE].
func (w *writer) terminal(dst wire.JSON, typ string, s *state) wire.JSON {
	w.ended, w.closed = true, true
	return w.res.append(w.event(dst, typ).Key("response"), s).EndEvent().Lit("data: [DONE]\n\n")
}

// AppendError implements [wire.Writer]. It writes an `error` event with both forms of the error, and response.failed.
func (w *writer) AppendError(to []byte, e *wire.APIError) []byte {
	dst := wire.JSON(to)
	if w.ended {
		return w.AppendFinish(dst, nil, nil)
	}
	dst = w.AppendStart(dst)
	if !w.failed {
		dst = w.event(dst, "error")
		dst = dst.StrOrNull("code", e.Code).Str("message", e.Message).StrOrNull("param", e.Param).Obj("error").Str("type", errorType(e)).
			StrOrNull("code", e.Code).Str("message", e.Message).StrOrNull("param", e.Param).Lit("}").EndEvent()
	}
	w.queue, w.open = nil, nil
	return w.terminal(dst, "response.failed", &state{status: statusFailed, err: e, output: w.items()})
}
