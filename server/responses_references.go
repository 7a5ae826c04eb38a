package server

import (
	"context"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gateway/pairs"
	"github.com/lathe-run/lathe/internal/gateway/runlog"
	"github.com/lathe-run/lathe/internal/gateway/splice"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// Clients of the Responses API may send references to items of stored responses instead of the items. The npm package
// @ai-sdk/openai does so by default. The id of an item contains the id of its response.

// maxReferences is the maximum number of different responses to which the references of one request may belong.
const maxReferences = 256

// referenceType is the type of an item that refers to another item by its id.
const referenceType = "item_reference"

// referencedAnswer returns the id of the item that a part refers to, and the id of the answer in it. ok is false if the
// part is not a reference, such as {"type":"item_reference","id":"msg_ANSWER_0"}.
func referencedAnswer(p lathe.Part) (answer, item string, ok bool) {
	o, is := p.(lathe.Opaque)
	if !is || rawjson.TextAt(o.JSON, "type") != referenceType {
		return "", "", false
	}
	item = rawjson.TextAt(o.JSON, "id")
	_, answer, _ = strings.Cut(item, "_")
	if end := strings.LastIndexByte(answer, '_'); end >= 0 {
		answer = answer[:end]
	}
	return answer, item, true
}

func isReference(p lathe.Part) bool {
	_, _, ok := referencedAnswer(p)
	return ok
}

// resolveReferences replaces references by the messages that the runs of their responses added to the conversation. The
// first reference to a response is replaced by all its messages, including calls of this server; further ones are removed.
// If the last of those runs is suspended and the request has results for it, waits is its id.
// The references of a relayed request stay, since they refer to items of the model server.
func (h *responseReader) resolveReferences(ctx context.Context, a *chat) (waits string, p *problem) {
	if a.protocol.Wire() != lathe.WireResponses || a.plan.relayed || !pairs.AnyPart(a.req.Messages, isReference) {
		return "", nil
	}
	ids, p := h.turns.CallIDsIn(ctx, a.caller.key.Name, a.req.Messages)
	if p != nil {
		return "", p
	}
	r := &references{responseReader: h, chat: a, ids: ids, done: map[string]bool{}, taken: map[string]int{}, given: a.req.Messages}
	for len(r.given) > 0 {
		m := &r.given[0]
		r.given = r.given[1:]
		if !slices.ContainsFunc(m.Parts, isReference) {
			r.out = append(r.out, *m)
			continue
		}
		if waits, p := r.resolve(ctx, m); waits != "" || p != nil {
			return waits, p
		}
	}
	a.req.Messages, a.hasReferences = r.out, true
	return "", nil
}

// references is the state of one call of [responseReader.resolveReferences]. Messages move from given to out: one at a time and,
// with a referenced answer that ends with calls of the client, the tool results that follow in given.
type references struct {
	*responseReader
	chat  *chat
	ids   *splice.CallIDs
	done  map[string]bool // the answers that were resolved, by id
	taken map[string]int  // for each run, the number of messages of its conversation that are in out
	out   []lathe.Message
	given []lathe.Message // the messages of the request that are not processed yet
}

// resolve appends the message m with its references replaced. If one of them belongs to a run that is suspended and gets
// the results that follow, waits is the id of that run.
func (r *references) resolve(ctx context.Context, m *lathe.Message) (waits string, p *problem) {
	rest := *m // the parts that are not appended yet
	rest.Parts = nil
	before := len(r.out)
	for _, part := range m.Parts {
		answer, item, ok := referencedAnswer(part)
		if !ok {
			rest.Parts = append(rest.Parts, part)
			continue
		}
		if r.done[answer] {
			continue
		}
		sp, p := r.find(ctx, answer, item)
		if p != nil {
			return "", p
		}
		endsWithResults := len(r.given) > 0 && leadingResults(r.given) == len(r.given)
		if endsWithResults && sp.Waits() {
			return sp.ID.Run, nil
		}
		turnEnded := slices.ContainsFunc(r.given, func(m lathe.Message) bool { return m.Role == lathe.RoleUser })
		own := sp.Take(r.taken, turnEnded)
		if p := r.chat.caller.reserved.Load(own); p != nil {
			return "", p
		}
		if len(own) == 0 {
			continue
		}
		r.appendRest(&rest, own) // the parts that precede the reference
		if p := r.add(sp, own); p != nil {
			return "", p
		}
	}
	r.appendRest(&rest, r.out[before:]) // the request may repeat a call that a reference has added
	return "", nil
}

// appendRest appends the message rest without the calls that others contains, and removes its parts.
func (r *references) appendRest(rest *lathe.Message, others []lathe.Message) {
	*rest = r.ids.Originals([]lathe.Message{*rest}, others)[0]
	rest.Parts = withoutCalls(rest.Parts, pairs.CallsOf(others))
	if len(rest.Parts) > 0 {
		r.out = append(r.out, *rest)
		rest.Parts = nil
	}
}

// find returns the answer to which an item belongs, and marks it as resolved.
func (r *references) find(ctx context.Context, answer, item string) (*runlog.Span, *problem) {
	param := r.chat.protocol.conversation
	r.done[answer] = true
	if len(r.done) > maxReferences {
		return nil, badRequest(param, "The input refers to items of more than %d responses.", maxReferences)
	}
	sp, p := r.restingResponse(ctx, r.chat, responsePrefix+answer)
	if p != nil {
		return nil, ofItem(p, param, item)
	}
	return sp, nil
}

// add appends the messages of an answer and, if the answer ends with client calls, the results that follow.
func (r *references) add(sp *runlog.Span, own []lathe.Message) *problem {
	if !sp.Open() {
		r.out = append(r.out, own...)
		return nil
	}
	results := r.given[:leadingResults(r.given)]
	joined, ok := pairs.Join(r.out, own, r.ids.Originals(results, own))
	if !ok {
		return badRequest(r.chat.protocol.conversation, "The input refers to a response that has calls: one function_call_output for each of them must follow.").WithCode("missing_tool_result")
	}
	r.out, r.given = joined, r.given[len(results):]
	return nil
}

// ofItem converts the problem that a response does not exist to one about the item that the request refers to.
func ofItem(p *problem, param, item string) *problem {
	if p.Code != codeNoResponse {
		return p
	}
	return notFound("item_not_found", "There is no item %s. It was not stored, or it was removed, or another key has it. Send the item itself in place of the reference.", item).WithParam(param)
}

// withoutCalls returns the parts without the calls that others contains under the same id and name.
func withoutCalls(parts []lathe.Part, others map[string]lathe.ToolCall) []lathe.Part {
	return slices.DeleteFunc(parts, func(p lathe.Part) bool {
		call, is := p.(lathe.ToolCall)
		return is && others[call.ID].Name == call.Name
	})
}

// continuesResponse reports whether the conversation includes messages of stored responses.
func (a *request) continuesResponse() bool { return a.req.PreviousID != "" || a.hasReferences }
