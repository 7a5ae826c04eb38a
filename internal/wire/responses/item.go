// The state of one output item of a streamed answer, and what the events about an item change in it.

package responses

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// An itemKind is the type of an item, as far as it determines the parts of the message.
type itemKind uint8

const (
	itemOpaque itemKind = iota // unknown type; kept unchanged
	itemMessage
	itemReasoning
	itemCall
	itemCustom
)

func kindOf(typ string) itemKind {
	switch typ {
	case "message":
		return itemMessage
	case "reasoning":
		return itemReasoning
	case "function_call":
		return itemCall
	case typeCustomCall:
		return itemCustom
	}
	return itemOpaque
}

// A partKind is the type of a content part of a message item.
type partKind uint8

const (
	partOther partKind = iota
	partText
	partRefusal
)

func partKindOf(typ string) partKind {
	switch typ {
	case "output_text", "text":
		return partText
	case "refusal":
		return partRefusal
	}
	return partOther
}

// Names of the members of a reasoning item that contain text.
const (
	thoughtSummary = "summary"
	thoughtContent = "content"
)

// An item is an output item, as far as it was received. itemReader.begin creates it, the events about it add to it, and close, which reads its
// complete form, or endOpenItems sets done. After that only settle looks at it again. Its kind determines which of the embedded contents
// it has.
type item struct {
	index   int
	id      string
	kind    itemKind
	done    bool // its end was read
	settled bool // it was compared with its form in the response object

	messageContent
	callContent
	reasoningContent
	raw []byte // JSON of an opaque item
}

type messageContent struct {
	phase string
	parts []*part
}

type callContent struct {
	call             int // number of the call in the answer
	callID, callName string
	args             strings.Builder // in the internal form, a JSON object
	started          bool            // DeltaCallStart was emitted
	cut              bool            // the arguments are incomplete or not certain, so the call must not be executed
	extra            []lathe.Member  // unknown members
}

type reasoningContent struct {
	text     strings.Builder
	from     string // the member that contained the text: thoughtSummary or thoughtContent
	lastText int    // index in that member of the text that was received last
	data     string // opaque data
}

// hasCallID reports whether the server has sent the call id of the item. Until then the id of the item takes its place.
func (it *item) hasCallID() bool { return it.callID != "" && it.callID != it.id }

// announcesAgain reports whether raw announces the item again. Calls are compared by their call ids. Other items have the same id, and
// the first must be open: some servers give all items one id.
func (it *item) announcesAgain(raw []byte) bool {
	if callID := text(raw, "call_id"); callID != "" && it.hasCallID() {
		return callID == it.callID
	}
	id := text(raw, "id")
	return id != "" && id == it.id && !it.done
}

// A part is a part of a message.
type part struct {
	index     int
	kind      partKind
	announced bool // response.content_part.added was read, or its absence was counted
	text      strings.Builder
	extra     []lathe.Member
}

// part returns the part of a message with an index, or nil.
func (it *item) part(index int) *part {
	for _, p := range slices.Backward(it.parts) {
		if p.index == index {
			return p
		}
	}
	return nil
}

// An itemReader reads the events about items. The pieces of a text are appended to it. The event that ends the text, the one that ends the item,
// and the response object contain the complete text; of each, only what the pieces lacked is appended.
type itemReader struct {
	wire.Assembly
	items items
	calls int // number of items that are calls

	created bool // response.created or a similar event was read
}

// write appends text to b and returns it as a string that shares the memory of b. strings.Builder never overwrites it.
func (r *itemReader) write(b *strings.Builder, text string) string {
	start := b.Len()
	b.WriteString(text)
	r.Grow(len(text))
	return b.String()[start:]
}

// missing returns what the pieces in received lack of the complete text. It returns false if the text does not begin with them.
func missing(received *strings.Builder, complete string) (string, bool) {
	if !strings.HasPrefix(complete, received.String()) {
		return "", false
	}
	return complete[received.Len():], true
}

// readDone handles response.output_item.done.
func (r *itemReader) readDone(e *streamEvent) {
	if rawjson.Kind(e.item) != '{' {
		r.Damage(faultBadLine)
		return
	}
	it := r.find(e)
	if it == nil {
		r.Damage(faultEventOrder)
		if it = r.begin(number(e.index, len(r.items)), e.item); it == nil {
			return
		}
	}
	if it.done || it.kind != kindOf(text(e.item, "type")) {
		r.Damage(faultEventOrder)
		return
	}
	r.close(it, e.item)
}

// close reads the complete item at its end.
func (r *itemReader) close(it *item, raw []byte) {
	it.done = true
	switch it.kind {
	case itemMessage:
		r.closeMessage(it, raw)
	case itemReasoning:
		r.closeReasoning(it, raw)
	case itemCall, itemCustom:
		r.closeCall(it, raw)
	case itemOpaque:
		if rawjson.Check(raw, rawjson.Limits{}) != nil {
			r.Damage(faultUnknownContent)
			return
		}
		it.raw = rawjson.AppendCompact(nil, raw)
		r.Grow(len(it.raw))
		r.Emit(lathe.Delta{Kind: lathe.DeltaPart, Name: string(lathe.WireResponses), Part: lathe.Opaque{JSON: it.raw}})
	}
}

// readText handles an event with a piece of a content part, or with its complete text.
func (r *itemReader) readText(e *streamEvent, kind partKind) {
	it := r.itemOf(e, itemMessage, "message")
	if it == nil {
		return
	}
	p := r.partOf(it, number(e.content, 0), kind)
	if p == nil {
		return
	}
	if !p.announced {
		p.announced = true
		r.Damage(faultEventOrder)
	}
	if e.isEnd {
		r.completeText(it, p, rawjson.Text(e.text))
	} else {
		r.appendText(it, p, rawjson.Text(e.delta))
	}
}

// completeText appends what the pieces of a content part lacked of its text.
func (r *itemReader) completeText(it *item, p *part, text string) {
	more, ok := missing(&p.text, text)
	if !ok {
		r.Damage(faultTextDiffers)
	}
	r.appendText(it, p, more)
}

// appendText appends a piece to a content part.
func (r *itemReader) appendText(it *item, p *part, text string) {
	if text == "" {
		return
	}
	if p.text.Len() == 0 && p.kind == partText && followsText(r.items, it, p) {
		r.Emit(lathe.Delta{Kind: lathe.DeltaTextEnd, Name: string(lathe.WireResponses)})
	}
	kind := lathe.DeltaText
	switch {
	case p.kind == partRefusal:
		kind = lathe.DeltaRefusal
	case p.kind == partOther:
		return
	case it.phase == phaseCommentary:
		kind = lathe.DeltaCommentary
	}
	r.EmitText(kind, 0, r.write(&p.text, text))
}

// followsText reports whether the part before p is a text. It is the previous part of the item or, for the first part, the last part of the
// previous item.
func followsText(items []*item, it *item, p *part) bool {
	if i := slices.Index(it.parts, p); i > 0 {
		return it.parts[i-1].kind == partText
	}
	i := slices.Index(items, it)
	if i <= 0 {
		return false
	}
	before := items[i-1].parts
	return len(before) > 0 && before[len(before)-1].kind == partText
}

// cite adds the annotations of a text that has ended, unless it already has annotations.
func (p *part) cite(r *itemReader, v []byte) {
	if p.kind != partText || p.extra != nil || v == nil || wire.EmptyArray(v) || rawjson.Check(v, rawjson.Limits{}) != nil {
		return
	}
	p.extra = []lathe.Member{{Name: "annotations", Value: rawjson.AppendCompact(nil, v)}}
	r.Grow(len(v))
	t := lathe.Text{Text: p.text.String(), Extra: p.extra}
	r.Emit(lathe.Delta{Kind: lathe.DeltaTextEnd, Name: string(lathe.WireResponses), Part: t})
}

// closeMessage reads a complete message. Once it has parts, it does not become commentary: their text was emitted as an answer.
func (r *itemReader) closeMessage(it *item, raw []byte) {
	if phase := text(raw, "phase"); phase != "" && (phase != phaseCommentary || len(it.parts) == 0) {
		it.phase = phase
	}
	i := 0
	for el := range rawjson.Elements(get(raw, "content")) {
		r.closePart(it, i, el)
		if r.Err != nil {
			return
		}
		i++
	}
}

// closePart reads a complete content part. A text that has no annotations yet gets those of the part.
func (r *itemReader) closePart(it *item, index int, raw []byte) {
	kind := partKindOf(text(raw, "type"))
	p := r.partOf(it, index, kind)
	if p == nil {
		return
	}
	name := "text"
	switch {
	case kind == partOther:
		r.Fault(faultUnknownContent)
		return
	case kind != p.kind:
		r.Damage(faultEventOrder)
		return
	case kind == partRefusal:
		name = "refusal"
	}
	r.completeText(it, p, rawjson.Text(get(raw, name)))
	p.cite(r, get(raw, "annotations"))
}

// readReasoning handles an event about the text with an index in a member of a reasoning item. Complete texts are ignored, because the end
// of the item contains them.
func (r *itemReader) readReasoning(e *streamEvent, from string, index []byte) {
	if it := r.itemOf(e, itemReasoning, "reasoning"); it != nil && !e.isEnd {
		r.appendReasoning(it, from, number(index, 0), rawjson.Text(e.delta))
	}
}

// appendReasoning appends a piece of reasoning. The texts of an item are separated by blank lines. Text from a second member is ignored.
func (r *itemReader) appendReasoning(it *item, from string, index int, text string) {
	if text == "" {
		return
	}
	if it.from != "" && it.from != from {
		r.Fault(faultReasoningTwice)
		return
	}
	if it.text.Len() > 0 && it.lastText != index {
		r.EmitText(lathe.DeltaReasoning, 0, r.write(&it.text, partBreak))
	}
	it.from, it.lastText = from, index
	r.EmitText(lathe.DeltaReasoning, 0, r.write(&it.text, text))
}

// closeReasoning reads a complete reasoning item: the member from which the pieces came or, without pieces, the first that has text; and the
// opaque data.
func (r *itemReader) closeReasoning(it *item, raw []byte) {
	for _, from := range [...]string{thoughtSummary, thoughtContent} {
		if it.from != "" && it.from != from {
			continue
		}
		var texts []string
		for el := range rawjson.Elements(get(raw, from)) {
			if t := text(el, "text"); t != "" {
				texts = append(texts, t)
			}
		}
		if len(texts) == 0 {
			continue
		}
		it.from = from
		more, ok := missing(&it.text, strings.Join(texts, partBreak))
		if !ok {
			r.Damage(faultTextDiffers)
		}
		r.EmitText(lathe.DeltaReasoning, 0, r.write(&it.text, more))
	}
	if it.data = text(raw, fieldEncrypted); it.data != "" {
		r.Grow(len(it.data))
		r.Emit(lathe.Delta{Kind: lathe.DeltaReasoningData, Name: fieldEncrypted, ID: it.id, Text: it.data})
	}
}

// readArguments handles an event with a piece of the arguments of a call, or with all of them.
func (r *itemReader) readArguments(e *streamEvent, kind itemKind) {
	typ := "function_call"
	if kind == itemCustom {
		typ = typeCustomCall
	}
	it := r.itemOf(e, kind, typ)
	if it == nil {
		return
	}
	if e.isEnd {
		it.completeArguments(r, rawjson.Text(e.text))
	} else {
		it.appendArguments(r, rawjson.Text(e.delta))
	}
}

// completeArguments appends what the pieces of a call's arguments lacked of the complete arguments or, for a custom tool, of its input.
// endCall appends the end of the internal form of such an input.
func (it *item) completeArguments(r *itemReader, text string) {
	if it.kind == itemCustom {
		text = customOpen + quoted(text)
	}
	more, ok := missing(&it.args, text)
	if !ok && !rawjson.Equal([]byte(it.args.String()), []byte(text)) { // some servers re-encode the arguments at the end of a call
		it.cut = true
		r.Damage(faultArgsDiffer)
	}
	it.emitArguments(r, more)
}

// appendArguments appends a piece of the arguments of a call or, for a custom tool, of its input.
func (it *item) appendArguments(r *itemReader, text string) {
	if it.kind == itemCustom && text != "" {
		text = quoted(text)
		if it.args.Len() == 0 {
			text = customOpen + text
		}
	}
	it.emitArguments(r, text)
}

func (it *item) emitArguments(r *itemReader, text string) {
	if text == "" {
		return
	}
	it.start(r)
	r.EmitText(lathe.DeltaCallArgs, it.call, r.write(&it.args, text))
}

// customOpen and customClose enclose the escaped input of a custom tool, which is one string argument in the internal form.
const (
	customOpen  = `{"input":"`
	customClose = `"}`
)

// quoted returns text as a JSON string without the quotes.
func quoted(text string) string {
	q := rawjson.AppendQuote(nil, text)
	return string(q[1 : len(q)-1])
}

// name reads the id and the name of a call. If the item has no call_id, its own id is used.
func (it *item) name(raw []byte) {
	it.callID = cmp.Or(text(raw, "call_id"), it.callID, it.id)
	if name := text(raw, "name"); name != "" {
		it.callName = joinName(text(raw, "namespace"), name)
	}
}

// start emits DeltaCallStart, unless it was emitted.
func (it *item) start(r *itemReader) {
	if !it.started {
		it.started = true
		r.Emit(lathe.Delta{Kind: lathe.DeltaCallStart, Index: it.call, ID: it.callID, Name: it.callName})
	}
}

// closeCall reads a complete call. Its id and name count only if DeltaCallStart was not emitted yet. Empty arguments after pieces are ignored.
func (r *itemReader) closeCall(it *item, raw []byte) {
	if !it.started {
		it.name(raw)
		r.Grow(len(it.callID) + len(it.callName))
	}
	name := "arguments"
	if it.kind == itemCustom {
		name = inputName
	}
	if v := get(raw, name); v != nil && (len(v) > len(`""`) || it.args.Len() == 0) {
		it.completeArguments(r, rawjson.Text(v))
	}
	if rawjson.Check(raw, rawjson.Limits{}) == nil {
		it.extra = members(raw, "type", "id", "call_id", "name", "namespace", "status", name)
	}
	it.cut = it.cut || text(raw, "status") == statusIncomplete
	it.endCall(r)
}

// endCall emits the end of a call. A call without arguments gets the arguments {}.
func (it *item) endCall(r *itemReader) {
	it.start(r)
	if !it.cut {
		end := ""
		switch {
		case it.kind == itemCustom && it.args.Len() == 0:
			end = customOpen + customClose
		case it.kind == itemCustom:
			end = customClose
		case it.args.Len() == 0:
			end = "{}"
		}
		r.EmitText(lathe.DeltaCallArgs, it.call, r.write(&it.args, end))
	}
	r.Emit(lathe.Delta{Kind: lathe.DeltaCallEnd, Index: it.call, Incomplete: it.cut, ID: it.callID})
}
