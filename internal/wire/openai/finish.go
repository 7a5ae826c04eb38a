package openai

import (
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// finishReason maps a server's finish_reason to the internal one. It returns false if the value is not known.
func finishReason(raw string) (lathe.FinishReason, bool) {
	switch strings.ToLower(raw) {
	case "stop", "end_turn", "stop_sequence", "eos", "eos_token", "end", "complete", "completed":
		return lathe.FinishStop, true
	case "tool_calls", "tool_call", "tool_use", "function_call":
		return lathe.FinishToolCalls, true
	case "length", "max_tokens", "max_output_tokens", "model_length", "max_completion_tokens":
		return lathe.FinishLength, true
	case "content_filter", "content-filter", "safety", "sensitive", "recitation", "prohibited_content", "blocklist":
		return lathe.FinishContentFilter, true
	}
	return lathe.FinishUnknown, false
}

// reason returns the internal finish reason of the complete answer.
func (a *Assembler) reason() lathe.FinishReason {
	if a.finish == "" {
		a.Fault(faultFinishMissing)
		if len(a.calls) > 0 {
			return lathe.FinishToolCalls
		}
		return lathe.FinishStop
	}
	r, known := finishReason(a.finish)
	if !known {
		a.Fault(faultFinishUnknown)
	}
	switch {
	case r == lathe.FinishLength || r == lathe.FinishContentFilter:
		return r
	case len(a.calls) > 0:
		if r != lathe.FinishToolCalls {
			a.Fault(faultFinishMismatch)
		}
		return lathe.FinishToolCalls
	case r == lathe.FinishToolCalls:
		a.Fault(faultFinishMismatch)
		return lathe.FinishStop
	}
	return r
}

// broken reports whether the answer is incomplete. A stream is complete if the server has sent [DONE] after some content, or a finish
// reason. If it sent only one of the two, each call must also have complete arguments, unless the finish reason explains why it has not.
func (a *Assembler) broken() bool {
	if !a.finishSeen && (!a.done || a.blank()) {
		return true
	}
	if a.done && a.finishSeen {
		return false
	}
	switch r, _ := finishReason(a.finish); r {
	case lathe.FinishLength, lathe.FinishContentFilter:
		return false
	}
	for _, c := range a.calls {
		if c.args.b.Len() > 0 && !c.complete() {
			return true
		}
	}
	return false
}

// Finish returns the complete answer after the last Append. It is called once. cleanEOF is set if the stream ended without an error of the
// connection. Finish returns the error of Append if there was one, and [wire.ErrIncomplete] if the answer is incomplete; it never returns part
// of an answer.
func (a *Assembler) Finish(cleanEOF bool) (*lathe.Finish, error) {
	if a.Err != nil {
		return nil, a.Err
	}
	if a.broken() {
		return nil, wire.ErrIncomplete
	}
	return a.assemble(cleanEOF), nil
}

// assemble returns the answer as far as it was received. cleanEOF is that of [Assembler.Finish].
func (a *Assembler) assemble(cleanEOF bool) *lathe.Finish {
	a.endCalls()
	f := &lathe.Finish{RawReason: a.finish, Usage: a.usage, Model: a.Model, ResponseID: a.ID, ProviderCost: a.cost}
	f.Reason = a.reason()
	switch {
	case a.done:
	case cleanEOF:
		a.Fault(faultDoneMissing)
	default:
		a.Fault(faultCutAfterFinish)
	}
	var ps []lathe.Part
	if s := a.reasoning.b.String(); s != "" {
		ps = append(ps, lathe.Reasoning{Text: s, Field: a.reasoningField})
	}
	if s := a.text.b.String(); s != "" {
		ps = append(ps, lathe.Text{Text: s})
	}
	if s := a.refusal.b.String(); s != "" {
		ps = append(ps, lathe.Refusal{Text: s})
	}
	for _, b := range a.blobs {
		ps = append(ps, b)
	}
	for _, c := range a.calls {
		if c.id == "" {
			a.Fault(faultIDMissing)
		}
		if c.name == "" {
			a.Fault(FaultNameMissing)
		}
		ps = append(ps, lathe.ToolCall{ID: c.id, Name: c.name, Arguments: c.args.b.String(), Incomplete: a.incomplete(c), Extra: c.extra})
	}
	f.Message = lathe.Message{Role: lathe.RoleAssistant, Parts: ps, Extra: a.extra}
	a.Faults = wire.CountFault(a.Faults, FaultInvalidUTF8, a.damage.invalid)
	f.Faults = wire.CountFault(a.Faults, FaultSplitCharacter, a.damage.joined)
	return f
}

// Unreadable ends an answer for which the server reported that it could not parse the call that the model wrote. It is called instead of
// Finish. It appends the deltas that end the answer, and returns what was received. No call in the answer may be executed: the last one has
// ParseError set, the others are Incomplete. If there is no call, a call without a name is added.
func (a *Assembler) Unreadable(dst []lathe.Delta) ([]lathe.Delta, *lathe.Finish) {
	a.Err, a.done, a.cutOff = nil, true, true
	a.Fault(faultUnreadableCall)
	a.Out = dst
	a.endCalls()
	dst = a.Take()
	f := a.assemble(true)
	f.Reason = lathe.FinishToolCalls
	parts := f.Message.Parts
	if n := len(parts); n > 0 {
		if c, ok := parts[n-1].(lathe.ToolCall); ok {
			c.ParseError, c.Incomplete = lathe.CodePayloadParseError, false
			parts[n-1] = c
			return dst, f
		}
	}
	f.Message.Parts = append(parts, lathe.ToolCall{ParseError: lathe.CodePayloadParseError})
	return dst, f
}

// Complete parses the body of an answer that was not streamed. It is called instead of Append and Finish. It appends the deltas, and returns the
// answer, as if the answer had been streamed. The error is an *[APIError] if the body is an error, [wire.ErrNoAnswer] if it is no
// completion, or an error that wraps [wire.ErrTooLarge].
func (a *Assembler) Complete(dst []lathe.Delta, body []byte) ([]lathe.Delta, *lathe.Finish, error) {
	dst, err := a.Append(dst, body)
	if err != nil {
		return dst, nil, err
	}
	if !a.chunk.taken || a.chunk.delta == nil {
		return dst, nil, wire.ErrNoAnswer
	}
	a.done, a.finishSeen = true, true
	a.Out = dst
	a.endCalls()
	dst = a.Take()
	f, err := a.Finish(true)
	return dst, f, err
}

// ParseCompletion does what [Assembler.Complete] does, without deltas. opts may be nil.
func ParseCompletion(body []byte, opts *AssemblerOptions) (*lathe.Finish, error) {
	_, f, err := NewAssembler(opts).Complete(nil, body)
	return f, err
}
