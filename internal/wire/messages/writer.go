package messages

import (
	"bytes"
	"encoding/json"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// A writer writes the events of one answer. It implements [wire.Writer].
//
// One block is open at a time. Items that are received while a call is open, and calls whose id or name is not yet known, are in queue. Its
// first item is the block being written.
type writer struct {
	head     *wire.AnswerHead
	started  bool
	finished bool
	next     int // index of the next block
	queue    []*item
	calls    []*item // all calls, in the order of their first deltas
	sent     int     // number of calls begun on the wire
	stopped  bool    // Pass has passed a stop reason on
	broken   bool    // a call was truncated or left out
	refused  bool    // a refusal was written
	said     bool    // text other than a refusal was written
}

// An item is a block that is being written or is queued.
type item struct {
	kind  blockKind
	text  []byte // not yet sent: text, thinking or the input of a call
	raw   []byte // the block, for kind blockOpaque
	began bool   // its content_block_start was written
	ended bool   // complete: nothing more is added

	signature string
	signed    int // number of bytes of the signature that Pass has sent
	citations []json.RawMessage

	index    int // index of a call within its turn
	id, name string
	args     []byte // arguments that were sent
	cut      bool
	// unreadable is set at the end of a call whose arguments are not an object.
	unreadable bool
}

// NewWriter returns a Writer for one answer.
func (Codec) NewWriter(head *wire.AnswerHead) wire.Writer { return &writer{head: head} }

// messageID returns the id of a message on this wire.
func messageID(answer string) string { return "msg_" + answer }

func (w *writer) AppendStart(to []byte) []byte {
	dst := wire.JSON(to)
	if w.started || w.finished {
		return dst
	}
	w.started = true
	if w.head.Whole {
		return appendHead(dst, w.head).Lit(`,"content":[`)
	}
	dst = dst.Event("message_start").Lit(`,"message":`)
	dst = appendHead(dst, w.head)
	return dst.
		Lit(`,"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}}`).
		EndEvent()
}

// appendHead appends the members of a message that precede its content, without a trailing comma.
func appendHead(dst wire.JSON, h *wire.AnswerHead) wire.JSON {
	return dst.Lit("{").Str("id", messageID(h.ID)).Lit(`,"type":"message","role":"assistant"`).Str("model", h.Model)
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

// callDelta handles a delta of a call, and appends the events that can be written.
func (w *writer) callDelta(dst wire.JSON, d *lathe.Delta) wire.JSON {
	it := w.call(d.Index)
	switch d.Kind {
	case lathe.DeltaCallStart:
		if it.ended || it.began && it.id != d.ID { // a call of a later turn with the same index
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

// add adds text to the last item if it has the kind and is not complete, otherwise to a new item.
func (w *writer) add(dst wire.JSON, kind blockKind, text string) wire.JSON {
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

// endText ends the open text block if the text is from this wire or has citations.
func (w *writer) endText(dst wire.JSON, d *lathe.Delta) wire.JSON {
	n := len(w.queue)
	if n == 0 || w.queue[n-1].kind != blockText || w.queue[n-1].ended {
		return dst
	}
	it := w.queue[n-1]
	it.citations = wire.Citations(d, lathe.WireMessages, 0)
	it.ended = d.Name == string(lathe.WireMessages) || len(it.citations) > 0
	return w.advance(dst)
}

// addData adds the opaque data of reasoning. Data of another wire is ignored, because the client would return it to any model.
func (w *writer) addData(dst wire.JSON, field, data string) wire.JSON {
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

// push queues a complete block. It is compacted, because a line break would end the data of the event.
func (w *writer) push(raw []byte) {
	w.queue = append(w.queue, &item{kind: blockOpaque, raw: rawjson.AppendCompact(nil, raw), ended: true})
}

// call returns the last call with an index, and adds it if none exists.
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

// advance writes all queued items that can be written now.
func (w *writer) advance(dst wire.JSON) wire.JSON {
	for len(w.queue) > 0 {
		it := w.queue[0]
		if it.kind == blockCall && !it.began && (it.id == "" || it.name == "" || len(it.text) == 0 && !it.ended) {
			return dst
		}
		if it.kind == blockCall && len(it.text)+len(it.args) == 0 && it.cut { // a client would take it for a call without arguments
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

// beginBlock appends the event that opens the block, or in an answer that is not streamed the beginning of the block.
func (w *writer) beginBlock(dst wire.JSON, it *item) wire.JSON {
	it.began = true
	if it.kind == blockCall {
		w.sent++
	}
	if w.head.Whole {
		return openBlock(dst, it)
	}
	dst = dst.Event("content_block_start").Num("index", int64(w.next)).Lit(`,"content_block":`)
	w.next++
	switch it.kind {
	case blockThinking:
		dst = dst.Lit(`{"type":"thinking","thinking":"","signature":""}`)
	case blockCall:
		dst = w.appendCall(dst, it).Lit(`{}}`)
	case blockOpaque:
		dst = dst.Raw(it.raw)
	default:
		dst = dst.Lit(`{"type":"text","text":""}`)
	}
	return dst.EndEvent()
}

// openBlock appends the beginning of a block of an answer that is not streamed, up to its text. A call is appended when it ends.
func openBlock(dst wire.JSON, it *item) wire.JSON {
	switch it.kind {
	case blockThinking:
		dst = dst.Next().Lit(`{"type":"thinking","thinking":"`)
	case blockCall:
	case blockOpaque:
		dst = dst.Next().Raw(it.raw)
	default:
		dst = dst.Next().Lit(`{"type":"text","text":"`)
	}
	return dst
}

// appendCall appends the tool_use block of a call up to the value of its input.
func (w *writer) appendCall(dst wire.JSON, it *item) wire.JSON {
	return dst.Lit(`{"type":"tool_use"`).Str("id", CallID(it.id)).Str("name", w.head.Request.ClientName(it.name)).Key("input")
}

// delta appends an event with a piece of the open block or, in an answer that is not streamed, the piece.
func (w *writer) delta(dst wire.JSON, it *item, text string) wire.JSON {
	if it.kind == blockCall {
		it.args = append(it.args, text...)
	}
	if w.head.Whole {
		if it.kind == blockCall {
			return dst
		}
		from := len(dst)
		dst = dst.Quote(text)
		return dst[:from].Raw(dst[from+1 : len(dst)-1])
	}
	dst = w.blockEvent(dst, "content_block_delta").Lit(`,"delta":{"type":"`)
	switch it.kind {
	case blockThinking:
		dst = dst.Lit(`thinking_delta","thinking":`)
	case blockCall:
		dst = dst.Lit(`input_json_delta","partial_json":`)
	default:
		dst = dst.Lit(`text_delta","text":`)
	}
	return dst.Quote(text).Lit("}").EndEvent()
}

// blockEvent appends the beginning of an event about the open block.
func (w *writer) blockEvent(dst wire.JSON, typ string) wire.JSON {
	return dst.Event(typ).Num("index", int64(w.next-1))
}

// endBlock appends the events that end the open block.
func (w *writer) endBlock(dst wire.JSON, it *item) wire.JSON {
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
		dst = w.blockEvent(dst, "content_block_delta").Lit(`,"delta":{"type":"signature_delta","signature":`).Quote(it.signature[it.signed:]).Lit("}").
			EndEvent()
	}
	for _, c := range it.citations {
		dst = w.blockEvent(dst, "content_block_delta").Lit(`,"delta":{"type":"citations_delta","citation":`).Raw(c).Lit("}").EndEvent()
	}
	it.args = nil
	return w.blockEvent(dst, "content_block_stop").EndEvent()
}

// closeBlock appends the end of a block of an answer that is not streamed. A call whose arguments are not an object is left out, because
// clients would execute it with an empty input. The stop reason then shows that the answer is incomplete.
func (w *writer) closeBlock(dst wire.JSON, it *item) wire.JSON {
	switch it.kind {
	case blockThinking:
		return dst.Lit(`"`).Str("signature", it.signature).Lit("}")
	case blockCall:
		if it.unreadable {
			w.sent--
			return dst
		}
		return w.appendCall(dst.Next(), it).Raw(bytes.TrimSpace(it.args)).Lit("}")
	case blockOpaque:
		return dst
	}
	dst = dst.Lit(`"`)
	for i, c := range it.citations {
		if i == 0 {
			dst = dst.Arr(citations)
		}
		dst = dst.Next().Raw(c)
	}
	return dst.If(len(it.citations) > 0, "]").Lit("}")
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

// AppendApproval implements [wire.Writer]. It appends nothing, since the wire has no form for approvals.
func (w *writer) AppendApproval(dst []byte, _ *wire.Approval) []byte { return dst }

func (w *writer) AppendCarrier(dst []byte, seal string) []byte {
	if w.finished {
		return dst
	}
	w.push(appendRedacted(nil, seal))
	return w.advance(dst)
}

func appendRedacted(dst wire.JSON, data string) wire.JSON {
	return dst.Lit(`{"type":"redacted_thinking"`).Str("data", data).Lit("}")
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
