package responses

import (
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
	case "custom_tool_call":
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

// An item is an output item, as far as it was received.
type item struct {
	index int
	id    string
	kind  itemKind
	done  bool // its end was read
	// settled is set once the item was compared with its form in the response object.
	settled bool

	phase string  // of a message
	parts []*part // of a message

	call             int // index of a call
	callID, callName string
	args             strings.Builder // in the internal form, a JSON object
	started, cut     bool
	extra            []lathe.Member

	text  strings.Builder // of reasoning
	from  string          // member that contained the text
	piece int             // index of the last text in that member
	data  string          // opaque data of reasoning

	raw []byte // JSON of an opaque item
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
	announced bool
	text      strings.Builder
	extra     []lathe.Member
}

// write appends text to b and returns it as a string that shares the memory of b. strings.Builder never overwrites it.
func (a *Assembler) write(b *strings.Builder, text string) string {
	start := b.Len()
	b.WriteString(text)
	a.Grow(len(text))
	return b.String()[start:]
}

// rest returns the part of whole that follows the text in b. It returns false if whole does not begin with that text.
func rest(b *strings.Builder, whole string) (string, bool) {
	if !strings.HasPrefix(whole, b.String()) {
		return "", false
	}
	return whole[b.Len():], true
}

// readText handles an event with a piece of a content part or, if whole is set, with its complete text.
func (a *Assembler) readText(e *streamEvent, kind partKind, v []byte, whole bool) {
	it := a.itemOf(e, itemMessage, "message")
	if it == nil {
		return
	}
	p := a.partOf(it, number(e.content, 0), kind)
	if p == nil {
		return
	}
	if !p.announced {
		p.announced = true
		a.Damage(faultEventOrder)
	}
	a.appendText(it, p, rawjson.Text(v), whole)
}

// appendText appends a piece to a content part. If whole is set, text is the complete text, and only what its pieces lacked is appended.
func (a *Assembler) appendText(it *item, p *part, text string, whole bool) {
	if whole {
		more, ok := rest(&p.text, text)
		if !ok {
			a.Damage(faultTextDiffers)
		}
		text = more
	}
	if text == "" {
		return
	}
	if p.text.Len() == 0 && p.kind == partText && followsText(a.items, it, p) {
		a.Emit(lathe.Delta{Kind: lathe.DeltaTextEnd, Name: string(lathe.WireResponses)})
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
	a.EmitText(kind, 0, a.write(&p.text, text))
}

// followsText reports whether the part before p is a text. It is the previous part of the item or, for the first part, the last part of the
// previous item.
func followsText(items []*item, it *item, p *part) bool {
	if i := slices.Index(it.parts, p); i > 0 {
		return it.parts[i-1].kind == partText
	}
	i := len(items) - 1
	for i > 0 && items[i] != it {
		i--
	}
	if i <= 0 {
		return false
	}
	n := len(items[i-1].parts)
	return n > 0 && items[i-1].parts[n-1].kind == partText
}

// cite adds the annotations of a text that has ended, unless it already has annotations.
func (a *Assembler) cite(p *part, v []byte) {
	if p.kind != partText || p.extra != nil || v == nil || wire.EmptyArray(v) || rawjson.Check(v, rawjson.Limits{}) != nil {
		return
	}
	p.extra = []lathe.Member{{Name: "annotations", Value: rawjson.AppendCompact(nil, v)}}
	a.Grow(len(v))
	t := lathe.Text{Text: p.text.String(), Extra: p.extra}
	a.Emit(lathe.Delta{Kind: lathe.DeltaTextEnd, Name: string(lathe.WireResponses), Part: t})
}

// readReasoning handles an event with a piece of a text of a reasoning item. Complete texts are ignored.
func (a *Assembler) readReasoning(e *streamEvent, from string, index, v []byte, whole bool) {
	it := a.itemOf(e, itemReasoning, "reasoning")
	if it == nil || whole { // the end of the item contains all texts
		return
	}
	a.appendReasoning(it, from, number(index, 0), rawjson.Text(v))
}

// appendReasoning appends a piece of reasoning. The texts of an item are separated by blank lines. Text from a second member is ignored.
func (a *Assembler) appendReasoning(it *item, from string, index int, text string) {
	if text == "" {
		return
	}
	if it.from != "" && it.from != from {
		a.Fault(faultReasoningTwice)
		return
	}
	if it.text.Len() > 0 && it.piece != index {
		a.EmitText(lathe.DeltaReasoning, 0, a.write(&it.text, partBreak))
	}
	it.from, it.piece = from, index
	a.EmitText(lathe.DeltaReasoning, 0, a.write(&it.text, text))
}

// readArguments handles an event with a piece of the arguments of a call or, if whole is set, with all of them.
func (a *Assembler) readArguments(e *streamEvent, kind itemKind, v []byte, whole bool) {
	typ := "function_call"
	if kind == itemCustom {
		typ = "custom_tool_call"
	}
	it := a.itemOf(e, kind, typ)
	if it == nil {
		return
	}
	a.appendArguments(it, rawjson.Text(v), whole)
}

// appendArguments appends a piece to the arguments of a call. If whole is set, text is the complete arguments, and only what the pieces
// lacked is appended.
func (a *Assembler) appendArguments(it *item, text string, whole bool) {
	if it.kind == itemCustom {
		text = quoted(text)
		if whole || it.args.Len() == 0 && text != "" {
			text = customOpen + text
		}
	}
	if whole {
		more, ok := rest(&it.args, text)
		if !ok && !rawjson.Equal([]byte(it.args.String()), []byte(text)) { // some servers re-encode the arguments at the end of a call
			it.cut = true
			a.Damage(faultArgsDiffer)
		}
		text = more
	}
	if text == "" {
		return
	}
	it.start(a)
	a.EmitText(lathe.DeltaCallArgs, it.call, a.write(&it.args, text))
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
	if id := text(raw, "call_id"); id != "" {
		it.callID = id
	} else if it.callID == "" {
		it.callID = it.id
	}
	if name := text(raw, "name"); name != "" {
		it.callName = joinName(text(raw, "namespace"), name)
	}
}

// start emits DeltaCallStart, unless it was emitted.
func (it *item) start(a *Assembler) {
	if !it.started {
		it.started = true
		a.Emit(lathe.Delta{Kind: lathe.DeltaCallStart, Index: it.call, ID: it.callID, Name: it.callName})
	}
}

// finished handles response.output_item.done.
func (a *Assembler) finished(e *streamEvent) {
	if rawjson.Kind(e.item) != '{' {
		a.Damage(faultBadLine)
		return
	}
	it := a.find(e)
	if it == nil {
		a.Damage(faultEventOrder)
		if it = a.begin(number(e.index, len(a.items)), e.item); it == nil {
			return
		}
	}
	if it.done || it.kind != kindOf(text(e.item, "type")) {
		a.Damage(faultEventOrder)
		return
	}
	a.close(it, e.item)
}

// close reads the complete item at its end.
func (a *Assembler) close(it *item, raw []byte) {
	it.done = true
	switch it.kind {
	case itemMessage:
		if phase := text(raw, "phase"); phase != "" && (phase != phaseCommentary || len(it.parts) == 0) {
			it.phase = phase
		}
		i := 0
		for el := range rawjson.Elements(get(raw, "content")) {
			if a.closePart(it, i, el); a.Err != nil {
				return
			}
			i++
		}
	case itemReasoning:
		a.closeReasoning(it, raw)
	case itemCall, itemCustom:
		a.closeCall(it, raw)
	case itemOpaque:
		if rawjson.Check(raw, rawjson.Limits{}) != nil {
			a.Damage(faultUnknownContent)
			return
		}
		it.raw = rawjson.AppendCompact(nil, raw)
		a.Grow(len(it.raw))
		a.Emit(lathe.Delta{Kind: lathe.DeltaPart, Name: string(lathe.WireResponses), Part: lathe.Opaque{JSON: it.raw}})
	}
}

func (a *Assembler) closePart(it *item, index int, raw []byte) {
	kind := partKindOf(text(raw, "type"))
	p := a.partOf(it, index, kind)
	if p == nil {
		return
	}
	name := "text"
	switch {
	case kind == partOther:
		a.Fault(faultUnknownContent)
		return
	case kind != p.kind:
		a.Damage(faultEventOrder)
		return
	case kind == partRefusal:
		name = "refusal"
	}
	a.appendText(it, p, rawjson.Text(get(raw, name)), true)
	a.cite(p, get(raw, "annotations"))
}

func (a *Assembler) closeReasoning(it *item, raw []byte) {
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
		more, ok := rest(&it.text, strings.Join(texts, partBreak))
		if it.from = from; !ok {
			a.Damage(faultTextDiffers)
		}
		a.EmitText(lathe.DeltaReasoning, 0, a.write(&it.text, more))
	}
	if it.data = text(raw, fieldEncrypted); it.data != "" {
		a.Grow(len(it.data))
		a.Emit(lathe.Delta{Kind: lathe.DeltaReasoningData, Name: fieldEncrypted, ID: it.id, Text: it.data})
	}
}

func (a *Assembler) closeCall(it *item, raw []byte) {
	if !it.started {
		it.name(raw)
		a.Grow(len(it.callID) + len(it.callName))
	}
	name := "arguments"
	if it.kind == itemCustom {
		name = inputName
	}
	if v := get(raw, name); v != nil && (len(v) > len(`""`) || it.args.Len() == 0) {
		a.appendArguments(it, rawjson.Text(v), true)
	}
	if rawjson.Check(raw, rawjson.Limits{}) == nil {
		it.extra = members(raw, "type", "id", "call_id", "name", "namespace", "status", name)
	}
	it.cut = it.cut || text(raw, "status") == statusIncomplete
	a.endCall(it)
}

// endCall emits the end of a call. A call without arguments gets the arguments {}.
func (a *Assembler) endCall(it *item) {
	it.start(a)
	if !it.cut {
		more := ""
		switch {
		case it.kind == itemCustom && it.args.Len() == 0:
			more = customOpen + customClose
		case it.kind == itemCustom:
			more = customClose
		case it.args.Len() == 0:
			more = "{}"
		}
		a.EmitText(lathe.DeltaCallArgs, it.call, a.write(&it.args, more))
	}
	a.Emit(lathe.Delta{Kind: lathe.DeltaCallEnd, Index: it.call, Incomplete: it.cut, ID: it.callID})
}
