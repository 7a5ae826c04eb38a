package responses

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/openai"
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

// A writer writes the events of one answer: see [wire.Writer]. Items that are received while a call is open, and calls without an id or a
// name, are queued. The input of a custom tool is written when it is complete.
//
// Each delta is either written at once, if the queue is empty, or queued, and advance writes the queue as far as possible. Pass, which
// relays events of a server instead, brings the same state to where those events leave it, so that the writer can continue the answer.
type writer struct {
	itemWriter
	calls []*outCall // all calls, in the order of their first deltas
	queue []op       // what cannot be written yet, in order; a call stays until it is closed

	// The phases of the answer:
	started int  // number of startEvents that were sent
	failed  bool // an `error` event was passed on
	ended   bool // the event that ends the response was sent
	closed  bool // [DONE] was sent, after the response has ended
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
	item  func()
}

// An outCall is a call, as far as it was received.
type outCall struct {
	index    int
	id, name string
	args     []byte   // arguments not yet sent
	ended    bool     // all pieces were received
	cut      bool     // truncated, or its arguments are not a JSON object
	item     *outItem // nil: the item has not begun
	closed   bool     // completely sent
}

// canBegin reports whether the item of the call has begun, or can begin because its id and name are known.
func (c *outCall) canBegin() bool { return c.item != nil || c.id != "" && c.name != "" }

// NewWriter implements [wire.Served].
func (Codec) NewWriter(head *wire.AnswerHead) wire.Writer {
	w := &writer{itemWriter: itemWriter{res: newResource(head)}}
	if head.Request != nil {
		w.names, w.padded = head.Request.Names, head.Request.Obfuscate
	}
	return w
}

// An eventWriter writes events, which it numbers.
type eventWriter struct {
	padded bool
	seq    int
	out    wire.JSON
}

// event writes one event.
func (w *eventWriter) event(typ string, members ...any) {
	w.out = w.beginEvent(typ).Fields(members...).EndEvent()
}

// beginEvent returns the output with the beginning of an event.
func (w *eventWriter) beginEvent(typ string) wire.JSON {
	w.seq++
	return w.out.Event(typ).Num("sequence_number", int64(w.seq-1))
}

// beginItemEvent returns the output with the beginning of an event about an item.
func (w *eventWriter) beginItemEvent(typ string, it *outItem) wire.JSON {
	return w.beginEvent(typ).Str("item_id", it.id).Num("output_index", int64(it.index))
}

// delta writes an event with a piece of the open part of an item, and adds the piece to the item. index is the name of the member for the
// number of the part; "": none. members precede the piece. If events are padded, events with texts of up to 64 encoded bytes have the same
// size, those of up to 128 bytes the next size, and so on.
func (w *eventWriter) delta(it *outItem, typ, index, text string, members ...any) {
	dst := w.beginItemEvent(typ, it)
	if index != "" {
		dst = dst.Num(index, int64(it.parts))
	}
	dst = dst.Fields(members...).Key("delta")
	from := len(dst)
	dst = dst.Quote(text)
	it.encoded = append(it.encoded, dst[from+1:len(dst)-1]...)
	if w.padded {
		dst = dst.Str("obfuscation", wire.Padding(len(dst)-from))
	}
	w.out = dst.EndEvent()
}

// collect appends to dst the events that emit writes. If the answer is not streamed, it appends nothing, and AppendFinish appends the
// response object with which the stream would end.
func (w *writer) collect(dst []byte, emit func()) []byte {
	if w.res.answer.Whole {
		w.out = w.out[:0]
		emit()
		return dst
	}
	w.out = dst
	emit()
	return w.out
}

var startEvents = [...]string{"response.created", "response.in_progress"}

// AppendStart implements [wire.Writer].
func (w *writer) AppendStart(dst []byte) []byte { return w.collect(dst, w.start) }

func (w *writer) start() {
	for ; w.started < len(startEvents); w.started++ {
		w.event(startEvents[w.started], "response", w.res.append(nil, &state{status: statusInProgress}))
	}
}

// AppendKeepAlive implements [wire.Writer].
func (*writer) AppendKeepAlive(dst []byte) []byte { return wire.JSON(dst).Lit(": keep-alive\n\n") }

// AppendDelta implements [wire.Writer].
func (w *writer) AppendDelta(dst []byte, d lathe.Delta) []byte {
	if w.ended {
		return dst
	}
	return w.collect(dst, func() { w.add(d) })
}

func (w *writer) add(d lathe.Delta) {
	switch d.Kind {
	case lathe.DeltaText, lathe.DeltaCommentary, lathe.DeltaReasoning, lathe.DeltaRefusal, lathe.DeltaReasoningData:
		if d.Text == "" {
			return
		}
	case lathe.DeltaTextEnd, lathe.DeltaPart: // their text is not used
	case lathe.DeltaCallStart, lathe.DeltaCallArgs, lathe.DeltaCallEnd:
		w.callDelta(&d)
		return
	default: // other deltas are not written
		return
	}
	d.Text = valid(d.Text)
	if len(w.queue) == 0 {
		w.start()
		w.writeDelta(d)
		return
	}
	w.queue = append(w.queue, op{delta: d})
	w.advance()
}

// callDelta handles a delta of a call, and appends the events that can be written.
func (w *writer) callDelta(d *lathe.Delta) {
	c := w.call(d.Index)
	switch d.Kind {
	case lathe.DeltaCallStart:
		if c.item == nil {
			c.id, c.name = d.ID, d.Name
		}
	case lathe.DeltaCallArgs:
		if c.ended || d.Text == "" {
			break
		}
		isOpen := c.item != nil && len(w.queue) > 0 && w.queue[0].call == c
		if isOpen && c.item.kind == itemCall && len(c.args) == 0 {
			w.writeArguments(c.item, d.Text)
			return
		}
		c.args = append(c.args, valid(d.Text)...)
	default:
		if c.item == nil && c.id == "" {
			c.id = d.ID
		}
		c.ended, c.cut = true, c.cut || d.Incomplete
	}
	w.advance()
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
	for _, c := range slices.Backward(w.calls) {
		if c.index == index {
			return c
		}
	}
	c := &outCall{index: index}
	w.calls = append(w.calls, c)
	w.queue = append(w.queue, op{call: c})
	return c
}

// advance writes all elements of the queue that can be written now.
func (w *writer) advance() {
	for len(w.queue) > 0 {
		o := &w.queue[0]
		switch {
		case o.call != nil:
			w.sendCall(o.call)
			if !o.call.closed {
				return
			}
		case o.item != nil:
			w.start()
			w.closeItems()
			o.item()
		default:
			w.start()
			w.writeDelta(o.delta)
		}
		w.queue[0] = op{}
		w.queue = w.queue[1:]
	}
}

// sendCall writes what was received of a call.
func (w *writer) sendCall(c *outCall) {
	if !c.canBegin() {
		return
	}
	if c.item == nil {
		w.start()
		w.closeItems()
		w.beginCall(c)
	}
	it := c.item
	if it.kind == itemCall && len(c.args) > 0 {
		w.writeArguments(it, string(c.args))
		c.args = c.args[:0]
	}
	if !c.ended {
		return
	}
	switch {
	case it.kind == itemCustom: // Pass may have sent the beginning of its input
		if more, ok := strings.CutPrefix(customInput(string(c.args)), it.text()); ok && more != "" {
			w.writeArguments(it, more)
		}
	case !c.cut:
		if len(it.encoded) == 0 {
			w.writeArguments(it, "{}")
		}
		_, c.cut = wire.ReadArguments([]byte(it.text()))
	}
	it.cut, c.closed = c.cut, true
	w.closeItems()
}

// AppendServerCall implements [wire.Writer]. It writes a complete mcp_call item.
func (w *writer) AppendServerCall(dst []byte, c *wire.ServerCall) []byte {
	call := *c
	return w.enqueue(dst, func() { w.serverCall(&call) })
}

// AppendApproval implements [wire.Writer]. It writes an mcp_approval_request item.
func (w *writer) AppendApproval(dst []byte, a *wire.Approval) []byte {
	approval := *a
	return w.enqueue(dst, func() {
		index := w.nextIndex()
		item := wire.ObjectOf("id", prefixApproval+approval.ID, "type", "mcp_approval_request", "server_label", cmp.Or(approval.Server, defaultServer),
			"name", approval.Name, "arguments", orEmptyObject(approval.Arguments))
		w.added(index, item)
		w.done(index, item)
	})
}

// AppendCarrier implements [wire.Writer]. It writes a reasoning item without a summary.
func (w *writer) AppendCarrier(dst []byte, seal string) []byte {
	return w.enqueue(dst, func() {
		index := w.nextIndex()
		id := w.res.itemID(prefixReasoning, index)
		w.added(index, appendReasoning(nil, id, "", ""))
		w.done(index, appendReasoning(nil, id, "", seal))
	})
}

// enqueue queues the function item, which writes an item, and writes what can be written.
func (w *writer) enqueue(dst []byte, item func()) []byte {
	if w.ended {
		return dst
	}
	w.queue = append(w.queue, op{item: item})
	return w.collect(dst, w.advance)
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
	var s *state
	dst = w.collect(dst, func() { s = w.complete(f) })
	s.extra = extra
	if w.res.answer.Whole {
		return w.res.append(dst, s)
	}
	return w.terminal(dst, "response."+s.status, s)
}

// complete writes the rest of an answer, and returns the state of the response object at its end. Calls are completed before the queue is
// written, since a call that is not closed blocks it. Whether the arguments of a call are truncated is known when its item was written.
func (w *writer) complete(f *lathe.Finish) *state {
	for i, call := range f.Message.Calls() {
		w.completeCall(w.call(i), &call)
	}
	for _, c := range w.calls { // those that the message does not have
		c.ended, c.cut = true, c.cut || !c.ended
	}
	w.queue = slices.DeleteFunc(w.queue, func(o op) bool { return o.call != nil && !o.call.canBegin() })
	s := &state{status: statusCompleted, usage: &f.Usage}
	switch f.Reason {
	case lathe.FinishLength:
		s.status, s.reason = statusIncomplete, reasonLength
	case lathe.FinishContentFilter:
		s.status, s.reason = statusIncomplete, reasonFilter
	}
	w.start()
	w.advance()
	for _, it := range w.open { // what advance has not closed ends with the answer
		it.cut = it.cut || s.reason != ""
	}
	w.closeItems()
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
	isComplete := c.ended && c.canBegin()
	isEmpty := call.ID == "" && call.Name == "" && call.Arguments == ""
	if isComplete || isEmpty {
		return
	}
	if c.item == nil {
		c.id = cmp.Or(c.id, call.ID, "call_"+w.res.rest+"_"+strconv.Itoa(c.index))
		c.name = cmp.Or(call.Name, "unknown")
		c.args = append(c.args[:0], valid(call.Arguments)...)
	} else if more, ok := strings.CutPrefix(valid(call.Arguments), c.item.text()+string(c.args)); ok {
		c.args = append(c.args, more...)
	}
	c.ended, c.cut = true, call.Incomplete
}

// terminal appends the event that ends the stream, and [DONE].
func (w *writer) terminal(dst []byte, typ string, s *state) []byte {
	w.ended, w.closed = true, true
	return w.collect(dst, func() {
		w.event(typ, "response", w.res.append(nil, s))
		w.out = w.out.Lit("data: [DONE]\n\n")
	})
}

// AppendError implements [wire.Writer]. It writes an `error` event with both forms of the error, and response.failed.
func (w *writer) AppendError(dst []byte, e *wire.APIError) []byte {
	if w.ended {
		return w.AppendFinish(dst, nil, nil)
	}
	dst = w.collect(dst, func() {
		w.start()
		if !w.failed {
			members := []any{"code", openai.OrNull(e.Code), "message", e.Message, "param", openai.OrNull(e.Param)}
			w.event("error", append(members, "error", wire.ObjectOf(append([]any{"type", openai.ErrorType(e)}, members...)...))...)
		}
	})
	w.queue, w.open = nil, nil
	return w.terminal(dst, "response.failed", &state{status: statusFailed, err: e, output: w.items()})
}
