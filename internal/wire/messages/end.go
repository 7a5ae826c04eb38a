package messages

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// AppendFinish ends the answer. See [wire.Writer].
func (w *writer) AppendFinish(to []byte, f *lathe.Finish, extra []lathe.Member) []byte {
	dst := wire.JSON(to)
	if w.finished || f == nil {
		return dst
	}
	if w.stopped {
		w.finished = true
		return dst.Event("message_stop").EndEvent()
	}
	dst = w.rest(w.AppendStart(dst), f)
	if w.head.Whole {
		dst = dst.Lit("]")
	} else {
		dst = dst.Event("message_delta").Lit(`,"delta":{`)
	}
	if dst = appendStop(dst, w, f); !w.head.Whole {
		dst = dst.Lit("}")
	}
	dst = appendUsage(dst.Key("usage"), &f.Usage).Extra(extra, func(name string) bool { return w.head.Whole && wholeNames.Has(name) })
	if w.finished = true; w.head.Whole {
		return dst.Lit("}")
	}
	return dst.EndEvent().Event("message_stop").EndEvent()
}

// wholeNames are the members of a message, which further ones do not replace.
var wholeNames = rawjson.NewNames("id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage")

// rest appends the parts of the message that no delta has contained, and closes all blocks.
func (w *writer) rest(dst wire.JSON, f *lathe.Finish) wire.JSON {
	known := slices.Clone(w.calls)
	for i, c := range f.Message.Calls() {
		k := match(known, i, &c)
		var it *item
		if k >= 0 {
			it, known[k] = known[k], nil
		} else {
			it = w.newCall(-1)
		}
		if it.ended && it.id != "" && it.name != "" {
			continue
		}
		if !it.began {
			it.id, it.name, it.text = c.ID, c.Name, []byte(c.Arguments)
		} else if n := len(it.args) + len(it.text); n < len(c.Arguments) {
			it.text = append(it.text, c.Arguments[n:]...)
		}
		if it.id == "" {
			it.id = madeUpID(w.head.ID, i)
		}
		if it.name == "" {
			it.name = shortName(c.Name)
		}
		it.ended, it.cut = true, c.Incomplete
	}
	for _, it := range w.queue { // calls that the message does not have
		if it.kind == blockCall && !it.ended {
			it.ended, it.cut = true, true
		}
		if it.kind == blockCall && it.id == "" {
			it.id = madeUpID(w.head.ID, -1)
		}
		if it.kind == blockCall && it.name == "" {
			it.name = shortName("")
		}
	}
	for _, it := range w.queue {
		it.ended = true
	}
	return w.advance(dst)
}

// match returns the index in items of the item for call i of the message, or -1: the first item that is not nil and has the
// call's id, else the one with the call's index.
func match(items []*item, i int, c *lathe.ToolCall) int {
	indexed := -1
	for k, it := range items {
		switch {
		case it == nil:
		case it.id != "" && it.id == c.ID:
			return k
		case it.index == i && (it.id == "" || c.ID == ""):
			indexed = k
		}
	}
	return indexed
}

// madeUpID derives the id of a call that has none from the run and the number of the call.
func madeUpID(run string, i int) string {
	return "toolu_" + wire.Hash(run + "/" + strconv.Itoa(i))[:24]
}

// appendStop appends stop_reason and stop_sequence. An answer with a call that was cut off, or left out, ends as one that the token
// limit cut off, whatever the model's server says, so that no client takes it for complete.
func appendStop(dst wire.JSON, w *writer, f *lathe.Finish) wire.JSON {
	reason, sequence := "end_turn", ""
	switch r := w.head.Request; {
	case f.Reason == lathe.FinishLength && f.RawReason == "model_context_window_exceeded":
		reason = f.RawReason
	case f.Reason == lathe.FinishLength, w.broken:
		reason = "max_tokens"
	case f.Reason == lathe.FinishContentFilter, w.refused && !w.said && w.sent == 0:
		reason = "refusal"
	case w.sent > 0:
		reason = "tool_use"
	case f.RawReason == "stop_sequence":
		reason = f.RawReason
		if r != nil && len(r.Sampling.Stop) == 1 { // of several it is not known which
			sequence = r.Sampling.Stop[0]
		}
	}
	dst = dst.Str("stop_reason", reason)
	if sequence == "" {
		return dst.Lit(`,"stop_sequence":null`)
	}
	return dst.Str("stop_sequence", sequence)
}

// Pass records events that are sent to the client as they came. See [wire.Writer].
func (w *writer) Pass(raw *lathe.Raw) []byte {
	w.started = true
	for line := range bytes.Lines(raw.Bytes) {
		data, ok := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte("data:"))
		if !ok || !matters(w, bytes.TrimLeft(data, " ")) {
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
			w.sent++
			if len(w.queue) > 0 && w.queue[0].kind == blockCall {
				w.queue[0] = it
			}
		case lathe.DeltaCallArgs:
			it := w.call(d.Index)
			it.args = append(it.args, d.Text...)
		case lathe.DeltaCallEnd:
			w.call(d.Index).ended = true
		}
	}
	if len(w.queue) > 0 && w.queue[0].kind == blockCall && w.queue[0].ended {
		w.queue[0].ended = false // its block is open still
	}
	return raw.Bytes
}

// matters reports whether an event changes what follows: all but the pieces of blocks do, and of these the signatures.
func matters(w *writer, data []byte) bool {
	return !bytes.HasPrefix(data, []byte(`{"type":"content_block_delta"`)) ||
		len(w.queue) > 0 && w.queue[0].kind == blockThinking && bytes.Contains(data, []byte("signature"))
}

// passEvent records one event: the open block is the only item of the queue.
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
		if len(w.queue) > 0 && w.queue[0].kind == blockThinking {
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
