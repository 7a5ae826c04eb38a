package openai

import (
	"bytes"
	"encoding/json"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// A content contains what was received of an answer, except its calls. Functions whose names begin with take add to it.
type content struct {
	wire.Assembly
	chunk parsedChunk // the last chunk read
	line  int         // number of chunks read

	text, reasoning, refusal text   // the texts of the answer so far
	reasoningField           string // the member from which reasoning is read; "": none had reasoning yet
	blobs                    []lathe.Blob
	extra                    []lathe.Member
	usage                    lathe.Usage
	cost                     *float64
	damage                   damage
}

// takeReasoning adds the reasoning of the chunk. Some servers send the same text in two of the members reasoningFields, so only one is used:
// reasoningField if the chunk has text in it, else the first one with text. Another text in a second member is a fault. A member that is no
// string is stored as an unknown member.
func (r *content) takeReasoning() {
	in := &r.chunk
	best := -1 // index of the member that is used
	for i, s := range in.reasoning {
		if s.ok() && !s.isString() {
			r.extra = r.merged(r.extra, &extraMember{key: reasoningFields[i], value: s})
		}
		if !s.full() {
			continue
		}
		if best >= 0 && !bytes.Equal(in.reasoning[best], s) {
			r.Fault(FaultReasoningRepeats)
		}
		if best < 0 || reasoningFields[i] == r.reasoningField {
			best = i
		}
	}
	if best < 0 {
		return
	}
	if r.reasoningField == "" {
		r.reasoningField = reasoningFields[best]
	}
	r.add(&r.reasoning, lathe.DeltaReasoning, in.reasoning[best])
}

// takeParts adds content that is an array of parts.
func (r *content) takeParts(parts []byte) {
	if kind(parts) != '[' {
		r.Fault(FaultUnknownContent)
		return
	}
	for part := range rawjson.Elements(parts) {
		switch string(rawjson.At(part, "type")) {
		case `"text"`, `"output_text"`:
			r.add(&r.text, lathe.DeltaText, rawjson.At(part, "text"))
		case `"refusal"`:
			r.add(&r.refusal, lathe.DeltaRefusal, rawjson.At(part, "refusal"))
		case `"thinking"`, `"reasoning"`:
			r.takeThinking(part)
		case `"image_url"`, `"input_audio"`, `"file"`:
			b, ok := readBlob(part)
			if !ok {
				r.Fault(FaultUnknownContent)
				continue
			}
			r.Grow(len(part))
			r.blobs = append(r.blobs, b)
		default:
			r.Fault(FaultUnknownContent)
		}
	}
}

// takeThinking adds the reasoning in a part, which is a string or an array of text parts.
func (r *content) takeThinking(part []byte) {
	for _, key := range []string{"thinking", "reasoning", "text"} {
		v := rawjson.At(part, key)
		if v == nil {
			continue
		}
		r.add(&r.reasoning, lathe.DeltaReasoning, v) // nothing, if v is an array
		for el := range rawjson.Elements(v) {        // none, if v is a string
			r.add(&r.reasoning, lathe.DeltaReasoning, rawjson.At(el, "text"))
		}
		return
	}
	r.Fault(FaultUnknownContent)
}

// add adds the text of a JSON string to t, or nothing if v is no string or empty.
func (r *content) add(t *text, kind lathe.DeltaKind, v value) {
	if v.full() {
		r.Grow(len(v.body()))
		r.EmitText(kind, 0, t.add(v.body(), &r.damage))
	}
}

// keep returns the text of a string, and adds its size to that of the answer. Other values are returned as JSON text.
func (r *content) keep(v value) string {
	b := v.body()
	if v.isString() && bytes.IndexByte(b, '\\') >= 0 {
		b = unquoted(v)
	}
	r.Grow(len(b))
	return string(b)
}

// merged returns members, which are of the answer or of a call, with an unknown member. If they have it already, its value is replaced,
// except that arrays are concatenated. Members beyond maxExtra are dropped and counted as a fault. The values of members belong to r.
func (r *content) merged(members []lathe.Member, m *extraMember) []lathe.Member {
	raw := m.value
	if emptyValue(raw) {
		return members
	}
	r.Grow(len(m.key) + len(raw))
	for i := range members {
		if members[i].Name != m.key {
			continue
		}
		if old := members[i].Value; old[0] == '[' && raw[0] == '[' { // old is extended in place: the comma overwrites its bracket
			members[i].Value = append(append(bytes.TrimSuffix(old, []byte("]")), ','), raw[1:]...)
		} else {
			members[i].Value = bytes.Clone(raw)
		}
		return members
	}
	if len(members) == maxExtra {
		r.Fault(FaultUnknownContent)
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
