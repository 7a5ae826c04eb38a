package openai

import (
	"bytes"
	"encoding/json"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// takeReasoning adds the reasoning of one member of the chunk, since some servers send the same text in two members: that of the member
// which had reasoning before, else of the first one of reasoningFields. Another text in a second member is a fault. A member that is no
// string is stored as an unknown member.
func (a *Assembler) takeReasoning() {
	in := &a.chunk
	best := -1 // index of the member that is used
	for i, s := range in.reasoning {
		if s.ok() && !s.isString() {
			a.extra = a.mergeExtra(a.extra, &extraMember{key: reasoningFields[i], value: s})
		}
		if !s.full() {
			continue
		}
		if best >= 0 && !bytes.Equal(in.reasoning[best], s) {
			a.Fault(FaultReasoningRepeats)
		}
		if best < 0 || reasoningFields[i] == a.reasoningField {
			best = i
		}
	}
	if best < 0 {
		return
	}
	if a.reasoningField == "" {
		a.reasoningField = reasoningFields[best]
	}
	a.add(&a.reasoning, lathe.DeltaReasoning, in.reasoning[best])
}

// takeParts adds content that is an array of parts.
func (a *Assembler) takeParts(parts []byte) {
	if kind(parts) != '[' {
		a.Fault(FaultUnknownContent)
		return
	}
	for part := range rawjson.Elements(parts) {
		switch string(rawjson.At(part, "type")) {
		case `"text"`, `"output_text"`:
			a.add(&a.text, lathe.DeltaText, rawjson.At(part, "text"))
		case `"refusal"`:
			a.add(&a.refusal, lathe.DeltaRefusal, rawjson.At(part, "refusal"))
		case `"thinking"`, `"reasoning"`:
			a.takeThinking(part)
		case `"image_url"`, `"input_audio"`, `"file"`:
			b, ok := readBlob(part)
			if !ok {
				a.Fault(FaultUnknownContent)
				continue
			}
			a.Grow(len(part))
			a.blobs = append(a.blobs, b)
		default:
			a.Fault(FaultUnknownContent)
		}
	}
}

// takeThinking adds the reasoning in a part, which is a string or an array of text parts.
func (a *Assembler) takeThinking(part []byte) {
	for _, key := range []string{"thinking", "reasoning", "text"} {
		v := rawjson.At(part, key)
		if v == nil {
			continue
		}
		a.add(&a.reasoning, lathe.DeltaReasoning, v)
		for el := range rawjson.Elements(v) {
			a.add(&a.reasoning, lathe.DeltaReasoning, rawjson.At(el, "text"))
		}
		return
	}
	a.Fault(FaultUnknownContent)
}

// mergeExtra stores an unknown member. If the member is received again, the last value replaces the first, except that arrays are
// concatenated. Members beyond maxExtra are dropped and counted as a fault.
func (a *Assembler) mergeExtra(members []lathe.Member, m *extraMember) []lathe.Member {
	raw := m.value
	if emptyValue(raw) {
		return members
	}
	a.Grow(len(m.key) + len(raw))
	for i := range members {
		if members[i].Name != m.key {
			continue
		}
		if old := members[i].Value; old[0] == '[' && raw[0] == '[' {
			members[i].Value = append(append(bytes.TrimSuffix(old, []byte("]")), ','), raw[1:]...)
		} else {
			members[i].Value = bytes.Clone(raw)
		}
		return members
	}
	if len(members) == maxExtra {
		a.Fault(FaultUnknownContent)
		return members
	}
	return append(members, lathe.Member{Name: m.key, Value: json.RawMessage(bytes.Clone(raw))})
}

// emptyValue reports whether a value carries no information: "", {}, [], null or false.
func emptyValue(raw []byte) bool {
	switch string(raw) {
	case `""`, "{}", "null", "false":
		return true
	}
	return wire.EmptyArray(raw)
}
