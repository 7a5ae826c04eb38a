package responses

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// The kinds of [lathe.Fault] that an Assembler counts. After Damage instead of Fault, the server's own text of the answer is not relayed.
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
	itemReader

	notStreamed  bool // the answer is a body, not events
	terminal     bool // the terminal event was read
	streamClosed bool // [DONE] was read

	// Set by the terminal event:
	status string // completed, incomplete or failed
	reason string // reason why the answer is incomplete
	usage  lathe.Usage
	cost   *float64
}

// NewAssembler implements [wire.Upstream].
func (Codec) NewAssembler(opts *wire.AssemblerOptions) wire.Assembler {
	return &Assembler{itemReader: itemReader{Assembly: wire.NewAssembly(opts)}}
}

// Done implements [wire.Assembler].
func (a *Assembler) Done() bool { return a.terminal || a.streamClosed }

// Finished implements [wire.Assembler].
func (a *Assembler) Finished() bool { return a.terminal }

// Append implements [wire.Assembler].
func (a *Assembler) Append(dst []lathe.Delta, event string, data []byte) ([]lathe.Delta, error) {
	a.Out = dst
	line := bytes.TrimSpace(data)
	var e streamEvent
	switch {
	case a.Err != nil:
	case len(line) == 0 || string(line) == endOfStream:
		a.streamClosed = a.streamClosed || len(line) > 0
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
func (a *Assembler) take(e *streamEvent, data []byte) {
	name := rawjson.Text(e.typ)
	e.isEnd = strings.HasSuffix(name, ".done")
	switch name {
	case "response.output_text.delta", "response.output_text.done":
		a.readText(e, partText)
	case "response.refusal.delta", "response.refusal.done":
		a.readText(e, partRefusal)
	case "response.function_call_arguments.delta", "response.function_call_arguments.done":
		a.readArguments(e, itemCall)
	case "response.custom_tool_call_input.delta", "response.custom_tool_call_input.done":
		a.readArguments(e, itemCustom)
	case "response.reasoning_summary_text.delta", "response.reasoning_summary_text.done":
		a.readReasoning(e, thoughtSummary, e.summary)
	case "response.reasoning_text.delta", "response.reasoning_text.done", "response.reasoning.delta", "response.reasoning.done":
		a.readReasoning(e, thoughtContent, e.content)
	case "response.output_item.added":
		a.readAdded(e)
	case "response.output_item.done":
		a.readDone(e)
	case "response.content_part.added":
		a.readPartAdded(e)
	case "response.content_part.done":
		a.readPartDone(e)
	case "response.created", "response.in_progress", "response.queued":
		a.created = true
		a.readNames(e.response)
	case "response.completed", "response.incomplete", "response.failed":
		if e.response == nil {
			a.Damage(faultBadLine)
			return
		}
		a.end(e.response, strings.TrimPrefix(name, eventPrefix))
	case "error":
		a.Err = Codec{}.ParseError(0, data)
	case "keepalive", "ping", "response.output_text.annotation.added":
	case "response.reasoning_summary_part.added", "response.reasoning_summary_part.done": // the pieces and the end of the item have the same content
	default:
		if it := a.find(e); it == nil || it.kind != itemOpaque { // other events about an opaque item report only its progress
			a.Fault(faultUnknownEvent)
		}
	}
}

func (a *Assembler) readNames(response []byte) {
	if a.ID == "" {
		a.ID = text(response, "id")
		a.Grow(len(a.ID))
	}
	if a.Model == "" {
		a.Model = text(response, "model")
		a.Grow(len(a.Model))
	}
}

// find returns the item of an event: the one at its index, else the one with its id, else, if the event has neither, the last item that has
// not ended. It returns nil if none exists.
func (r *itemReader) find(e *streamEvent) *item {
	if rawjson.Kind(e.item) == '{' {
		return r.items.match(number(e.index, -1), e.item)
	}
	index, err := strconv.Atoi(string(e.index))
	hasIndex := err == nil
	if hasIndex {
		if it := r.items.at(index); it != nil {
			return it
		}
	}
	if hasIndex || len(e.id) > 0 { // the event says which item it is about, so it is not about the last one
		return r.items.withID(rawjson.Text(e.id))
	}
	if i := len(r.items) - 1; i >= 0 && !r.items[i].done {
		return r.items[i]
	}
	return nil
}

// begin adds an item. It returns nil if a limit is reached; r.Err is then set.
func (r *itemReader) begin(index int, raw []byte) *item {
	if len(r.items) == maxItems {
		r.Err = fmt.Errorf("%w: more than %d items", wire.ErrTooLarge, maxItems)
		return nil
	}
	it := &item{index: index, id: text(raw, "id"), kind: kindOf(text(raw, "type"))}
	r.items = append(r.items, it)
	r.Grow(itemSize + len(it.id))
	switch it.kind {
	case itemMessage:
		it.phase = text(raw, "phase")
	case itemCall, itemCustom:
		if r.calls == r.Opts.MaxCalls {
			r.Err = wire.ErrTooManyCalls
			return nil
		}
		it.call = r.calls
		r.calls++
		it.name(raw)
		r.Grow(len(it.callID) + len(it.callName))
		if it.callName != "" && it.callID != "" {
			it.start(r)
		}
	case itemReasoning, itemOpaque:
	}
	return it
}

// readAdded handles response.output_item.added.
func (r *itemReader) readAdded(e *streamEvent) {
	if rawjson.Kind(e.item) != '{' {
		r.Damage(faultBadLine)
		return
	}
	index, err := strconv.Atoi(string(e.index))
	hasIndex := err == nil
	if !hasIndex {
		index = len(r.items)
	}
	if !hasIndex || !r.created || r.items.at(index) != nil {
		r.Damage(faultEventOrder)
	}
	it := r.find(e)
	mayRepeat := it != nil && (!hasIndex || it.index == index)
	if mayRepeat && it.announcesAgain(e.item) {
		return
	}
	r.begin(index, e.item)
}

// itemOf returns the item to which a piece belongs. If none exists, it begins one; if the item has another kind or has ended, it returns
// nil.
func (r *itemReader) itemOf(e *streamEvent, kind itemKind, typ string) *item {
	it := r.find(e)
	switch {
	case it == nil:
		r.Damage(faultEventOrder)
		return r.begin(number(e.index, len(r.items)), wire.ObjectOf("type", typ, "id", rawjson.Text(e.id)))
	case it.kind != kind || it.done:
		r.Damage(faultEventOrder)
		return nil
	}
	return it
}

// readPartAdded handles the beginning of a part of a message.
func (r *itemReader) readPartAdded(e *streamEvent) {
	it := r.find(e)
	switch {
	case it == nil || it.done:
		r.Damage(faultEventOrder)
	case it.kind == itemMessage:
		if p := r.partOf(it, number(e.content, len(it.parts)), partKindOf(text(e.part, "type"))); p != nil {
			p.announced = true
		}
	}
}

// readPartDone handles the end of a part of a message. Only the annotations are read, because the pieces and the end of the item contain the
// rest.
func (r *itemReader) readPartDone(e *streamEvent) {
	it := r.find(e)
	if it == nil || it.done || it.kind != itemMessage {
		return
	}
	if p := it.part(number(e.content, 0)); p != nil {
		p.cite(r, get(e.part, "annotations"))
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
func (r *itemReader) partOf(it *item, index int, kind partKind) *part {
	if p := it.part(index); p != nil {
		return p
	}
	if len(it.parts) == maxItems {
		r.Err = fmt.Errorf("%w: more than %d parts", wire.ErrTooLarge, maxItems)
		return nil
	}
	p := &part{index: index, kind: kind}
	it.parts = append(it.parts, p)
	r.Grow(itemSize)
	return p
}
