package messages

import (
	"bytes"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// A block is a content block, as far as it was received.
type block struct {
	index  int
	kind   blockKind
	closed bool
	start  []byte          // of an opaque block: content_block unchanged; of a call: its input
	text   strings.Builder // text, thinking, the input of a call or of an opaque block
	data   strings.Builder // the signature, or the data of redacted thinking
	extra  []lathe.Member  // unknown members of a text or a call
	added  []addition      // members that deltas have added to an opaque block

	citations []byte // of a text: encoded elements, separated by commas

	// Only for calls. emitInput maintains sent, begun and blank.
	call       int // number of the call in the answer
	id, name   string
	sent       int  // number of bytes of text that were emitted as deltas
	begun      bool // text is more than white space
	blank      int  // number of leading bytes of text that are white space, unless begun
	incomplete bool // the answer ended within the input
}

type blockKind uint8

const (
	blockText blockKind = iota
	blockThinking
	blockRedacted
	blockCall
	blockHelper // a call of [helperTool]: its input is the text of the answer
	blockOpaque
)

// An addition is a member that deltas have added to an opaque block. The value is the strings joined, or the last value.
type addition struct {
	name  string
	value []byte
}

// write appends the text of a JSON string to b and returns the added text, which shares the memory of b. strings.Builder never overwrites
// it.
func (a *assembler) write(b *strings.Builder, quoted []byte) string {
	text := rawjson.Text(quoted)
	a.Grow(len(text))
	start := b.Len()
	b.WriteString(text)
	return b.String()[start:]
}

// startBlock opens a block. Other blocks remain open, since deltas contain the index of their block.
func (a *assembler) startBlock(index int, v []byte) {
	typ := text(v, "type")
	if typ == "" {
		a.fault(faultBadEvent)
		return
	}
	if isRepeated(a, index, v) {
		a.fault(faultOrder)
		return
	}
	n := len(a.blocks)
	isOpen := n > 0 && !a.blocks[n-1].closed // the block before
	if index != n || isOpen {
		a.fault(faultOrder)
	}
	a.settlePending("") // a block follows that call, so the answer did not end within its input
	b := &block{index: index}
	a.blocks = append(a.blocks, b)
	a.Grow(blockSize)
	switch typ {
	case "text":
		if n > 0 && a.blocks[n-1].kind == blockText {
			a.Emit(lathe.Delta{Kind: lathe.DeltaTextEnd, Name: string(lathe.WireMessages)})
		}
		b.startText(a, v)
	case "thinking":
		b.kind = blockThinking
		a.write(&b.data, get(v, "signature"))
		a.EmitText(lathe.DeltaReasoning, 0, a.write(&b.text, get(v, "thinking")))
	case "redacted_thinking":
		b.kind = blockRedacted
		data := a.write(&b.data, get(v, "data"))
		a.Emit(lathe.Delta{Kind: lathe.DeltaReasoningData, Name: fieldRedacted, Text: data})
	case "tool_use":
		a.startCall(b, v)
	default:
		b.kind, b.start = blockOpaque, bytes.Clone(v)
		a.Grow(len(v))
	}
}

// startText reads the beginning of a text block.
func (b *block) startText(a *assembler, v []byte) {
	b.extra = wire.OtherMembers(v, "type", "text", citations)
	for el := range rawjson.Elements(get(v, citations)) {
		b.cite(el)
		a.Grow(len(el))
	}
	a.EmitText(lathe.DeltaText, 0, a.write(&b.text, get(v, "text")))
}

// startCall reads the beginning of a call. Input in it is used only if no delta has input.
func (a *assembler) startCall(b *block, v []byte) {
	b.id, b.name = text(v, "id"), text(v, "name")
	input := get(v, "input")
	isEmpty := rawjson.SkipSpace(input, 1) == len(input)-1
	if rawjson.Kind(input) == '{' && !isEmpty {
		b.start = bytes.Clone(input)
	}
	a.Grow(len(b.id) + len(b.name) + len(b.start))
	if b.name == helperTool {
		b.kind = blockHelper
		return
	}
	b.kind, b.call = blockCall, a.calls
	b.extra = wire.OtherMembers(v, "type", "id", "name", "input")
	for _, m := range b.extra {
		a.Grow(len(m.Name) + len(m.Value))
	}
	a.calls++
	if a.calls > a.Opts.MaxCalls && a.Err == nil {
		a.Err = wire.ErrTooManyCalls
	}
	a.Emit(lathe.Delta{Kind: lathe.DeltaCallStart, Index: b.call, ID: b.id, Name: b.name})
}

// citations is the member of a text block that lists its sources.
const citations = "citations"

func (b *block) cite(citation []byte) {
	if len(b.citations) > 0 {
		b.citations = append(b.citations, ',')
	}
	b.citations = append(b.citations, citation...)
}

// takeDelta reads the delta of content_block_delta.
func (a *assembler) takeDelta(index int, v []byte) {
	b := a.open(index)
	if b == nil {
		a.fault(faultOrder)
		return
	}
	if b != a.blocks[len(a.blocks)-1] {
		a.fault(faultOrder)
	}
	typ := get(v, "type")
	switch {
	case b.kind == blockOpaque:
		a.addTo(b, typ, v)
	case b.kind == blockText && string(typ) == `"text_delta"`:
		a.EmitText(lathe.DeltaText, 0, a.write(&b.text, get(v, "text")))
	case b.kind == blockText && string(typ) == `"citations_delta"`:
		if c := get(v, "citation"); c != nil {
			a.Grow(len(c) + 1)
			b.cite(c)
		}
	case b.kind == blockThinking && string(typ) == `"thinking_delta"`:
		a.EmitText(lathe.DeltaReasoning, 0, a.write(&b.text, get(v, "thinking")))
	case b.kind == blockThinking && string(typ) == `"signature_delta"`:
		a.write(&b.data, get(v, "signature"))
	case b.kind == blockCall && string(typ) == `"input_json_delta"`:
		a.write(&b.text, get(v, "partial_json"))
		a.emitInput(b)
	case b.kind == blockHelper && string(typ) == `"input_json_delta"`:
		a.EmitText(lathe.DeltaText, 0, a.write(&b.text, get(v, "partial_json")))
	default:
		a.fault(faultUnknownEvent)
	}
}

// emitInput appends a delta with the part of a call's input that was received after the last delta. Leading white space is not emitted
// until other text follows, because a blank input means {}.
func (a *assembler) emitInput(b *block) {
	if !b.begun {
		if strings.Trim(b.text.String()[b.blank:], " \t\r\n") == "" {
			b.blank = b.text.Len()
			return
		}
		b.begun = true
	}
	s := b.text.String()[b.sent:]
	b.sent = b.text.Len()
	a.EmitText(lathe.DeltaCallArgs, b.call, s)
}

// setInput replaces and emits the input of a call for which only white space was received.
func (b *block) setInput(a *assembler, input string) {
	b.text.Reset()
	b.text.WriteString(input)
	b.sent, b.blank = 0, 0
	a.emitInput(b)
}

// addTo merges a delta into an opaque block. The text of input_json_delta becomes its input. From other deltas, strings are appended to the
// member with the same name, and other values replace it.
func (a *assembler) addTo(b *block, typ, v []byte) {
	if string(typ) == `"input_json_delta"` {
		a.write(&b.text, get(v, "partial_json"))
		return
	}
	for key, value := range rawjson.Members(v) {
		name := rawjson.Text(key)
		if name == "type" || isNull(value) {
			continue
		}
		a.Grow(len(value))
		i := slices.IndexFunc(b.added, func(earlier addition) bool { return earlier.name == name })
		switch {
		case i < 0 && len(b.added) == maxAdditions:
			a.fault(faultUnknownEvent)
		case i < 0:
			b.added = append(b.added, addition{name, bytes.Clone(value)})
		case rawjson.Kind(value) == '"' && rawjson.Kind(b.added[i].value) == '"':
			old := b.added[i].value
			b.added[i].value = append(old[:len(old)-1], value[1:]...)
		default:
			b.added[i].value = bytes.Clone(value)
		}
	}
}

// maxAdditions bounds the members that deltas add to one block.
const maxAdditions = 32

// closeBlock closes a block and emits the deltas that its end requires.
func (a *assembler) closeBlock(b *block) {
	b.closed = true
	switch b.kind {
	case blockText:
		if t, ok := b.part().(lathe.Text); ok && len(t.Extra) > 0 {
			a.Emit(lathe.Delta{Kind: lathe.DeltaTextEnd, Name: string(lathe.WireMessages), Part: t})
		}
	case blockOpaque:
		a.Emit(lathe.Delta{Kind: lathe.DeltaPart, Name: string(lathe.WireMessages), Part: b.part()})
	case blockThinking:
		if b.data.Len() > 0 {
			a.Emit(lathe.Delta{Kind: lathe.DeltaReasoningData, Name: fieldThinking, Text: b.data.String()})
		}
	case blockHelper:
		if strings.TrimSpace(b.text.String()) == "" {
			if b.start == nil {
				b.start = []byte("{}")
			}
			b.text.Write(b.start)
			a.Emit(lathe.Delta{Kind: lathe.DeltaText, Text: string(b.start)})
		}
	case blockCall:
		if !b.begun && b.start != nil {
			b.setInput(a, string(b.start))
		}
		a.settlePending("")
		a.pending = b
		if b.complete() { // otherwise the call ends when the stop reason or another block shows whether it was truncated
			a.settlePending("")
		}
	}
}

// complete reports whether the input of a call is a JSON object.
func (b *block) complete() bool { return b.begun && wire.Sendable([]byte(b.text.String())) }

// truncates reports whether an answer with this stop reason may end within the arguments of its last call.
func truncates(stop string) bool {
	return stop == "max_tokens" || stop == "model_context_window_exceeded" || stop == "refusal"
}

// settlePending ends the pending call. stop is the stop reason of the answer, or "" if it is not known. If the stop reason does not explain
// why the input is incomplete, a blank input means a call without arguments.
func (a *assembler) settlePending(stop string) {
	b := a.pending
	if b == nil {
		return
	}
	a.pending = nil
	switch {
	case b.complete(): // nothing is wrong
	case truncates(stop):
		b.incomplete = true
	case b.begun:
		a.fault(faultArguments)
	default:
		b.setInput(a, "{}")
	}
	a.Emit(lathe.Delta{Kind: lathe.DeltaCallEnd, Index: b.call, Incomplete: b.incomplete})
}
