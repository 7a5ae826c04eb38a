package messages

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// A writer writes the events of one answer. It implements [wire.Writer].
//
// One block is open at a time. Items that arrive while a call is open, and calls whose id or name is not known yet, are in queue,
// whose first item is the one that is being written.
type writer struct {
	head     *wire.AnswerHead
	started  bool
	finished bool
	next     int // index of the next block
	queue    []*item
	calls    []*item // all calls, in the order in which they were announced
	sent     int     // calls begun on the wire
	stopped  bool    // the stop reason was
	broken   bool    // a call was cut off, or left out
	refused  bool    // a refusal was written
	said     bool    // another text was
}

// An item is a block that is being written or is queued.
type item struct {
	kind  blockKind
	text  []byte // not sent yet: of text, thinking or the input of a call
	raw   []byte // of kind blockOpaque: the block
	began bool   // on the wire
	ended bool   // nothing more is added to it

	signature string
	signed    int // bytes of the signature that were sent by other means
	citations []json.RawMessage

	index    int // of a call within its turn
	id, name string
	args     []byte // that were sent
	cut      bool
	// unreadable is set at the end of a call whose arguments are not an object.
	unreadable bool
}

// NewWriter returns a Writer for one answer.
func (Codec) NewWriter(head *wire.AnswerHead) wire.Writer { return &writer{head: head} }

// messageID returns the id of a message from the id of its answer.
func messageID(answer string) string { return "msg_" + answer }

// begin appends the frame of an event up to its data's members after type.
func begin(dst []byte, typ string) []byte {
	dst = append(append(dst, "event: "...), typ...)
	dst = append(append(dst, "\ndata: {\"type\":\""...), typ...)
	return append(dst, '"')
}

func end(dst []byte) []byte { return append(dst, "}\n\n"...) }

func (w *writer) AppendStart(dst []byte) []byte {
	if w.started || w.finished {
		return dst
	}
	w.started = true
	if w.head.Whole {
		return append(appendHead(dst, w.head), `,"content":[`...)
	}
	dst = append(begin(dst, "message_start"), `,"message":`...)
	dst = appendHead(dst, w.head)
	dst = append(dst, `,"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}}`...)
	return end(dst)
}

// appendHead appends the members of a message that are known before its content, up to the comma.
func appendHead(dst []byte, h *wire.AnswerHead) []byte {
	dst = wire.AppendText(append(dst, '{'), "id", messageID(h.ID))
	dst = append(dst, `,"type":"message","role":"assistant"`...)
	return wire.AppendText(dst, "model", h.Model)
}

func (w *writer) AppendDelta(dst []byte, d lathe.Delta) []byte {
	if w.finished {
		return dst
	}
	switch d.Kind {
	case lathe.DeltaText, lathe.DeltaCommentary:
		w.said = w.said || d.Text != ""
		return w.add(dst, blockText, d.Text)
	case lathe.DeltaRefusal:
		w.refused = true
		return w.add(dst, blockText, d.Text)
	case lathe.DeltaTextEnd:
		return w.endText(dst, &d)
	case lathe.DeltaPart:
		if o, ok := d.Part.(lathe.Opaque); ok && d.Name == string(lathe.WireMessages) && wire.Kind(o.JSON) == '{' {
			w.push(o.JSON)
			return w.advance(dst)
		}
	case lathe.DeltaReasoning:
		return w.add(dst, blockThinking, d.Text)
	case lathe.DeltaReasoningData:
		return w.addData(dst, d.Name, d.Text)
	case lathe.DeltaCallStart, lathe.DeltaCallArgs, lathe.DeltaCallEnd:
		return w.callDelta(dst, &d)
	}
	return dst
}

// callDelta appends the events for a piece of a call.
func (w *writer) callDelta(dst []byte, d *lathe.Delta) []byte {
	it := w.call(d.Index)
	switch d.Kind {
	case lathe.DeltaCallStart:
		if it.ended || it.began && it.id != d.ID { // of an earlier turn
			it = w.newCall(d.Index)
		}
		it.id, it.name = d.ID, d.Name
	case lathe.DeltaCallArgs:
		if it.began && !it.ended && len(it.text) == 0 && w.queue[0] == it {
			if d.Text == "" {
				return dst
			}
			return w.delta(dst, it, d.Text)
		}
		it.text = append(it.text, d.Text...)
	default:
		it.ended, it.cut = true, d.Incomplete
		if it.id == "" {
			it.id = d.ID
		}
	}
	return w.advance(dst)
}

// add appends text to the last item if it is of the kind, else to a new one.
func (w *writer) add(dst []byte, kind blockKind, text string) []byte {
	if text == "" {
		return dst
	}
	n := len(w.queue)
	if n == 0 || w.queue[n-1].kind != kind || w.queue[n-1].ended {
		w.queue = append(w.queue, &item{kind: kind})
		n++
	}
	it := w.queue[n-1]
	if n == 1 && it.began && len(it.text) == 0 {
		return w.delta(dst, it, text)
	}
	it.text = append(it.text, text...)
	return w.advance(dst)
}

// endText ends the open text block if its wire is that of the writer, or if it has citations.
func (w *writer) endText(dst []byte, d *lathe.Delta) []byte {
	n := len(w.queue)
	if n == 0 || w.queue[n-1].kind != blockText || w.queue[n-1].ended {
		return dst
	}
	it := w.queue[n-1]
	it.citations = wire.Citations(d, lathe.WireMessages, 0)
	it.ended = d.Name == string(lathe.WireMessages) || len(it.citations) > 0
	return w.advance(dst)
}

// addData appends the opaque data of reasoning. It ignores the data of another wire, which the client would send back to any
// model.
func (w *writer) addData(dst []byte, field, data string) []byte {
	switch field {
	case fieldThinking:
		n := len(w.queue)
		if n == 0 || w.queue[n-1].kind != blockThinking || w.queue[n-1].ended {
			w.queue = append(w.queue, &item{kind: blockThinking})
			n++
		}
		w.queue[n-1].signature, w.queue[n-1].ended = data, true
	case fieldRedacted:
		w.push(appendRedacted(nil, data))
	default:
		return dst
	}
	return w.advance(dst)
}

// push queues a block that is written at once. Its JSON must not contain line ends, which would end the data of the event.
func (w *writer) push(raw []byte) {
	w.queue = append(w.queue, &item{kind: blockOpaque, raw: rawjson.AppendCompact(nil, raw), ended: true})
}

// call returns the call with an index in the current turn, and adds it if it does not exist.
func (w *writer) call(index int) *item {
	for i := len(w.calls) - 1; i >= 0; i-- {
		if w.calls[i].index == index {
			return w.calls[i]
		}
	}
	return w.newCall(index)
}

func (w *writer) newCall(index int) *item {
	it := &item{kind: blockCall, index: index}
	w.calls, w.queue = append(w.calls, it), append(w.queue, it)
	return it
}

// advance writes the queued items that can be written now.
func (w *writer) advance(dst []byte) []byte {
	for len(w.queue) > 0 {
		it := w.queue[0]
		if it.kind == blockCall && !it.began && (it.id == "" || it.name == "" || len(it.text) == 0 && !it.ended) {
			return dst
		}
		if it.kind == blockCall && len(it.text)+len(it.args) == 0 && it.cut { // clients would take it for a call without arguments
			w.broken, w.queue = true, w.queue[1:]
			continue
		}
		if !it.began {
			dst = w.beginBlock(w.AppendStart(dst), it)
		}
		if len(it.text) > 0 {
			dst = w.delta(dst, it, string(it.text))
			it.text = nil
		}
		more := !it.ended && (it.kind == blockCall || len(w.queue) == 1)
		if more {
			return dst
		}
		dst = w.endBlock(dst, it)
		w.queue = w.queue[1:]
	}
	return dst
}

// beginBlock appends the event that opens the block.
func (w *writer) beginBlock(dst []byte, it *item) []byte {
	it.began = true
	if it.kind == blockCall {
		w.sent++
	}
	if w.head.Whole {
		return openBlock(dst, it)
	}
	dst = append(appendInt(begin(dst, "content_block_start"), "index", int64(w.next)), `,"content_block":`...)
	w.next++
	switch it.kind {
	case blockThinking:
		dst = append(dst, `{"type":"thinking","thinking":"","signature":""}`...)
	case blockCall:
		dst = append(w.appendCall(dst, it), `{}}`...)
	case blockOpaque:
		dst = append(dst, it.raw...)
	default:
		dst = append(dst, `{"type":"text","text":""}`...)
	}
	return end(dst)
}

// openBlock appends the beginning of a block of a whole answer, up to its text. A call is appended at its end.
func openBlock(dst []byte, it *item) []byte {
	switch it.kind {
	case blockThinking:
		dst = append(appendComma(dst), `{"type":"thinking","thinking":"`...)
	case blockCall:
	case blockOpaque:
		dst = append(appendComma(dst), it.raw...)
	default:
		dst = append(appendComma(dst), `{"type":"text","text":"`...)
	}
	return dst
}

// appendCall appends a call up to its input.
func (w *writer) appendCall(dst []byte, it *item) []byte {
	dst = wire.AppendText(append(dst, `{"type":"tool_use"`...), "id", CallID(it.id))
	return wire.AppendKey(wire.AppendText(dst, "name", w.head.Request.ClientName(it.name)), "input")
}

// delta appends an event with a piece of the open block.
func (w *writer) delta(dst []byte, it *item, text string) []byte {
	if it.kind == blockCall {
		it.args = append(it.args, text...)
	}
	if w.head.Whole {
		if it.kind == blockCall {
			return dst
		}
		from := len(dst)
		dst = rawjson.AppendQuote(dst, text)
		return append(dst[:from], dst[from+1:len(dst)-1]...)
	}
	dst = append(w.blockEvent(dst, "content_block_delta"), `,"delta":{"type":"`...)
	switch it.kind {
	case blockThinking:
		dst = append(dst, `thinking_delta","thinking":`...)
	case blockCall:
		dst = append(dst, `input_json_delta","partial_json":`...)
	default:
		dst = append(dst, `text_delta","text":`...)
	}
	return end(append(rawjson.AppendQuote(dst, text), '}'))
}

// blockEvent appends the beginning of an event of the open block.
func (w *writer) blockEvent(dst []byte, typ string) []byte {
	return strconv.AppendInt(append(begin(dst, typ), `,"index":`...), int64(w.next-1), 10)
}

// endBlock appends the events that close the open block.
func (w *writer) endBlock(dst []byte, it *item) []byte {
	if it.kind == blockCall {
		if len(it.args) == 0 && !it.cut {
			dst = w.delta(dst, it, "{}")
		}
		object, cut := wire.ReadArguments(it.args)
		it.unreadable = !object
		w.broken = w.broken || cut || it.unreadable && w.head.Whole
	}
	if w.head.Whole {
		return w.closeBlock(dst, it)
	}
	if it.kind == blockThinking && len(it.signature) > it.signed {
		dst = append(w.blockEvent(dst, "content_block_delta"), `,"delta":{"type":"signature_delta","signature":`...)
		dst = end(append(rawjson.AppendQuote(dst, it.signature[it.signed:]), '}'))
	}
	for _, c := range it.citations {
		dst = append(w.blockEvent(dst, "content_block_delta"), `,"delta":{"type":"citations_delta","citation":`...)
		dst = end(append(append(dst, c...), '}'))
	}
	it.args = nil
	return end(w.blockEvent(dst, "content_block_stop"))
}

// closeBlock appends the end of a block of a whole answer. A call whose arguments are not an object has no form there: with an empty
// input the client would execute it. The stop reason says that the answer is not complete.
func (w *writer) closeBlock(dst []byte, it *item) []byte {
	switch it.kind {
	case blockThinking:
		return append(wire.AppendText(append(dst, '"'), "signature", it.signature), '}')
	case blockCall:
		if it.unreadable {
			w.sent--
			return dst
		}
		return append(append(w.appendCall(appendComma(dst), it), bytes.TrimSpace(it.args)...), '}')
	case blockOpaque:
		return dst
	}
	dst = append(dst, '"')
	for i, c := range it.citations {
		if i == 0 {
			dst = append(wire.AppendKey(dst, citations), '[')
		}
		dst = append(appendComma(dst), c...)
	}
	if len(it.citations) > 0 {
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

func (w *writer) AppendServerCall(dst []byte, c *wire.ServerCall) []byte {
	if w.finished {
		return dst
	}
	call, result := appendServerCall(c)
	w.push(call)
	w.push(result)
	return w.advance(dst)
}

// AppendApproval appends nothing: the wire has no form for it.
func (w *writer) AppendApproval(dst []byte, _ *wire.Approval) []byte { return dst }

func (w *writer) AppendCarrier(dst []byte, seal string) []byte {
	if w.finished {
		return dst
	}
	w.push(appendRedacted(nil, seal))
	return w.advance(dst)
}

func appendRedacted(dst []byte, data string) []byte {
	return append(wire.AppendText(append(dst, `{"type":"redacted_thinking"`...), "data", data), '}')
}

func (w *writer) AppendKeepAlive(dst []byte) []byte {
	switch {
	case w.finished:
		return dst
	case !w.started: // some clients demand message_start before all other events
		return append(dst, ": keep-alive\n\n"...)
	}
	return end(begin(dst, "ping"))
}

func (w *writer) AppendError(dst []byte, e *wire.APIError) []byte {
	if w.finished {
		return dst
	}
	w.finished = true
	dst = append(dst, "event: error\ndata: "...)
	return append(Codec{}.AppendError(dst, e), "\n\n"...)
}
