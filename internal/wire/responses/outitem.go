package responses

import (
	"slices"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// itemRoom is the space in bytes that is allocated for the members of an item or part other than its text.
const itemRoom = 256

// An outItem is an output item that the writer has begun and not yet ended.
type outItem struct {
	kind      itemKind
	index     int
	id        string
	phase     string   // phase of a message
	part      partKind // kind of the open part; for reasoning, partText is a summary
	parts     int      // number of parts that have ended
	content   []byte   // JSON of the ended parts, separated by commas
	cited     []byte   // annotations of the open part, separated by commas
	citations int      // number of annotations in cited
	chars     int      // number of characters of the open text
	encoded   []byte   // text of the open part, or arguments or input of a call, as the characters of a JSON string
	head      []byte   // for a call: the JSON of the item before its arguments
	data      string   // opaque data of reasoning
	cut       bool     // the end of the output truncated the item
	raw       []byte   // for an opaque item: its JSON when it began
}

// text returns what was written of the open part, or of the arguments or input of a call.
func (it *outItem) text() string {
	return rawjson.Text(it.appendEncoded(nil))
}

// appendText appends a member with that text as its value.
func (it *outItem) appendText(dst wire.JSON, key string) wire.JSON {
	return it.appendEncoded(dst.Key(key))
}

func (it *outItem) appendEncoded(dst wire.JSON) wire.JSON {
	return dst.Lit(`"`).Raw(it.encoded).Lit(`"`)
}

func appendIndex(dst wire.JSON, index int) wire.JSON {
	return dst.Lit("_").Int(int64(index))
}

// take returns and reserves the output index of the next item.
func (w *writer) take() int {
	w.next++
	return w.next - 1
}

// begin returns a new item and adds it to the open items.
func (w *writer) begin(kind itemKind, prefix string) *outItem {
	it := &outItem{kind: kind, index: w.take()}
	it.id = w.res.itemID(prefix, it.index)
	w.open = append(w.open, it)
	return it
}

// current returns the last open item if it has the kind, else nil.
func (w *writer) current(kind itemKind) *outItem {
	if n := len(w.open); n > 0 && w.open[n-1].kind == kind {
		return w.open[n-1]
	}
	return nil
}

func (w *writer) added(dst wire.JSON, index int, item []byte) wire.JSON {
	return w.event(dst, "response.output_item.added").Num("output_index", int64(index)).Val("item", item).EndEvent()
}

func (w *writer) done(dst wire.JSON, index int, item []byte) wire.JSON {
	w.keep(index, item)
	return w.event(dst, "response.output_item.done").Num("output_index", int64(index)).Val("item", item).EndEvent()
}

// keep stores the JSON of an item for the response object at the end of the stream.
func (w *writer) keep(index int, item []byte) {
	if n := len(w.output); n > 0 && w.output[n-1].index > index {
		w.unordered = true
	}
	w.output = append(w.output, outDone{index, item})
}

// items returns the completed items in the order of their output indexes.
func (w *writer) items() []outDone {
	if w.unordered {
		slices.SortStableFunc(w.output, func(a, b outDone) int { return a.index - b.index })
	}
	return w.output
}

// of appends the beginning of an event about an item.
func (w *writer) of(dst wire.JSON, typ string, it *outItem) wire.JSON {
	return w.event(dst, typ).Str("item_id", it.id).Num("output_index", int64(it.index))
}

// ofPart appends the beginning of an event about the open part of an item. index is the name of the member for the index of the part.
func (w *writer) ofPart(dst wire.JSON, typ string, it *outItem, index string) wire.JSON {
	return w.of(dst, typ, it).Num(index, int64(it.parts))
}

// show appends the events for a delta that is not part of a call.
func (w *writer) show(dst wire.JSON, d lathe.Delta) wire.JSON {
	switch d.Kind {
	case lathe.DeltaText:
		return w.say(dst, partText, "", d.Text)
	case lathe.DeltaCommentary:
		return w.say(dst, partText, phaseCommentary, d.Text)
	case lathe.DeltaRefusal:
		return w.say(dst, partRefusal, "", d.Text)
	case lathe.DeltaReasoning:
		return w.think(dst, d.Text)
	case lathe.DeltaReasoningData:
		if d.Name != fieldEncrypted {
			return dst // data of another wire is not sent
		}
		it := w.current(itemReasoning)
		if it == nil {
			dst, it = w.beginReasoning(w.closeItems(dst))
		}
		it.data = d.Text
		return w.closeItems(dst)
	case lathe.DeltaTextEnd:
		return w.endText(dst, &d)
	case lathe.DeltaPart:
		o, ok := d.Part.(lathe.Opaque)
		if !ok || d.Name != string(lathe.WireResponses) || wire.Kind(o.JSON) != '{' {
			return dst
		}
		dst = w.closeItems(dst)
		index, item := w.take(), rawjson.AppendCompact(nil, o.JSON)
		if text(item, "type") == typeCompaction {
			dst = w.event(dst, "response.compaction.compacting").Str("item_id", text(item, "id")).Num("output_index", int64(index)).EndEvent()
		}
		return w.done(w.added(dst, index, item), index, item)
	default:
		return dst
	}
}

// endText writes the annotations of the open text, and ends the text if it is from this wire.
func (w *writer) endText(dst wire.JSON, d *lathe.Delta) wire.JSON {
	it := w.current(itemMessage)
	if it == nil || it.part != partText {
		return dst
	}
	t, _ := d.Part.(lathe.Text)
	for _, el := range wire.Citations(d, lathe.WireResponses, max(0, it.chars-utf8.RuneCountInString(t.Text))) {
		dst = w.ofPart(dst, "response.output_text.annotation.added", it, "content_index")
		dst = dst.Num("annotation_index", int64(it.citations)).Val("annotation", el).EndEvent()
		if it.citations++; len(it.cited) > 0 {
			it.cited = append(it.cited, ',')
		}
		it.cited = append(it.cited, el...)
	}
	if d.Name == string(lathe.WireResponses) {
		dst = w.closePart(dst, it)
	}
	return dst
}

// say appends a piece of a content part of a message, and the beginning of the item and of the part if necessary.
func (w *writer) say(dst wire.JSON, kind partKind, phase, text string) wire.JSON {
	it := w.current(itemMessage)
	if it == nil || it.phase != phase && (it.phase == phaseCommentary || phase == phaseCommentary) {
		dst = w.closeItems(dst)
		it = w.begin(itemMessage, prefixMessage)
		it.phase = phase
		dst = w.added(dst, it.index, it.message(statusInProgress))
	}
	if it.part != kind {
		dst = w.closePart(dst, it)
		it.part = kind
		dst = w.ofPart(dst, "response.content_part.added", it, "content_index")
		dst = it.appendPart(dst.Key("part")).EndEvent()
	}
	if kind == partRefusal {
		return w.delta(dst, it, "response.refusal.delta", "content_index", "", text)
	}
	return w.sayText(dst, it, text)
}

// sayText appends a piece of the open text of a message item.
func (w *writer) sayText(dst wire.JSON, it *outItem, text string) wire.JSON {
	it.chars += utf8.RuneCountInString(text)
	return w.delta(dst, it, "response.output_text.delta", "content_index", `,"logprobs":[]`, text)
}

// think appends a piece of reasoning as a summary, because all clients support the events for summaries.
func (w *writer) think(dst wire.JSON, text string) wire.JSON {
	it := w.current(itemReasoning)
	if it == nil {
		dst, it = w.beginReasoning(w.closeItems(dst))
	}
	if it.part == partOther {
		it.part = partText
		dst = w.ofPart(dst, "response.reasoning_summary_part.added", it, "summary_index")
		dst = it.appendPart(dst.Key("part")).EndEvent()
	}
	return w.delta(dst, it, "response.reasoning_summary_text.delta", "summary_index", "", text)
}

func (w *writer) beginReasoning(dst wire.JSON) (wire.JSON, *outItem) {
	it := w.begin(itemReasoning, prefixReasoning)
	return w.added(dst, it.index, it.reasoning()), it
}

// beginCall begins the item of a call, with the client's name of the tool.
func (w *writer) beginCall(dst wire.JSON, c *outCall) wire.JSON {
	name, ok := w.names[c.name]
	if !ok {
		name.Name = c.name
	}
	kind, prefix, typ := itemCall, prefixCall, "function_call"
	if name.Custom {
		kind, prefix, typ = itemCustom, prefixCustom, "custom_tool_call"
	}
	it := w.begin(kind, prefix)
	h := wire.JSON("{").Str("id", it.id).Str("type", typ).Str("call_id", CallID(c.id)).Str("name", name.Name).OptStr("namespace", name.Namespace)
	it.head, c.item = h, it
	return w.added(dst, it.index, it.call(statusInProgress))
}

// args appends a piece of the arguments of a call, or of the input of a custom tool.
func (w *writer) args(dst wire.JSON, it *outItem, text string) wire.JSON {
	typ := "response.function_call_arguments.delta"
	if it.kind == itemCustom {
		typ = "response.custom_tool_call_input.delta"
	}
	return w.delta(dst, it, typ, "", "", text)
}

// closeItems ends all open items.
func (w *writer) closeItems(dst wire.JSON) wire.JSON {
	for _, it := range w.open {
		dst = w.closeItem(dst, it)
	}
	w.open = w.open[:0]
	return dst
}

func (w *writer) closeItem(dst wire.JSON, it *outItem) wire.JSON {
	status := statusCompleted
	if it.cut {
		status = statusIncomplete
	}
	switch it.kind {
	case itemMessage:
		dst = w.closePart(dst, it)
		return w.done(dst, it.index, it.message(status))
	case itemReasoning:
		dst = w.closePart(dst, it)
		return w.done(dst, it.index, it.reasoning())
	case itemCall:
		dst = w.of(dst, "response.function_call_arguments.done", it)
		dst = it.appendText(dst, "arguments").EndEvent()
		return w.done(dst, it.index, it.call(status))
	case itemCustom:
		dst = w.of(dst, "response.custom_tool_call_input.done", it)
		dst = it.appendText(dst, inputName).EndEvent()
		return w.done(dst, it.index, it.call(status))
	default:
		return w.done(dst, it.index, it.raw)
	}
}

// closePart ends the open part of a message or of reasoning, if any.
func (w *writer) closePart(dst wire.JSON, it *outItem) wire.JSON {
	if it.part == partOther {
		return dst
	}
	switch {
	case it.kind == itemReasoning:
		dst = it.appendText(w.ofPart(dst, "response.reasoning_summary_text.done", it, "summary_index"), "text").EndEvent()
		dst = w.ofPart(dst, "response.reasoning_summary_part.done", it, "summary_index")
	case it.part == partRefusal:
		dst = it.appendText(w.ofPart(dst, "response.refusal.done", it, "content_index"), "refusal").EndEvent()
		dst = w.ofPart(dst, "response.content_part.done", it, "content_index")
	default:
		dst = it.appendText(w.ofPart(dst, "response.output_text.done", it, "content_index"), "text")
		dst = dst.Lit(`,"logprobs":[]`).EndEvent()
		dst = w.ofPart(dst, "response.content_part.done", it, "content_index")
	}
	part := it.appendPart(make([]byte, 0, len(it.encoded)+itemRoom))
	it.endPart(part)
	return dst.Val("part", part).EndEvent()
}

// endPart records the JSON of a part that has ended.
func (it *outItem) endPart(part []byte) {
	if it.parts == 0 {
		it.content = part
	} else {
		it.content = append(append(it.content, ','), part...)
	}
	it.parts++
	it.part, it.encoded, it.cited, it.citations, it.chars = partOther, it.encoded[:0], it.cited[:0], 0, 0
}

// appendPart appends the JSON of the open part with its text.
func (it *outItem) appendPart(dst wire.JSON) wire.JSON {
	switch {
	case it.kind == itemReasoning:
		return it.appendText(append(dst, `{"type":"summary_text"`...), "text").Lit("}")
	case it.part == partRefusal:
		return it.appendText(append(dst, `{"type":"refusal"`...), "refusal").Lit("}")
	}
	return it.appendText(append(dst, `{"type":"output_text"`...), "text").Lit(`,"annotations":[`).Raw(it.cited).Lit(`],"logprobs":[]}`)
}

// message returns the JSON of a message item.
func (it *outItem) message(status string) []byte {
	dst := make(wire.JSON, 0, len(it.content)+itemRoom).Lit("{").Str("id", it.id).Lit(`,"type":"message","role":"assistant"`).Str("status", status).
		OptStr("phase", it.phase).Lit(`,"content":[`).Raw(it.content)
	return dst.Lit("]}")
}

func (it *outItem) reasoning() []byte {
	dst := wire.JSON("{").Str("id", it.id).Lit(`,"type":"reasoning","summary":[`).Raw(it.content).Lit("]").OptStr(fieldEncrypted, it.data)
	return dst.Lit("}")
}

// call returns the JSON of a call item.
func (it *outItem) call(status string) []byte {
	name := "arguments"
	if it.kind == itemCustom {
		name = inputName
	}
	dst := it.appendText(make(wire.JSON, 0, len(it.head)+len(it.encoded)+itemRoom).Raw(it.head), name)
	return dst.Str("status", status).Lit("}")
}

// serverCall appends all events for a call that this server executed.
func (w *writer) serverCall(dst wire.JSON, c *wire.ServerCall) wire.JSON {
	it := &outItem{kind: itemOpaque, index: w.take()}
	it.id = w.res.itemID(prefixServer, it.index)
	args := orEmptyObject(c.Arguments)
	item := func(args, status string, whole bool) []byte {
		dst := wire.JSON("{").Str("id", it.id).Str("type", "mcp_call").Str("server_label", label(c.Server)).Str("name", c.Name).Str("arguments", args)
		output, failure := "", ""
		if whole && c.Failed {
			failure = c.Output
		} else if whole {
			output = c.Output
		}
		switch {
		case !whole:
			dst = dst.Lit(`,"output":null,"error":null`)
		case c.Failed:
			dst = dst.Lit(`,"output":null`).Str("error", failure)
		default:
			dst = dst.Str("output", output).Lit(`,"error":null`)
		}
		return dst.Str("status", status).Lit("}")
	}
	dst = w.added(dst, it.index, item("", statusInProgress, false))
	dst = w.of(dst, "response.mcp_call.in_progress", it).EndEvent()
	dst = w.piece(w.of(dst, "response.mcp_call_arguments.delta", it), "delta", args)
	dst = w.of(dst, "response.mcp_call_arguments.done", it).Str("arguments", args).EndEvent()
	status := statusCompleted
	if c.Failed {
		status = statusFailed
	}
	dst = w.of(dst, "response.mcp_call."+status, it).EndEvent()
	return w.done(dst, it.index, item(args, status, true))
}

// label returns the server_label of a call; the default is "lathe".
func label(server string) string {
	if server == "" {
		return "lathe"
	}
	return server
}

func orEmptyObject(arguments string) string {
	if rawjson.SkipSpace([]byte(arguments), 0) == len(arguments) {
		return "{}"
	}
	return arguments
}
