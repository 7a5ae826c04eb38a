package openai

import (
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// finishReason returns the reason that a server's word stands for, and whether the word is known.
func finishReason(raw string) (lathe.FinishReason, bool) {
	switch raw { // the two most frequent ones as OpenAI writes them
	case "tool_calls":
		return lathe.FinishToolCalls, true
	case "stop":
		return lathe.FinishStop, true
	}
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

// reason returns the normalised finish reason of the whole answer.
func (a *Assembler) reason() lathe.FinishReason {
	if a.finish == "" {
		a.Fault(FaultFinishMissing)
		if len(a.calls) > 0 {
			return lathe.FinishToolCalls
		}
		return lathe.FinishStop
	}
	r, known := finishReason(a.finish)
	if !known {
		a.Fault(FaultFinishUnknown)
	}
	switch {
	case r == lathe.FinishLength || r == lathe.FinishContentFilter:
		return r
	case len(a.calls) > 0:
		if r != lathe.FinishToolCalls {
			a.Fault(FaultFinishMismatch)
		}
		return lathe.FinishToolCalls
	case r == lathe.FinishToolCalls:
		a.Fault(FaultFinishMismatch)
		return lathe.FinishStop
	}
	return r
}

// broken reports whether the answer broke off. A stream is whole when the server said so: with
// [DONE] after something came, or with a finish reason. Where only one of the two came, each call
// must have whole arguments, unless the reason says why it has not.
func (a *Assembler) broken() bool {
	if !a.done && !a.finishSeen || !a.finishSeen && a.blank() {
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
		if c.args.len() > 0 && !c.whole() {
			return true
		}
	}
	return false
}

// finished is a Finish with the memory of its message, so that both are one allocation.
type finished struct {
	lathe.Finish
	parts [4]lathe.Part
}

// Finish returns the whole answer after the last Append; it is called once. cleanEOF says that the
// stream ended rather than broke. The error is that of Append if there was one, and
// [ErrIncomplete] if the answer broke off: no half of an answer is ever returned.
func (a *Assembler) Finish(cleanEOF bool) (*lathe.Finish, error) {
	if a.Err != nil {
		return nil, a.Err
	}
	if a.broken() {
		return nil, ErrIncomplete
	}
	return a.assemble(cleanEOF), nil
}

// assemble returns the answer as far as it came. cleanEOF is that of [Assembler.Finish].
func (a *Assembler) assemble(cleanEOF bool) *lathe.Finish {
	a.endCalls(nil)
	f := &finished{Finish: lathe.Finish{RawReason: a.finish, Usage: a.usage, Model: a.Model, ResponseID: a.ID, ProviderCost: a.cost}}
	f.Reason = a.reason()
	switch {
	case a.done:
	case cleanEOF:
		a.Fault(FaultDoneMissing)
	default:
		a.Fault(FaultCutAfterFinish)
	}
	ps := f.parts[:0]
	if s := a.reasoning.whole(); s != "" {
		ps = append(ps, lathe.Reasoning{Text: s, Field: a.reasoningField})
	}
	if s := a.text.whole(); s != "" {
		ps = append(ps, lathe.Text{Text: s})
	}
	if s := a.refusal.whole(); s != "" {
		ps = append(ps, lathe.Refusal{Text: s})
	}
	for _, b := range a.blobs {
		ps = append(ps, b)
	}
	for _, c := range a.calls {
		if c.id == "" {
			a.Fault(FaultIDMissing)
		}
		if c.name == "" {
			a.Fault(FaultNameMissing)
		}
		ps = append(ps, lathe.ToolCall{ID: c.id, Name: c.name, Arguments: c.args.whole(), Incomplete: a.incomplete(c), Extra: c.extra})
	}
	f.Message = lathe.Message{Role: lathe.RoleAssistant, Parts: ps, Extra: a.extra}
	a.Faults = wire.CountFault(a.Faults, FaultInvalidUTF8, a.damage.invalid)
	f.Faults = wire.CountFault(a.Faults, FaultSplitCharacter, a.damage.joined)
	return &f.Finish
}

// Unreadable ends an answer in whose place, or within which, the server reported that it could not parse the call that
// the model wrote. It appends the deltas that end the answer and returns what was received. No call in it is
// to be executed: the last one has its ParseError set, the others are Incomplete. If the server sent none, the answer gets a
// call without a name. It replaces Finish.
func (a *Assembler) Unreadable(dst []lathe.Delta) ([]lathe.Delta, *lathe.Finish) {
	a.Err, a.done, a.cutOff = nil, true, true
	a.Fault(FaultUnreadableCall)
	dst = a.endCalls(dst)
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

// Complete reads the body of an answer that was not streamed, in place of all that the Assembler
// has read before. It gives what the same answer streamed would: the deltas, appended to dst, and
// the whole. The error is an *[APIError] for an error in place of an answer, [ErrNoCompletion] for
// a body that is something else, or one that wraps [ErrTooLarge].
func (a *Assembler) Complete(dst []lathe.Delta, body []byte) ([]lathe.Delta, *lathe.Finish, error) {
	a.Reset()
	dst, err := a.Append(dst, body)
	if err != nil {
		return dst, nil, err
	}
	if !a.chunk.taken || a.chunk.delta == nil {
		return dst, nil, ErrNoCompletion
	}
	a.done, a.finishSeen = true, true
	dst = a.endCalls(dst)
	f, err := a.Finish(true)
	return dst, f, err
}

// ParseCompletion is [Assembler.Complete] for one answer, without its deltas. opts may be nil.
func ParseCompletion(body []byte, opts *AssemblerOptions) (*lathe.Finish, error) {
	_, f, err := NewAssembler(opts).Complete(nil, body)
	return f, err
}
