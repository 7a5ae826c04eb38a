package messages

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// A writer writes the events of one answer. It implements [wire.Writer].
//
// One block is open at a time. Items that are received while a call is open, and calls whose id or name is not yet known, are in queue. Its
// first item is the block being written.
type writer struct {
	wire.PlainWriter
	blockWriter
	finished bool
	queue    []*item
	calls    []*item // all calls, in the order of their first deltas
	stopped  bool    // Pass has passed a stop reason on
	refused  bool    // a refusal was written
	said     bool    // text other than a refusal was written
}

// A blockWriter writes the beginning of an answer, and its blocks one after the other.
type blockWriter struct {
	head      *wire.AnswerHead
	started   bool
	next      int  // index of the next block
	callsSent int  // number of calls begun on the wire
	broken    bool // a call was truncated or left out
	out       wire.JSON
}

// An item is a block that is being written or is queued.
type item struct {
	kind   blockKind
	unsent []byte // received but not written: text, thinking or the input of a call
	sent   []byte // what was written of them; recorded for calls, and for all kinds if the answer is not streamed
	began  bool   // its content_block_start was written
	ended  bool   // complete: nothing more is added

	raw       []byte            // of blockOpaque: the block
	citations []json.RawMessage // of blockText
	signature string            // of blockThinking
	signed    int               // number of bytes of the signature that Pass has sent

	// Only for calls:
	index      int // index of the call within its turn
	id, name   string
	truncated  bool // the arguments are incomplete
	unreadable bool // the arguments have ended and are not an object
}

// identified reports whether the id and the name of a call are known.
func (it *item) identified() bool { return it.id != "" && it.name != "" }

// NewWriter returns a Writer for one answer.
func (Codec) NewWriter(head *wire.AnswerHead) wire.Writer {
	return &writer{blockWriter: blockWriter{head: head}}
}

func (w *writer) AppendStart(dst []byte) []byte { return w.write(dst, w.start) }

// write sets out to dst, calls add, which appends to out, and returns out. If the answer has ended, it returns dst.
func (w *writer) write(dst []byte, add func()) []byte {
	if w.finished {
		return dst
	}
	w.out = dst
	add()
	return w.out
}

func (w *blockWriter) start() {
	if w.started {
		return
	}
	w.started = true
	if w.head.Whole {
		w.out = appendHead(w.out, w.head).Lit(`,"content":[`)
		return
	}
	w.event("message_start", "message", appendHead(nil, w.head).
		Lit(`,"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}}`))
}

func (w *blockWriter) event(typ string, members ...any) {
	w.out = w.out.Event(typ).Fields(members...).EndEvent()
}

// appendHead appends the members of a message that precede its content, without a trailing comma.
func appendHead(dst wire.JSON, h *wire.AnswerHead) wire.JSON {
	return dst.Lit("{").Fields("id", "msg_"+h.ID, "type", "message", "role", "assistant", "model", h.Model)
}

func (w *writer) AppendDelta(dst []byte, d lathe.Delta) []byte {
	return w.write(dst, func() { w.take(&d) })
}

func (w *writer) take(d *lathe.Delta) {
	switch d.Kind {
	case lathe.DeltaText, lathe.DeltaCommentary:
		w.said = w.said || d.Text != ""
		w.add(blockText, d.Text)
	case lathe.DeltaRefusal:
		w.refused = true
		w.add(blockText, d.Text)
	case lathe.DeltaTextEnd:
		w.endText(d)
	case lathe.DeltaPart:
		if o, ok := d.Part.(lathe.Opaque); ok && d.Name == string(lathe.WireMessages) && rawjson.Kind(o.JSON) == '{' {
			w.push(o.JSON)
			w.advance()
		}
	case lathe.DeltaReasoning:
		w.add(blockThinking, d.Text)
	case lathe.DeltaReasoningData:
		w.addData(d.Name, d.Text)
	case lathe.DeltaCallStart, lathe.DeltaCallArgs, lathe.DeltaCallEnd:
		w.callDelta(d)
	}
}

// callDelta handles a delta of a call, and appends the events that can be written.
func (w *writer) callDelta(d *lathe.Delta) {
	it := w.call(d.Index)
	switch d.Kind {
	case lathe.DeltaCallStart:
		if it.ended || it.began && it.id != d.ID { // a call of a later turn with the same index
			it = w.newCall(d.Index)
		}
		it.id, it.name = d.ID, d.Name
	case lathe.DeltaCallArgs:
		isOpen := it.began && !it.ended && len(w.queue) > 0 && w.queue[0] == it
		if isOpen && len(it.unsent) == 0 {
			if d.Text != "" {
				w.delta(it, d.Text)
			}
			return
		}
		it.unsent = append(it.unsent, d.Text...)
	default:
		it.ended, it.truncated = true, d.Incomplete
		if it.id == "" {
			it.id = d.ID
		}
	}
	w.advance()
}

// add adds text to the last item if it has the kind and is not complete, otherwise to a new item.
func (w *writer) add(kind blockKind, text string) {
	if text == "" {
		return
	}
	it := w.openItem(kind)
	if len(w.queue) == 1 && it.began && len(it.unsent) == 0 {
		w.delta(it, text)
		return
	}
	it.unsent = append(it.unsent, text...)
	w.advance()
}

// lastOpen returns the last item if it has the kind and is not complete, otherwise nil.
func (w *writer) lastOpen(kind blockKind) *item {
	if n := len(w.queue); n > 0 && w.queue[n-1].kind == kind && !w.queue[n-1].ended {
		return w.queue[n-1]
	}
	return nil
}

// openItem returns the last item if it has the kind and is not complete, otherwise a new item.
func (w *writer) openItem(kind blockKind) *item {
	it := w.lastOpen(kind)
	if it == nil {
		it = &item{kind: kind}
		w.queue = append(w.queue, it)
	}
	return it
}

// endText ends the open text block if the text is from this wire or has citations.
func (w *writer) endText(d *lathe.Delta) {
	it := w.lastOpen(blockText)
	if it == nil {
		return
	}
	it.citations = wire.Citations(d, lathe.WireMessages, 0)
	it.ended = d.Name == string(lathe.WireMessages) || len(it.citations) > 0
	w.advance()
}

// addData adds the opaque data of reasoning. Data of another wire is ignored, because the client would return it to any model.
func (w *writer) addData(field, data string) {
	switch field {
	case fieldThinking:
		it := w.openItem(blockThinking)
		it.signature, it.ended = data, true
	case fieldRedacted:
		w.push(wire.ObjectOf("type", "redacted_thinking", "data", data))
	default:
		return
	}
	w.advance()
}

// push queues a complete block. It is compacted, because a line break would end the data of the event.
func (w *writer) push(raw []byte) {
	w.queue = append(w.queue, &item{kind: blockOpaque, raw: rawjson.AppendCompact(nil, raw), ended: true})
}

// call returns the last call with an index, and adds it if none exists.
func (w *writer) call(index int) *item {
	for _, it := range slices.Backward(w.calls) {
		if it.index == index {
			return it
		}
	}
	return w.newCall(index)
}

func (w *writer) newCall(index int) *item {
	it := &item{kind: blockCall, index: index}
	w.calls, w.queue = append(w.calls, it), append(w.queue, it)
	return it
}

// advance writes all queued items that can be written now.
func (w *writer) advance() {
	for len(w.queue) > 0 {
		it := w.queue[0]
		if it.kind == blockCall {
			hasInput := len(it.unsent)+len(it.sent) > 0
			canBegin := it.identified() && (len(it.unsent) > 0 || it.ended)
			if !it.began && !canBegin {
				return
			}
			if it.truncated && !hasInput { // a client would take it for a call without arguments
				w.broken, w.queue = true, w.queue[1:]
				continue
			}
		}
		if !it.began {
			w.start()
			w.beginBlock(it)
		}
		if len(it.unsent) > 0 {
			w.delta(it, string(it.unsent))
			it.unsent = nil
		}
		if !it.ended && (it.kind == blockCall || len(w.queue) == 1) {
			return // more of it follows
		}
		w.endBlock(it)
		w.queue = w.queue[1:]
	}
}

// beginBlock writes the beginning of a block. The blocks of an answer that is not streamed are written when they end.
func (w *blockWriter) beginBlock(it *item) {
	it.began = true
	if it.kind == blockCall {
		w.callsSent++
	}
	if w.head.Whole {
		return
	}
	var block wire.JSON
	switch it.kind {
	case blockThinking:
		block = wire.ObjectOf("type", "thinking", "thinking", "", "signature", "")
	case blockCall:
		block = w.callBlock(it, wire.JSON("{}"))
	case blockOpaque:
		block = it.raw
	default:
		block = wire.ObjectOf("type", "text", "text", "")
	}
	w.next++
	w.blockEvent("content_block_start", "content_block", block)
}

func (w *blockWriter) callBlock(it *item, input wire.JSON) wire.JSON {
	return wire.ObjectOf("type", "tool_use", "id", CallID(it.id), "name", w.head.Request.ClientName(it.name), "input", input)
}

// delta writes a piece of the open block.
func (w *blockWriter) delta(it *item, text string) {
	if it.kind == blockCall || w.head.Whole {
		it.sent = append(it.sent, text...)
	}
	if w.head.Whole {
		return
	}
	typ, key := "text_delta", "text"
	switch it.kind {
	case blockThinking:
		typ, key = "thinking_delta", "thinking"
	case blockCall:
		typ, key = "input_json_delta", "partial_json"
	}
	w.blockEvent("content_block_delta", "delta", wire.ObjectOf("type", typ, key, text))
}

// blockEvent writes an event about the open block.
func (w *blockWriter) blockEvent(typ string, members ...any) {
	w.out = w.out.Event(typ).Num("index", int64(w.next-1)).Fields(members...).EndEvent()
}

// endBlock writes the end of the open block.
func (w *blockWriter) endBlock(it *item) {
	if it.kind == blockCall {
		if len(it.sent) == 0 && !it.truncated {
			w.delta(it, "{}")
		}
		object, cut := wire.ReadArguments(it.sent)
		it.unreadable = !object
		w.broken = w.broken || cut || it.unreadable && w.head.Whole
	}
	if w.head.Whole {
		w.wholeBlock(it)
		return
	}
	if it.kind == blockThinking && len(it.signature) > it.signed {
		w.blockEvent("content_block_delta", "delta", wire.ObjectOf("type", "signature_delta", "signature", it.signature[it.signed:]))
	}
	for _, c := range it.citations {
		w.blockEvent("content_block_delta", "delta", wire.ObjectOf("type", "citations_delta", "citation", wire.JSON(c)))
	}
	it.sent = nil
	w.blockEvent("content_block_stop")
}

// wholeBlock writes a block of an answer that is not streamed. A call whose arguments are not an object is left out, because
// clients would execute it with an empty input. The stop reason then shows that the answer is incomplete.
func (w *blockWriter) wholeBlock(it *item) {
	var block wire.JSON
	switch it.kind {
	case blockThinking:
		block = wire.ObjectOf("type", "thinking", "thinking", string(it.sent), "signature", it.signature)
	case blockCall:
		if it.unreadable {
			w.callsSent--
			return
		}
		block = w.callBlock(it, bytes.TrimSpace(it.sent))
	case blockOpaque:
		block = it.raw
	default:
		var list wire.JSON
		if len(it.citations) > 0 {
			list = wire.ArrayOf(it.citations...)
		}
		block = wire.ObjectOf("type", "text", "text", string(it.sent), citations, list)
	}
	w.out = w.out.Next().Raw(block)
}

func (w *writer) AppendServerCall(dst []byte, c *wire.ServerCall) []byte {
	return w.write(dst, func() {
		call, result := appendServerCall(c)
		w.push(call)
		w.push(result)
		w.advance()
	})
}

func (w *writer) AppendCarrier(dst []byte, seal string) []byte {
	return w.write(dst, func() { w.addData(fieldRedacted, seal) })
}

func (w *writer) AppendKeepAlive(to []byte) []byte {
	dst := wire.JSON(to)
	switch {
	case w.finished:
		return dst
	case !w.started: // some clients require message_start before any other event
		return dst.Lit(": keep-alive\n\n")
	}
	return dst.Event("ping").EndEvent()
}

func (w *writer) AppendError(dst []byte, e *wire.APIError) []byte {
	if w.finished {
		return dst
	}
	w.finished = true
	dst = wire.JSON(dst).Lit("event: error\ndata: ")
	return wire.JSON(Codec{}.AppendError(dst, e)).Lit("\n\n")
}
