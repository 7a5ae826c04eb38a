package splice

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/internal/gateway/pairs"
	"github.com/lathe-run/lathe/internal/gateway/problem"
)

// This file replaces the ids of the gateway in the messages of a client by those of the model server.
//
// Package places finds a parsed message among the messages of a run by the address of its first part. A message whose ids and parts do not
// change must therefore keep its slice of parts: withIDs and shares copy the parts only if they change them.

// RestoreIDs replaces the gateway's ids in the messages of the request by those of the model server, and sets req.CallTurns to the turns of
// the messages with calls. If a client has joined several answers to one message, RestoreIDs splits it into one message for each turn.
func (ht *Turns) RestoreIDs(ctx context.Context, req *Request) *problem.Problem {
	ids, p := ht.CallIDsIn(ctx, req.Owner.Principal, req.Messages)
	if ids == nil {
		return p
	}
	r := &idRestorer{req.Waiting, map[string]*CallTurn{}, map[string]callRef{}}
	if p := r.load(ctx, ht, ids, req); p != nil || len(r.refs) == 0 {
		return p
	}
	var out []lathe.Message
	turns := map[int]*CallTurn{}
	for rest := req.Messages; len(rest) > 0 && ctx.Err() == nil; {
		m := &rest[0]
		rest = rest[1:]
		if len(m.Calls()) == 0 {
			out = append(out, r.mapped(*m))
			continue
		}
		answers := leadingResults(rest)
		rest = rest[len(answers):]
		out = r.appendTurns(out, turns, m, answers)
	}
	if ctx.Err() == nil {
		req.Messages, req.CallTurns = out, turns
	}
	return nil
}

// leadingResults returns the tool results at the beginning of the messages.
func leadingResults(messages []lathe.Message) []lathe.Message {
	n := 0
	for n < len(messages) && messages[n].Role == lathe.RoleTool {
		n++
	}
	return messages[:n]
}

// An idRestorer is the state of one call of [Turns.RestoreIDs].
type idRestorer struct {
	waiting *approval.Sentence
	of      map[string]*CallTurn // turn by the gateway's id of a call
	refs    map[string]callRef   // parsed id by the gateway's id of a call
}

// appendTurns appends a message with calls and its results, as one message for each turn whose calls it contains.
func (r *idRestorer) appendTurns(out []lathe.Message, turns map[int]*CallTurn, m *lathe.Message, answers []lathe.Message) []lathe.Message {
	for _, share := range r.shares(m, answers) {
		if share.turn != nil {
			turns[len(out)] = share.turn
		}
		own := *m
		own.Parts = share.parts
		waiting := r.withdrawWaiting(&own, share.turn)
		out = append(out, r.mapped(own))
		for _, answer := range share.answers {
			out = append(out, r.mapped(answer))
		}
		if waiting != nil {
			out = append(out, *waiting)
		}
	}
	return out
}

// A turnShare is the part of a client's message that belongs to one turn.
type turnShare struct {
	turn    *CallTurn // nil: the calls have no ids of the gateway
	parts   []lathe.Part
	calls   int // index in parts after the last call
	answers []lathe.Message
}

// shares splits a message with calls, and the results of the calls, into the shares of its turns.
func (r *idRestorer) shares(m *lathe.Message, answers []lathe.Message) []*turnShare {
	last := &turnShare{}
	all := []*turnShare{last}
	of := map[string]*turnShare{} // by the id of a call
	for _, p := range m.Parts {
		if call, is := p.(lathe.ToolCall); is {
			t := r.of[call.ID]
			if last.calls > 0 && t != last.turn {
				last = last.split()
				all = append(all, last)
			}
			last.turn, last.calls = t, len(last.parts)+1
			of[call.ID] = last
		}
		last.parts = append(last.parts, p)
	}
	for i := range answers {
		share := cmp.Or(of[pairs.Answered(&answers[i])], last)
		share.answers = append(share.answers, answers[i])
	}
	if len(all) == 1 {
		last.parts = m.Parts // all parts belong to one turn: the message keeps its slice
	}
	return all
}

// split moves the parts after the calls to a new share, since parts between the calls of two turns belong to the later one. Only a carrier
// directly after calls without an earlier carrier stays.
func (s *turnShare) split() *turnShare {
	end := s.calls
	if end < len(s.parts) && IsCarrier(s.parts[end]) && !slices.ContainsFunc(s.parts[:end], IsCarrier) {
		end++
	}
	later := &turnShare{parts: slices.Clone(s.parts[end:])}
	s.parts = s.parts[:end]
	return later
}

// withdrawWaiting removes the sentence of a waiting run from a message that has calls of the same run, and returns it as a separate
// message; nil if none exists. The sentence was a separate answer, which the client has joined to this one.
func (r *idRestorer) withdrawWaiting(m *lathe.Message, turn *CallTurn) *lathe.Message {
	if turn == nil {
		return nil
	}
	for i, p := range m.Parts {
		text, is := p.(lathe.Text)
		if !is {
			continue
		}
		rest, run, waits := r.waiting.Split(text.Text)
		if !waits || run != turn.ref.run {
			continue
		}
		sentence := lathe.Message{Role: lathe.RoleAssistant, Wire: m.Wire, Parts: []lathe.Part{lathe.Text{Text: strings.TrimPrefix(text.Text, rest)}}}
		m.Parts = slices.Clone(m.Parts)
		m.Parts[i] = lathe.Text{Text: rest}
		if rest == "" {
			m.Parts = slices.Delete(m.Parts, i, i+1)
		}
		return &sentence
	}
	return nil
}

// mapped returns the message with the model server's ids in place of those ids of the gateway whose turns are stored.
func (r *idRestorer) mapped(m lathe.Message) lathe.Message {
	return withIDs(m, func(id string) string {
		t := r.of[id]
		if t == nil || t.turns == nil {
			return id
		}
		return matchCall(t.turns.messages, id, r.refs[id])
	})
}

// Original returns the model server's id of the call in messages, which are those of the run, for an id of the gateway; "" if there is
// none.
func (ids *CallIDs) Original(messages []lathe.Message, id string) string {
	ref, ok := ids.parse(id)
	if !ok || ref.run != ids.run {
		return ""
	}
	if original := matchCall(messages, id, ref); original != id {
		return original
	}
	return ""
}

// matchCall returns the id of the call with the hash of ref, in the last message that has one; id if none exists.
func matchCall(messages []lathe.Message, id string, ref callRef) string {
	for _, m := range slices.Backward(messages) {
		for _, call := range m.Calls() {
			if hashOfCall(call.ID) == ref.hash {
				return call.ID
			}
		}
	}
	return id
}

// Originals returns messages with the ids that their calls have in own, the messages of a run. If ids is nil, it returns messages as they
// are.
func (ids *CallIDs) Originals(messages, own []lathe.Message) []lathe.Message {
	if ids == nil {
		return messages
	}
	out := make([]lathe.Message, len(messages))
	for i, m := range messages {
		out[i] = withIDs(m, func(id string) string {
			if ref, ok := ids.parse(id); ok {
				return matchCall(own, id, ref)
			}
			return id
		})
	}
	return out
}

// withIDs returns the message with other(id) in place of each id that has the form of the gateway's ids.
func withIDs(m lathe.Message, other func(id string) string) lathe.Message {
	cloned := false // a message without such ids keeps its parts
	for i, p := range m.Parts {
		id := gatewayID(p)
		if id == "" {
			continue
		}
		if !cloned {
			m.Parts, cloned = slices.Clone(m.Parts), true
		}
		switch p := p.(type) {
		case lathe.ToolCall:
			p.ID = other(id)
			m.Parts[i] = p
		case lathe.ToolResult:
			p.CallID = other(id)
			m.Parts[i] = p
		default: // gatewayID returned "" for other parts
		}
	}
	return m
}

// gatewayID returns the id of the call or result if it has the form of ids that this server creates, else "".
func gatewayID(p lathe.Part) string {
	id := ""
	switch p := p.(type) {
	case lathe.ToolCall:
		id = p.ID
	case lathe.ToolResult:
		id = p.CallID
	default: // other parts have no such id
	}
	if !IsGatewayID(id) {
		return ""
	}
	return id
}

// CallIDsIn returns CallIDs that can parse the ids of calls in messages, or nil if none has the form of the gateway's ids.
func (ht *Turns) CallIDsIn(ctx context.Context, principal string, messages []lathe.Message) (*CallIDs, *problem.Problem) {
	if !pairs.AnyPart(messages, func(p lathe.Part) bool { return gatewayID(p) != "" }) {
		return nil, nil
	}
	ring, err := ht.opts.Seals.Get(ctx)
	if err != nil {
		return nil, problem.NotNow(err)
	}
	return &CallIDs{ring: ring, principal: principal}, nil
}
