package responses

import (
	"cmp"
	"slices"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// An outItem is an output item that the writer has begun and not yet ended.
type outItem struct {
	kind  itemKind
	index int
	id    string
	cut   bool // the end of the output truncated the item

	openPart
	parts   int    // number of parts that have ended
	content []byte // JSON of the ended parts, separated by commas

	phase string // of a message
	data  string // opaque data of reasoning
	head  []byte // for a call: the JSON of the item before its arguments
	raw   []byte // for an opaque item: its JSON when it began
}

// An openPart is the part of an item that is being written. The arguments or the input of a call are a part without a kind.
type openPart struct {
	part      partKind // partOther: no part is open; for reasoning, partText is a summary
	encoded   []byte   // its text, as the characters of a JSON string
	chars     int      // number of characters of its text
	cited     []byte   // its annotations, separated by commas
	citations int      // number of annotations in cited
}

// text returns what was written of the open part, or of the arguments or input of a call.
func (it *outItem) text() string {
	return rawjson.Text(it.quoted())
}

// quoted returns the text of the open part, or the arguments of the call, as a JSON string.
func (it *outItem) quoted() wire.JSON { return wire.JSON(`"`).Raw(it.encoded).Lit(`"`) }

// An itemWriter writes the events of the items of an answer. One item is open at a time, or several if they were passed on.
type itemWriter struct {
	eventWriter
	res      *resource
	names    map[string]wire.ToolName // the client's names of tools by internal names
	next     int                      // output index of the next item
	open     []*outItem               // items begun by the writer (at most one) or passed on
	output   []outDone                // items that have ended
	lastCall *outItem                 // the call that was passed on last
}

// nextIndex returns and reserves the output index of the next item.
func (w *itemWriter) nextIndex() int {
	w.next++
	return w.next - 1
}

// begin returns a new item and adds it to the open items.
func (w *itemWriter) begin(kind itemKind, prefix string) *outItem {
	it := &outItem{kind: kind, index: w.nextIndex()}
	it.id = w.res.itemID(prefix, it.index)
	w.open = append(w.open, it)
	return it
}

// current returns the last open item if it has the kind, else nil.
func (w *itemWriter) current(kind itemKind) *outItem {
	if n := len(w.open); n > 0 && w.open[n-1].kind == kind {
		return w.open[n-1]
	}
	return nil
}

func (w *eventWriter) added(index int, item wire.JSON) {
	w.event("response.output_item.added", "output_index", index, "item", item)
}

// done writes the end of an item.
func (w *itemWriter) done(index int, item wire.JSON) {
	w.output = append(w.output, outDone{index, item})
	w.event("response.output_item.done", "output_index", index, "item", item)
}

// items returns the completed items in the order of their output indexes.
func (w *itemWriter) items() []outDone {
	slices.SortStableFunc(w.output, func(a, b outDone) int { return a.index - b.index })
	return w.output
}

// itemEvent writes an event about an item.
func (w *eventWriter) itemEvent(typ string, it *outItem, members ...any) {
	w.out = w.beginItemEvent(typ, it).Fields(members...).EndEvent()
}

// partEvent writes an event about the open part of an item. index is the name of the member for the number of the part.
func (w *eventWriter) partEvent(typ string, it *outItem, index string, members ...any) {
	w.out = w.beginItemEvent(typ, it).Num(index, int64(it.parts)).Fields(members...).EndEvent()
}

// writeDelta appends the events for a delta that is not part of a call.
func (w *itemWriter) writeDelta(d lathe.Delta) {
	switch d.Kind {
	case lathe.DeltaText:
		w.writeText(partText, "", d.Text)
	case lathe.DeltaCommentary:
		w.writeText(partText, phaseCommentary, d.Text)
	case lathe.DeltaRefusal:
		w.writeText(partRefusal, "", d.Text)
	case lathe.DeltaReasoning:
		w.writeReasoning(d.Text)
	case lathe.DeltaReasoningData:
		if d.Name != fieldEncrypted {
			return // data of another wire is not sent
		}
		w.reasoning().data = d.Text
		w.closeItems()
	case lathe.DeltaTextEnd:
		w.endText(&d)
	case lathe.DeltaPart:
		o, ok := d.Part.(lathe.Opaque)
		if !ok || d.Name != string(lathe.WireResponses) || rawjson.Kind(o.JSON) != '{' {
			return
		}
		w.closeItems()
		index, item := w.nextIndex(), rawjson.AppendCompact(nil, o.JSON)
		if text(item, "type") == typeCompaction {
			w.event("response.compaction.compacting", "item_id", text(item, "id"), "output_index", index)
		}
		w.added(index, item)
		w.done(index, item)
	default: // a delta of a call
	}
}

// endText writes the annotations of the open text, and ends the text if it is from this wire.
func (w *itemWriter) endText(d *lathe.Delta) {
	it := w.current(itemMessage)
	if it == nil || it.part != partText {
		return
	}
	t, _ := d.Part.(lathe.Text)
	for _, el := range wire.Citations(d, lathe.WireResponses, max(0, it.chars-utf8.RuneCountInString(t.Text))) {
		w.partEvent("response.output_text.annotation.added", it, "content_index", "annotation_index", it.citations, "annotation", wire.JSON(el))
		if it.citations > 0 {
			it.cited = append(it.cited, ',')
		}
		it.cited = append(it.cited, el...)
		it.citations++
	}
	if d.Name == string(lathe.WireResponses) {
		w.closePart(it)
	}
}

// writeText appends a piece of a content part of a message, and the beginning of the item and of the part if necessary.
func (w *itemWriter) writeText(kind partKind, phase, text string) {
	it := w.current(itemMessage)
	if it == nil || (it.phase == phaseCommentary) != (phase == phaseCommentary) {
		w.closeItems()
		it = w.begin(itemMessage, prefixMessage)
		it.phase = phase
		w.added(it.index, it.message(statusInProgress))
	}
	if it.part != kind {
		w.closePart(it)
		it.part = kind
		w.partEvent("response.content_part.added", it, "content_index", "part", it.partValue())
	}
	if kind == partRefusal {
		w.delta(it, "response.refusal.delta", "content_index", text)
		return
	}
	it.chars += utf8.RuneCountInString(text)
	w.delta(it, "response.output_text.delta", "content_index", text, "logprobs", wire.JSON("[]"))
}

// writeReasoning appends a piece of reasoning as a summary, because all clients support the events for summaries.
func (w *itemWriter) writeReasoning(text string) {
	it := w.reasoning()
	if it.part == partOther {
		it.part = partText
		w.partEvent("response.reasoning_summary_part.added", it, "summary_index", "part", it.partValue())
	}
	w.delta(it, "response.reasoning_summary_text.delta", "summary_index", text)
}

// reasoning returns the open reasoning item, and begins one if necessary.
func (w *itemWriter) reasoning() *outItem {
	if it := w.current(itemReasoning); it != nil {
		return it
	}
	w.closeItems()
	it := w.begin(itemReasoning, prefixReasoning)
	w.added(it.index, it.reasoning())
	return it
}

// beginCall begins the item of a call, with the client's name of the tool.
func (w *itemWriter) beginCall(c *outCall) {
	name, ok := w.names[c.name]
	if !ok {
		name.Name = c.name
	}
	kind, prefix, typ := itemCall, prefixCall, "function_call"
	if name.Custom {
		kind, prefix, typ = itemCustom, prefixCustom, typeCustomCall
	}
	it := w.begin(kind, prefix)
	it.head = wire.JSON("{").Fields("id", it.id, "type", typ, "call_id", CallID(c.id), "name", name.Name, "namespace", wire.Optional(name.Namespace))
	c.item = it
	w.added(it.index, it.call(statusInProgress))
}

// writeArguments appends a piece of the arguments of a call, or of the input of a custom tool.
func (w *itemWriter) writeArguments(it *outItem, text string) {
	typ := "response.function_call_arguments.delta"
	if it.kind == itemCustom {
		typ = "response.custom_tool_call_input.delta"
	}
	w.delta(it, typ, "", text)
}

// closeItems ends all open items.
func (w *itemWriter) closeItems() {
	for _, it := range w.open {
		w.closeItem(it)
	}
	w.open = w.open[:0]
}

func (w *itemWriter) closeItem(it *outItem) {
	status := statusCompleted
	if it.cut {
		status = statusIncomplete
	}
	switch it.kind {
	case itemMessage:
		w.closePart(it)
		w.done(it.index, it.message(status))
	case itemReasoning:
		w.closePart(it)
		w.done(it.index, it.reasoning())
	case itemCall:
		w.itemEvent("response.function_call_arguments.done", it, "arguments", it.quoted())
		w.done(it.index, it.call(status))
	case itemCustom:
		w.itemEvent("response.custom_tool_call_input.done", it, inputName, it.quoted())
		w.done(it.index, it.call(status))
	default:
		w.done(it.index, it.raw)
	}
}

// closePart ends the open part of a message or of reasoning, if any.
func (w *itemWriter) closePart(it *outItem) {
	if it.part == partOther {
		return
	}
	text, index, end := it.quoted(), "content_index", "response.content_part.done"
	switch {
	case it.kind == itemReasoning:
		index, end = "summary_index", "response.reasoning_summary_part.done"
		w.partEvent("response.reasoning_summary_text.done", it, index, "text", text)
	case it.part == partRefusal:
		w.partEvent("response.refusal.done", it, index, "refusal", text)
	default:
		w.partEvent("response.output_text.done", it, index, "text", text, "logprobs", wire.JSON("[]"))
	}
	part := it.partValue()
	w.partEvent(end, it, index, "part", part)
	it.endPart(part)
}

// endPart records the JSON of a part that has ended.
func (it *outItem) endPart(part []byte) {
	if it.parts == 0 {
		it.content = part
	} else {
		it.content = append(append(it.content, ','), part...)
	}
	it.parts++
	it.openPart = openPart{encoded: it.encoded[:0], cited: it.cited[:0]}
}

// partValue returns the open part.
func (it *outItem) partValue() wire.JSON {
	switch {
	case it.kind == itemReasoning:
		return wire.ObjectOf("type", "summary_text", "text", it.quoted())
	case it.part == partRefusal:
		return wire.ObjectOf("type", "refusal", "refusal", it.quoted())
	}
	return wire.ObjectOf("type", "output_text", "text", it.quoted(), "annotations", wire.ArrayOf(it.cited), "logprobs", wire.JSON("[]"))
}

func (it *outItem) message(status string) wire.JSON {
	return wire.ObjectOf("id", it.id, "type", "message", "role", "assistant", "status", status, "phase", wire.Optional(it.phase), "content", wire.ArrayOf(it.content))
}

func (it *outItem) reasoning() wire.JSON {
	return wire.ObjectOf("id", it.id, "type", "reasoning", "summary", wire.ArrayOf(it.content), fieldEncrypted, wire.Optional(it.data))
}

func (it *outItem) call(status string) wire.JSON {
	name := "arguments"
	if it.kind == itemCustom {
		name = inputName
	}
	return wire.JSON(nil).Raw(it.head).Fields(name, it.quoted(), "status", status).Lit("}")
}

// defaultServer is the server_label of calls to tools that are not from a named server.
const defaultServer = "lathe"

// serverCall writes a call that this server executed.
func (w *itemWriter) serverCall(c *wire.ServerCall) {
	it := &outItem{kind: itemOpaque, index: w.nextIndex()}
	it.id = w.res.itemID(prefixServer, it.index)
	args := orEmptyObject(c.Arguments)
	item := func(args, status string, output, failure wire.JSON) wire.JSON {
		return wire.ObjectOf("id", it.id, "type", "mcp_call", "server_label", cmp.Or(c.Server, defaultServer), "name", c.Name, "arguments", args,
			"output", output, "error", failure, "status", status)
	}
	status, null := statusCompleted, wire.JSON("null")
	output, failure := wire.Quoted(c.Output), null
	if c.Failed {
		status, output, failure = statusFailed, failure, output
	}
	w.added(it.index, item("", statusInProgress, null, null))
	w.itemEvent("response.mcp_call.in_progress", it)
	w.delta(it, "response.mcp_call_arguments.delta", "", args)
	w.itemEvent("response.mcp_call_arguments.done", it, "arguments", args)
	w.itemEvent("response.mcp_call."+status, it)
	w.done(it.index, item(args, status, output, failure))
}

func orEmptyObject(arguments string) string {
	if rawjson.SkipSpace([]byte(arguments), 0) == len(arguments) {
		return "{}"
	}
	return arguments
}
