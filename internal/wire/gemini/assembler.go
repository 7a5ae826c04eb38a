package gemini

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// partSize is the number of bytes that each part counts against MaxBytes in addition to its content.
const partSize = 16

// An Assembler implements [wire.Assembler]. It joins the texts of consecutive parts, unless a signature is between them.
type Assembler struct {
	wire.Assembly

	parts []lathe.Part
	begun int             // parts before the chunk that is read
	text  strings.Builder // of the last part, not in parts yet
	open  lathe.DeltaKind // kind of text: DeltaText, DeltaReasoning, or 0 for none

	calls   int             // number of calls begun
	ids     map[string]bool // ids of the calls
	partial *partialCall    // call whose arguments are received in pieces; it is the last call in parts

	finish  string // finish reason as received; "": none yet
	message string // finishMessage
	blocked bool   // the prompt was refused
	usage   lathe.Usage
	broken  bool // an event could not be parsed: data was lost
}

var _ wire.Assembler = (*Assembler)(nil)

// NewAssembler implements [wire.Upstream].
func (Codec) NewAssembler(opts *wire.AssemblerOptions) wire.Assembler {
	return &Assembler{Assembly: wire.NewAssembly(opts)}
}

// Done implements [wire.Assembler]. It returns false, since on this wire an answer ends with the body and not with an event.
func (a *Assembler) Done() bool { return false }

// Finished implements [wire.Assembler].
func (a *Assembler) Finished() bool { return a.finish != "" }

// Append implements [wire.Assembler]. Events of this wire have no type.
func (a *Assembler) Append(dst []lathe.Delta, _ string, data []byte) ([]lathe.Delta, error) {
	a.Out = dst
	data = bytes.TrimSpace(data)
	if a.Err == nil && len(data) > 0 && a.check(data) {
		a.take(data)
	}
	return a.Take(), a.Err
}

// answerLimits limit the JSON of an event.
var answerLimits = rawjson.Limits{MaxDepth: 500, MaxKeys: math.MaxInt}

// check counts what is wrong with the JSON of an event. It returns false if the event cannot be read. If it is not JSON, data was lost, and
// the answer is incomplete, whatever follows.
func (a *Assembler) check(data []byte) bool {
	if rawjson.Check(data, answerLimits) != nil {
		end, err := rawjson.Scan(data, 0)
		if err != nil || len(bytes.TrimSpace(data[end:])) > 0 {
			a.Damage(faultBadLine)
			a.broken = string(data) != "[DONE]"
			return false
		}
		a.Damage(faultDuplicate)
	}
	if data[0] != '{' {
		a.Damage(faultBadLine)
		return false
	}
	return true
}

// take reads one object of an answer: an event of a stream, or a whole body.
func (a *Assembler) take(obj []byte) {
	a.begun = len(a.parts)
	var candidates, feedback []byte
	known := false
	for key, v := range rawjson.Members(obj) {
		if string(v) == "null" {
			continue
		}
		switch string(key) {
		case `"candidates"`:
			candidates, known = v, true
		case `"promptFeedback"`, `"prompt_feedback"`:
			feedback, known = v, true
		case `"usageMetadata"`, `"usage_metadata"`:
			a.takeUsage(v)
			known = true
		case `"modelVersion"`, `"model_version"`:
			if a.Model == "" {
				a.Model = a.keep(v)
			}
		case `"responseId"`, `"response_id"`:
			if a.ID == "" {
				a.ID = a.keep(v)
			}
		case `"error"`:
			a.Err = readError(v)
			return
		}
	}
	if !known {
		a.Fault(faultBadLine)
	}
	position := 0
	for c := range rawjson.Elements(candidates) {
		a.takeCandidate(c, position)
		if a.Err != nil {
			return
		}
		position++
	}
	if rawjson.Kind(feedback) == '{' {
		a.takeFeedback(feedback)
	}
}

// keep returns a string that becomes part of the answer, and adds its size to that of the answer.
func (a *Assembler) keep(v []byte) string {
	s := rawjson.Text(v)
	a.Grow(len(s))
	return s
}

// takeCandidate reads the first candidate by its position and its index, and counts others as faults.
func (a *Assembler) takeCandidate(candidate []byte, position int) {
	first := position == 0
	var parts, finish []byte
	for key, v := range rawjson.Members(candidate) {
		switch string(key) {
		case `"index"`:
			first = first && (string(v) == "0" || string(v) == "null")
		case `"content"`:
			parts = rawjson.At(v, "parts")
		case `"finishReason"`, `"finish_reason"`:
			finish = v
		case `"finishMessage"`, `"finish_message"`:
			a.message = boundedText(v)
		}
	}
	if !first {
		a.Fault(faultExtraChoice)
		return
	}
	for part := range rawjson.Elements(parts) {
		a.takePart(part)
		if a.Err != nil {
			return
		}
	}
	if rawjson.Kind(finish) == '"' && len(finish) > 2 {
		a.takeFinish(rawjson.Text(finish))
	}
}

// takePart reads a part.
func (a *Assembler) takePart(part []byte) {
	if rawjson.Kind(part) != '{' {
		a.Damage(faultUnknownContent)
		return
	}
	a.Grow(partSize)
	p, ok := partOf(part)
	if !ok {
		a.Damage(faultUnknownContent)
		p, ok = looseText(part)
	}
	if !ok {
		a.close()
		a.Grow(len(part))
		a.addPart(lathe.Opaque{JSON: compact(part)})
		return
	}
	for _, m := range p.rest {
		a.Grow(len(m.Name) + len(m.Value))
	}
	hasText := p.data == "text" || p.data == "" && len(p.rest) == 0 // a part with only a signature counts as an empty text
	switch {
	case hasText:
		a.addText(&p)
		return
	case p.data == "functionCall":
		a.takeCall(&p)
		return
	}
	a.close()
	a.Grow(len(part) + len(p.signature))
	a.addSignature(p.signature)
	if !p.thought && p.hasBlob() {
		if b, ok := blobOf(&p); ok {
			a.addPart(b)
			return
		}
		a.Damage(faultUnknownContent)
	}
	a.addPart(lathe.Opaque{JSON: compact(p.raw())})
}

// addText adds a part with text. A part with a signature or other members is not joined with other parts.
func (a *Assembler) addText(p *rawPart) {
	of := lathe.DeltaText
	if p.thought {
		of = lathe.DeltaReasoning
	}
	a.Grow(len(p.text) + len(p.signature))
	switch {
	case p.signature == "" && len(p.rest) == 0:
		if p.text == "" {
			return
		}
		if a.open != of {
			a.close()
			a.open = of
		}
		a.text.WriteString(p.text)
		a.EmitText(of, 0, p.text)
	case p.thought:
		a.close()
		a.EmitText(of, 0, p.text)
		if p.signature != "" {
			a.Emit(lathe.Delta{Kind: lathe.DeltaReasoningData, Name: fieldThought, Text: p.signature})
		}
		a.parts = appendThought(a.parts, p.text, p.signature)
	default:
		a.close()
		a.addSignature(p.signature)
		a.parts = append(a.parts, lathe.Text{Text: p.text, Extra: p.rest})
		a.EmitText(of, 0, p.text)
	}
}

// addSignature adds a signature, which belongs to the part that follows.
func (a *Assembler) addSignature(signature string) {
	if signature == "" {
		return
	}
	a.parts = append(a.parts, lathe.Reasoning{Field: fieldSignature, Data: signature})
	a.Emit(lathe.Delta{Kind: lathe.DeltaReasoningData, Name: fieldSignature, Text: signature})
}

// close appends the open text to parts.
func (a *Assembler) close() {
	switch a.open {
	case lathe.DeltaText:
		a.parts = append(a.parts, lathe.Text{Text: a.text.String()})
	case lathe.DeltaReasoning:
		a.parts = append(a.parts, lathe.Reasoning{Text: a.text.String(), Field: fieldThought})
	}
	a.open = 0
	a.text.Reset()
}

// addPart adds a part without text.
func (a *Assembler) addPart(p lathe.Part) {
	a.parts = append(a.parts, p)
	a.Emit(lathe.Delta{Kind: lathe.DeltaPart, Name: string(lathe.WireGemini), Part: p})
}

// callID returns the id of a call: the received one or, if that is empty, an id derived from the id of the answer and the number of the
// call. If another call of the answer has that id, callID appends a number.
func (a *Assembler) callID(id, name string) string {
	if id == "" {
		a.Fault(faultIDMissing)
		id = madeID(a.ID, a.calls, name)
	}
	if a.ids == nil {
		a.ids = map[string]bool{}
	}
	if a.ids[id] {
		a.Damage(faultIDDuplicate)
		first := id
		for n := a.calls; a.ids[id]; n++ {
			id = first + "_" + strconv.Itoa(n+1)
		}
	}
	a.ids[id] = true
	return id
}
