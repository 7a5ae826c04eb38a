package messages

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// AppendFinish implements [wire.Writer].
func (w *writer) AppendFinish(dst []byte, f *lathe.Finish, extra []lathe.Member) []byte {
	if f == nil {
		return dst
	}
	return w.write(dst, func() {
		if !w.stopped {
			w.finish(f, extra)
		}
		w.finished = true
		if !w.head.Whole {
			w.event("message_stop")
		}
	})
}

// finish writes the rest of the answer up to its stop reason and usage.
func (w *writer) finish(f *lathe.Finish, extra []lathe.Member) {
	w.start()
	w.completeCalls(f)
	usage := appendUsage(nil, &f.Usage)
	if w.head.Whole {
		w.out = w.appendStop(w.out.Lit("]"), f).Val("usage", usage).Extra(extra, wholeNames.Has).Lit("}")
		return
	}
	w.out = w.appendStop(w.out.Event("message_delta").Obj("delta"), f).Lit("}").Val("usage", usage).
		Extra(extra, nil).EndEvent()
}

// wholeNames are the members of a message that additional members must not replace.
var wholeNames = nameSet("id type role model content stop_reason stop_sequence usage")

// completeCalls appends the calls of the message that the deltas did not contain completely, and closes all blocks.
func (w *writer) completeCalls(f *lathe.Finish) {
	unmatched := slices.Clone(w.calls)
	for i, c := range f.Message.Calls() {
		at := itemOf(unmatched, i, &c)
		if at < 0 {
			w.newCall(-1).complete(w.head.ID, i, &c)
			continue
		}
		unmatched[at].complete(w.head.ID, i, &c)
		unmatched = slices.Delete(unmatched, at, at+1)
	}
	for _, it := range w.queue {
		if it.kind == blockCall { // if it has not ended, it is not in the message
			it.truncated = it.truncated || !it.ended
			it.id = cmp.Or(it.id, madeUpID(w.head.ID, -1))
			it.name = cmp.Or(it.name, shortName(""))
		}
		it.ended = true
	}
	w.advance()
}

// complete adds what c, call number i of the message that ends the run, has and the deltas of the call lacked.
func (it *item) complete(run string, i int, c *lathe.ToolCall) {
	if it.ended && it.identified() {
		return
	}
	received := len(it.sent) + len(it.unsent)
	switch {
	case !it.began:
		it.id, it.name, it.unsent = c.ID, c.Name, []byte(c.Arguments)
	case received < len(c.Arguments):
		it.unsent = append(it.unsent, c.Arguments[received:]...)
	}
	it.id = cmp.Or(it.id, madeUpID(run, i))
	it.name = cmp.Or(it.name, shortName(c.Name))
	it.ended, it.truncated = true, c.Incomplete
}

// itemOf returns the index in items of the item for call number of the message, or -1. It prefers an item with the id of the call to one
// with its number.
func itemOf(items []*item, number int, c *lathe.ToolCall) int {
	numbered := -1
	for i, it := range items {
		switch {
		case it.id != "" && it.id == c.ID:
			return i
		case it.index == number && (it.id == "" || c.ID == ""):
			numbered = i
		}
	}
	return numbered
}

// madeUpID derives an id from the run and the number of a call without an id; -1 is the number of a call that is not in the message.
func madeUpID(run string, i int) string {
	return "toolu_" + wire.Hash(run + "/" + strconv.Itoa(i))[:24]
}

// appendStop appends stop_reason and stop_sequence. If a call was truncated or left out, the stop reason is max_tokens whatever the model
// server reported, so that no client considers the answer complete.
func (w *writer) appendStop(dst wire.JSON, f *lathe.Finish) wire.JSON {
	reason := stopReasonOf(w, f)
	sequence := wire.JSON("null")
	// With several stop sequences, it is unknown which one matched.
	if r := w.head.Request; reason == "stop_sequence" && r != nil && len(r.Sampling.Stop) == 1 && r.Sampling.Stop[0] != "" {
		sequence = wire.Quoted(r.Sampling.Stop[0])
	}
	return dst.Fields("stop_reason", reason, "stop_sequence", sequence)
}

// stopReasonOf returns the stop reason. Truncation takes precedence over a refusal, and both over calls.
func stopReasonOf(w *writer, f *lathe.Finish) string {
	onlyRefused := w.refused && !w.said && w.callsSent == 0
	switch {
	case f.Reason == lathe.FinishLength && f.RawReason == "model_context_window_exceeded":
		return f.RawReason
	case f.Reason == lathe.FinishLength, w.broken:
		return "max_tokens"
	case f.Reason == lathe.FinishContentFilter, onlyRefused:
		return "refusal"
	case w.callsSent > 0:
		return "tool_use"
	case f.RawReason == "stop_sequence":
		return f.RawReason
	}
	return "end_turn"
}

// Pass implements [wire.Writer]. It records the blocks from the relayed events, and then the calls from the deltas of these events, so that
// the writer can continue the answer.
func (w *writer) Pass(raw *lathe.Raw) []byte {
	w.started = true
	for line := range bytes.Lines(raw.Bytes) {
		data, ok := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte("data:"))
		if !ok || !w.changesState(bytes.TrimLeft(data, " ")) {
			continue
		}
		if e, ok := takeApart(data); ok {
			w.passEvent(&e)
		}
	}
	for _, d := range raw.Deltas {
		switch d.Kind {
		case lathe.DeltaCallStart:
			it := &item{kind: blockCall, index: d.Index, id: d.ID, name: d.Name, began: true}
			w.calls = append(w.calls, it)
			w.callsSent++
			if isFirst(w.queue, blockCall) {
				w.queue[0] = it // the item of content_block_start has neither id nor name
			}
		case lathe.DeltaCallArgs:
			it := w.call(d.Index)
			it.sent = append(it.sent, d.Text...)
		case lathe.DeltaCallEnd:
			w.call(d.Index).ended = true
		}
	}
	if isFirst(w.queue, blockCall) {
		w.queue[0].ended = false // its block is open: DeltaCallEnd can precede content_block_stop
	}
	return raw.Bytes
}

// isFirst reports whether the block being written has the kind.
func isFirst(queue []*item, kind blockKind) bool { return len(queue) > 0 && queue[0].kind == kind }

// changesState reports whether an event changes the state of the writer. Of the deltas of blocks, only those with signatures do.
func (w *writer) changesState(data []byte) bool {
	if !bytes.HasPrefix(data, []byte(`{"type":"content_block_delta"`)) {
		return true
	}
	return isFirst(w.queue, blockThinking) && bytes.Contains(data, []byte("signature"))
}

// passEvent records one event. After it, the queue contains only the open block, if any.
func (w *writer) passEvent(e *eventData) {
	switch rawjson.Text(e.typ) {
	case "content_block_start":
		w.next++
		it := &item{kind: blockOpaque, began: true}
		switch text(e.block, "type") {
		case "text":
			it.kind = blockText
		case "thinking":
			it.kind = blockThinking
			it.signed = len(text(e.block, "signature"))
		case "tool_use":
			it.kind = blockCall
		}
		w.queue = []*item{it}
	case "content_block_delta":
		if isFirst(w.queue, blockThinking) {
			w.queue[0].signed += len(text(e.delta, "signature"))
		}
	case "content_block_stop":
		w.queue = nil
	case "message_delta":
		w.stopped = w.stopped || get(e.delta, "stop_reason") != nil
	case "message_stop", "error":
		w.finished = true
	}
}
