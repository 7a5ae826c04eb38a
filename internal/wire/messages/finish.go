package messages

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// assemble returns the answer as far as it was received.
func (a *assembler) assemble() *lathe.Finish {
	f := &lathe.Finish{RawReason: a.stop, Usage: a.usage.internal(), Model: a.Model, ResponseID: a.ID}
	f.Message = lathe.Message{Role: lathe.RoleAssistant, Wire: lathe.WireMessages, Parts: make([]lathe.Part, 0, len(a.blocks))}
	for _, b := range a.blocks {
		if p := b.part(); p != nil {
			f.Message.Parts = append(f.Message.Parts, p)
		}
	}
	f.Reason = a.checkReason()
	f.Faults = slices.Clone(a.Faults)
	return f
}

// part returns the block as a part of a message, or nil if the block is empty.
func (b *block) part() lathe.Part {
	s := b.text.String()
	switch b.kind {
	case blockText:
		extra := b.extra
		if len(b.citations) > 0 {
			extra = append(extra, lathe.Member{Name: citations, Value: json.RawMessage(wire.JSON("[").Raw(b.citations).Lit("]"))})
		}
		if s == "" && len(extra) == 0 {
			return nil
		}
		return lathe.Text{Text: s, Extra: extra}
	case blockHelper:
		return lathe.Text{Text: s}
	case blockThinking:
		if s == "" && b.data.Len() == 0 {
			return nil
		}
		return lathe.Reasoning{Text: s, Field: fieldThinking, Data: b.data.String()}
	case blockRedacted:
		return lathe.Reasoning{Field: fieldRedacted, Data: b.data.String()}
	case blockCall:
		return lathe.ToolCall{ID: b.id, Name: b.name, Arguments: s, Incomplete: b.incomplete, Extra: b.extra}
	}
	return lathe.Opaque{JSON: b.merged()}
}

// merged returns an opaque block with the members that deltas have added to it.
func (b *block) merged() []byte {
	added := b.added
	if input := b.text.String(); wire.Sendable([]byte(input)) {
		added = append(added, addition{"input", []byte(input)})
	}
	if len(added) == 0 {
		return b.start
	}
	left := slices.Clone(added)
	edit := func(name string, value []byte) (key, to []byte, keep bool) {
		for i := range left {
			if left[i].name == name && left[i].value != nil {
				to := left[i].value
				left[i].value = nil
				if rawjson.Kind(value) == '"' && rawjson.Kind(to) == '"' {
					to = append(bytes.Clone(value[:len(value)-1]), to[1:]...)
				}
				return nil, to, true
			}
		}
		return nil, value, true
	}
	return rawjson.AppendEdited(nil, b.start, edit, func(dst []byte) []byte {
		for _, m := range left {
			dst = wire.JSON(dst).Fields(m.name, m.value)
		}
		return dst
	})
}

// Paused reports whether the server ended the answer before the model finished its turn. The content must then be sent back to continue it.
func (Codec) Paused(f *lathe.Finish) bool {
	return f.RawReason == pauseTurn && len(f.Message.Calls()) == 0
}

// pauseTurn is the stop_reason of an answer that the server has paused.
const pauseTurn = "pause_turn"

// stopReason maps a stop_reason of the wire to the internal one. It returns false if the stop_reason is not known.
func stopReason(raw string) (lathe.FinishReason, bool) {
	switch raw {
	case "end_turn", "stop_sequence", pauseTurn:
		return lathe.FinishStop, true
	case "tool_use":
		return lathe.FinishToolCalls, true
	case "max_tokens", "model_context_window_exceeded":
		return lathe.FinishLength, true
	case "refusal":
		return lathe.FinishContentFilter, true
	}
	return lathe.FinishUnknown, false
}

// checkReason returns the internal finish reason of the answer, from its content and its stop_reason, and counts a stop_reason that is
// unknown or does not match the content.
func (a *assembler) checkReason() lathe.FinishReason {
	r, known := stopReason(a.stop)
	if !known {
		a.fault(faultStopReason)
	}
	if a.stop == pauseTurn {
		a.fault(faultPaused)
	}
	helper := slices.ContainsFunc(a.blocks, func(b *block) bool { return b.kind == blockHelper })
	switch {
	case r == lathe.FinishLength || r == lathe.FinishContentFilter:
		return r
	case a.calls > 0:
		if r != lathe.FinishToolCalls {
			a.fault(faultStopMismatch)
		}
		return lathe.FinishToolCalls
	case r == lathe.FinishToolCalls:
		if !helper {
			a.fault(faultStopMismatch)
		}
		return lathe.FinishStop
	case a.stop == "":
		return lathe.FinishStop
	}
	return r
}
