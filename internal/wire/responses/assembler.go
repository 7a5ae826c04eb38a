package responses

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// The kinds of [lathe.Fault] that an Assembler counts.
const (
	faultBadLine        = "bad_line"              // data that is not a JSON object of a known form; skipped
	faultAfterDone      = "after_done"            // data after the end; skipped
	faultUnknownEvent   = "unknown_event"         // an event of an unknown type; skipped
	faultUnknownContent = "unknown_content"       // a content part of an unknown type; skipped
	faultEventOrder     = "event_order"           // an event about an item or part that has not begun or has ended
	faultItemOpen       = "item_open"             // an item without an end in a complete answer
	faultTextDiffers    = "text_differs"          // the complete text differs from its pieces, which are used
	faultArgsDiffer     = "arguments_differ"      // the complete arguments of a call differ from their pieces; the call is not executed
	faultFinishUnknown  = "finish_reason_unknown" // an unknown reason for an incomplete answer
	faultUsageInvalid   = "usage_invalid"         // a token count that is not a number
	faultReasoningTwice = "reasoning_twice"       // reasoning as a summary and as content; the first one is used
	faultIDMissing      = "id_missing"            // a call without an id
	faultNameMissing    = "name_missing"          // a call without a name
)

// Values of the wire.
const (
	statusInProgress = "in_progress"
	statusCompleted  = "completed"
	statusIncomplete = "incomplete"
	statusFailed     = "failed"

	// Reasons for an incomplete response.
	reasonLength = "max_output_tokens"
	reasonFilter = "content_filter"

	phaseCommentary = "commentary"

	eventPrefix = "response." // of all events but `error`
	endOfStream = "[DONE]"    // the data after the last event
)

const (
	// maxItems bounds the items of an answer, and the parts of an item.
	maxItems = 1024
	// itemSize is the number of bytes that an item or a part counts against MaxBytes in addition to its text.
	itemSize = 64
)

// An Assembler assembles an answer from the events of a stream: see [wire.Assembler].
//
// An event belongs to the item with its index or, if the event has no index, to the item with its id. Items are in the order in which they
// begin. If the last event of an item has more text than its pieces, the rest is emitted as another piece.
type Assembler struct {
	wire.Assembly
	items   items
	calls   int
	usage   lathe.Usage
	cost    *float64
	created bool   // response.created or a similar event was read
	whole   bool   // the answer is not streamed
	ended   bool   // the terminal event was read
	closed  bool   // [DONE] was read
	status  string // type of the terminal event: completed, incomplete or failed
	reason  string // reason why the answer is incomplete
}

// NewAssembler implements [wire.Upstream].
func (Codec) NewAssembler(opts *wire.AssemblerOptions) wire.Assembler {
	return &Assembler{Assembly: wire.NewAssembly(opts)}
}

// Done implements [wire.Assembler].
func (a *Assembler) Done() bool { return a.ended || a.closed }

// Finished implements [wire.Assembler].
func (a *Assembler) Finished() bool { return a.ended }

// Append implements [wire.Assembler].
func (a *Assembler) Append(dst []lathe.Delta, event string, data []byte) ([]lathe.Delta, error) {
	a.Out = dst
	line := bytes.TrimSpace(data)
	var e ev
	switch {
	case a.Err != nil:
	case len(line) == 0 || string(line) == endOfStream:
		a.closed = a.closed || len(line) > 0
	case a.Done():
		a.Fault(faultAfterDone)
	case !e.read(data):
		a.Damage(faultBadLine)
	default:
		if len(e.typ) == 0 {
			e.typ = rawjson.AppendQuote(nil, event)
		}
		a.take(&e, data)
	}
	return a.Take(), a.Err
}

// take handles one event. data is its JSON text.
func (a *Assembler) take(e *ev, data []byte) {
	switch string(e.typ) {
	case `"response.output_text.delta"`:
		a.readText(e, partText, e.delta, false)
		return
	case `"response.refusal.delta"`:
		a.readText(e, partRefusal, e.delta, false)
		return
	case `"response.function_call_arguments.delta"`:
		a.readArguments(e, itemCall, e.delta, false)
		return
	case `"response.custom_tool_call_input.delta"`:
		a.readArguments(e, itemCustom, e.delta, false)
		return
	case `"response.reasoning_summary_text.delta"`:
		a.readReasoning(e, thoughtSummary, e.summary, e.delta, false)
		return
	case `"response.reasoning_text.delta"`, `"response.reasoning.delta"`:
		a.readReasoning(e, thoughtContent, e.content, e.delta, false)
		return
	case `"response.output_text.done"`:
		a.readText(e, partText, e.text, true)
		return
	case `"response.refusal.done"`:
		a.readText(e, partRefusal, e.text, true)
		return
	case `"response.function_call_arguments.done"`:
		a.readArguments(e, itemCall, e.text, true)
		return
	case `"response.custom_tool_call_input.done"`:
		a.readArguments(e, itemCustom, e.text, true)
		return
	case `"response.reasoning_summary_text.done"`:
		a.readReasoning(e, thoughtSummary, e.summary, e.text, true)
		return
	case `"response.reasoning_text.done"`, `"response.reasoning.done"`:
		a.readReasoning(e, thoughtContent, e.content, e.text, true)
		return
	case `"response.output_item.added"`:
		a.added(e)
		return
	case `"response.output_item.done"`:
		a.finished(e)
		return
	case `"response.content_part.added"`, `"response.content_part.done"`:
		a.readPart(e)
		return
	case `"response.reasoning_summary_part.added"`, `"response.reasoning_summary_part.done"`:
		return // the pieces and the end of the item have the same content
	case `"response.created"`, `"response.in_progress"`, `"response.queued"`:
		a.created = true
		a.readNames(e.response)
		return
	case `"response.completed"`, `"response.incomplete"`, `"response.failed"`:
		if e.response == nil {
			a.Damage(faultBadLine)
			return
		}
		a.end(e.response, string(e.typ[len(`"`)+len(eventPrefix):len(e.typ)-1]))
		return
	case `"error"`:
		a.Err = Codec{}.ParseError(0, data)
		return
	case `"keepalive"`, `"ping"`, `"response.output_text.annotation.added"`:
		return
	}
	if it := a.find(e); it == nil || it.kind != itemOpaque { // other events about an opaque item report only its progress
		a.Fault(faultUnknownEvent)
	}
}

func (a *Assembler) readNames(response []byte) {
	if id := get(response, "id"); a.ID == "" && rawjson.Kind(id) == '"' {
		a.ID = rawjson.Text(id)
		a.Grow(len(a.ID))
	}
	if model := get(response, "model"); a.Model == "" && rawjson.Kind(model) == '"' {
		a.Model = rawjson.Text(model)
		a.Grow(len(a.Model))
	}
}

// find returns the item of an event: the one at its index, else the one with its id, else, if the event has neither, the last item that has
// not ended. It returns nil if none exists.
func (a *Assembler) find(e *ev) *item {
	index, err := strconv.Atoi(string(e.index))
	if rawjson.Kind(e.item) == '{' {
		if err != nil {
			index = -1
		}
		return a.items.match(index, e.item)
	}
	if it := a.items.at(index); err == nil && it != nil {
		return it
	}
	if len(e.id) > 0 || err == nil {
		return a.items.withID(rawjson.Text(e.id))
	}
	if i := len(a.items) - 1; i >= 0 && !a.items[i].done {
		return a.items[i]
	}
	return nil
}

// match returns the streamed item whose form raw is: the one at the index, if it is not another one by kind or call id, else the one with the
// id or the call id of raw. Servers count indexes wrong or leave them out, and some give an item a new id in each event. It returns nil if
// none exists. An item of the response object is matched once.
func (all items) match(index int, raw []byte) *item {
	kind, callID := kindOf(text(raw, "type")), text(raw, "call_id")
	fits := func(it *item) bool { return it != nil && !it.settled && it.kind == kind }
	if it := all.at(index); fits(it) && (callID == "" || !it.hasCallID() || it.callID == callID) {
		return it
	}
	if it := all.withID(text(raw, "id")); fits(it) {
		return it
	}
	for _, it := range slices.Backward(all) {
		if callID != "" && fits(it) && it.callID == callID {
			return it
		}
	}
	return nil
}

// items are the items of an answer in the order in which they began.
type items []*item

// withID returns the last item with an id; nil if none exists.
func (all items) withID(id string) *item {
	for i := len(all) - 1; i >= 0 && id != ""; i-- {
		if all[i].id == id {
			return all[i]
		}
	}
	return nil
}

// at returns the last item that began with an index.
func (all items) at(index int) *item {
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].index == index {
			return all[i]
		}
	}
	return nil
}

// begin adds an item. It returns nil if a limit is reached; a.Err is then set.
func (a *Assembler) begin(index int, raw []byte) *item {
	if len(a.items) == maxItems {
		a.Err = fmt.Errorf("%w: more than %d items", wire.ErrTooLarge, maxItems)
		return nil
	}
	it := &item{index: index, id: text(raw, "id"), kind: kindOf(text(raw, "type"))}
	a.items = append(a.items, it)
	a.Grow(itemSize + len(it.id))
	switch it.kind {
	case itemMessage:
		it.phase = text(raw, "phase")
	case itemCall, itemCustom:
		if a.calls == a.Opts.MaxCalls {
			a.Err = wire.ErrTooManyCalls
			return nil
		}
		it.call = a.calls
		a.calls++
		it.name(raw)
		a.Grow(len(it.callID) + len(it.callName))
		if it.callName != "" && it.callID != "" {
			it.start(a)
		}
	case itemReasoning, itemOpaque:
	}
	return it
}

// added handles response.output_item.added.
func (a *Assembler) added(e *ev) {
	if rawjson.Kind(e.item) != '{' {
		a.Damage(faultBadLine)
		return
	}
	index, err := strconv.Atoi(string(e.index))
	if err != nil {
		index = len(a.items)
	}
	if err != nil || !a.created || a.items.at(index) != nil {
		a.Damage(faultEventOrder)
	}
	if it := a.find(e); it != nil && (err != nil || it.index == index) && it.isAnnounced(e.item) {
		return // the server has announced the item twice
	}
	a.begin(index, e.item)
}

// itemOf returns the item to which a piece belongs. If none exists, it begins one; if the item has another kind or has ended, it returns
// nil.
func (a *Assembler) itemOf(e *ev, kind itemKind, typ string) *item {
	it := a.find(e)
	switch {
	case it == nil:
		a.Damage(faultEventOrder)
		index, err := strconv.Atoi(string(e.index))
		if err != nil {
			index = len(a.items)
		}
		return a.begin(index, wire.ObjectOf("type", typ, "id", rawjson.Text(e.id)))
	case it.kind != kind || it.done:
		a.Damage(faultEventOrder)
		return nil
	}
	return it
}

// readPart handles the beginning of a part of a message, or its end. Of the end only the annotations are read, because the pieces and the
// end of the item contain the rest.
func (a *Assembler) readPart(e *ev) {
	it := a.find(e)
	if string(e.typ) == `"response.content_part.done"` {
		if it != nil && it.kind == itemMessage && !it.done {
			index := number(e.content, 0)
			if i := slices.IndexFunc(it.parts, func(p *part) bool { return p.index == index }); i >= 0 {
				a.cite(it.parts[i], get(e.part, "annotations"))
				return
			}
		}
		return
	}
	if it == nil || it.done {
		a.Damage(faultEventOrder)
		return
	}
	if it.kind == itemMessage {
		p := a.partOf(it, number(e.content, len(it.parts)), partKindOf(text(e.part, "type")))
		if p != nil {
			p.announced = true
		}
	}
}

// number returns the integer in raw, or other if raw is not an integer.
func number(raw []byte, other int) int {
	if n, err := strconv.Atoi(string(raw)); err == nil {
		return n
	}
	return other
}

// partOf returns the part of a message with an index, and adds it if necessary. It returns nil if there are too many parts.
func (a *Assembler) partOf(it *item, index int, kind partKind) *part {
	for i := len(it.parts) - 1; i >= 0; i-- {
		if it.parts[i].index == index {
			return it.parts[i]
		}
	}
	if len(it.parts) == maxItems {
		a.Err = fmt.Errorf("%w: more than %d parts", wire.ErrTooLarge, maxItems)
		return nil
	}
	p := &part{index: index, kind: kind}
	it.parts = append(it.parts, p)
	a.Grow(itemSize)
	return p
}
