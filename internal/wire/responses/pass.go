package responses

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// Pass implements [wire.Writer]. It records the items of the answer from the relayed events, and the calls from the deltas of these events.
// Later events have the id and the model of the relayed answer. If a server ends its stream with a response whose output is empty, Pass
// fills the output with the items of earlier events, for clients that read only the last event.
func (w *writer) Pass(raw *lathe.Raw) []byte {
	if w.closed {
		return raw.Bytes
	}
	out := raw.Bytes
	for line := range bytes.Lines(raw.Bytes) {
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			out = w.passData(out, bytes.TrimSpace(data))
		}
	}
	for _, d := range raw.Deltas {
		w.passDelta(d)
	}
	w.drain()
	return out
}

// passData records the event with this data, which is part of out, and returns out, with the output filled in if the event lacks it.
func (w *writer) passData(out, data []byte) []byte {
	var e streamEvent
	switch {
	case string(data) == endOfStream:
		w.ended, w.closed = true, true
	case e.read(data):
		w.passEvent(&e, data)
		if w.ended && len(w.output) > 0 && lacksOutput(&e) {
			return bytes.Replace(out, data, filled(data, w.items()), 1)
		}
	}
	return out
}

// lacksOutput reports whether an event contains a response that did not fail and has no output.
func lacksOutput(e *streamEvent) bool {
	output := get(e.response, "output")
	return e.response != nil && string(e.typ) != `"response.failed"` && (output == nil || wire.EmptyArray(output))
}

// filled returns the data of an event with items as the output of its response.
func filled(data []byte, items []outDone) []byte {
	output := wire.JSON("[")
	for _, it := range items {
		output = output.Next().Raw(it.json)
	}
	var response, event wire.Changes
	response.Set("output", output.Lit("]"))
	event.Set("response", response.Append(nil, get(data, "response"), nil))
	return event.Append(nil, data, nil)
}

// passDelta records a delta of a call in relayed events, after passEvent has recorded its item.
func (w *writer) passDelta(d lathe.Delta) {
	switch d.Kind {
	case lathe.DeltaCallStart:
		if w.lastCall == nil {
			return
		}
		c := w.call(d.Index)
		c.id, c.name, c.item = d.ID, d.Name, w.lastCall
		w.closePassed(c)
	case lathe.DeltaCallArgs:
		if c := w.call(d.Index); c.item != nil && c.item.kind == itemCustom { // sent as text; sendCall compares the text with args
			c.args = append(c.args, d.Text...)
		}
	case lathe.DeltaCallEnd:
		w.closePassed(w.call(d.Index))
	default: // passEvent has recorded it
	}
}

// closePassed marks a call as completely sent if relayed events have begun and ended its item.
func (w *itemWriter) closePassed(c *outCall) {
	if c.item != nil && !slices.Contains(w.open, c.item) {
		c.ended, c.closed = true, true
	}
}

// drain removes completed calls from the start of the queue.
func (w *writer) drain() {
	for len(w.queue) > 0 && w.queue[0].call != nil && w.queue[0].call.closed {
		w.queue[0] = op{}
		w.queue = w.queue[1:]
	}
}

// passEvent records one relayed event, and continues the numbers of events after its own.
func (w *writer) passEvent(e *streamEvent, data []byte) {
	w.seq++
	if n, err := strconv.Atoi(string(get(data, "sequence_number"))); err == nil && n >= 0 {
		w.seq = n + 1
	}
	switch rawjson.Text(e.typ) {
	case "response.created", "response.queued":
		w.started = max(w.started, 1)
		w.res.repeat(e.response)
	case "response.in_progress":
		w.started = len(startEvents)
		w.res.repeat(e.response)
	case "response.completed", "response.incomplete", "response.failed":
		w.ended = true
	case "error":
		w.failed = true
	case "response.output_item.added":
		w.passAdded(e)
	case "response.output_item.done":
		w.passDone(e)
	case "response.content_part.added", "response.reasoning_summary_part.added":
		if it := w.passed(e); it != nil {
			it.part = max(partKindOf(text(e.part, "type")), partText) // a summary counts as a text
		}
	case "response.content_part.done", "response.reasoning_summary_part.done":
		if it := w.passed(e); it != nil && e.part != nil {
			it.endPart(rawjson.AppendCompact(nil, e.part))
		}
	case "response.output_text.delta", "response.refusal.delta", "response.reasoning_summary_text.delta",
		"response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
		if it := w.passed(e); it != nil && rawjson.Kind(e.delta) == '"' {
			text := rawjson.Text(e.delta)
			it.encoded, it.chars = append(it.encoded, quoted(text)...), it.chars+utf8.RuneCountInString(text)
		}
	}
}

// repeat gives later response objects the id, the model and the time of a relayed one.
func (r *resource) repeat(response []byte) {
	r.id = cmp.Or(text(response, "id"), r.id)
	r.model = cmp.Or(text(response, "model"), r.model)
	if n, err := strconv.ParseInt(string(get(response, "created_at")), 10, 64); err == nil {
		r.created = n
	}
}

// passed returns the open item to which a relayed event belongs, or nil.
func (w *itemWriter) passed(e *streamEvent) *outItem {
	index := number(e.index, -1)
	for _, it := range w.open {
		if it.index == index {
			return it
		}
	}
	return nil
}

// passAdded records the beginning of an item. An item with an index out of range is not recorded.
func (w *itemWriter) passAdded(e *streamEvent) {
	it := &outItem{index: number(e.index, w.next), id: text(e.item, "id"), kind: kindOf(text(e.item, "type"))}
	if it.index < 0 || it.index > maxItems || len(w.open) == maxItems {
		return
	}
	switch it.kind {
	case itemMessage:
		it.phase = text(e.item, "phase")
	case itemCall, itemCustom:
		head := wire.JSON("{").Members(members(e.item, "arguments", inputName, "status"), nil).Lit("}")
		it.head = bytes.TrimSuffix(rawjson.AppendCompact(nil, head), []byte("}"))
		w.lastCall = it
	case itemReasoning, itemOpaque:
	}
	it.raw = rawjson.AppendCompact(nil, e.item)
	w.open = append(w.open, it)
	w.next = max(w.next, it.index+1)
}

// passDone records the end of an item, with its JSON as the server wrote it.
func (w *itemWriter) passDone(e *streamEvent) {
	if it := w.passed(e); it != nil {
		w.open = slices.DeleteFunc(w.open, func(open *outItem) bool { return open == it })
		w.output = append(w.output, outDone{it.index, rawjson.AppendCompact(nil, e.item)})
	}
}
