package server

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gateway/pairs"
	"github.com/lathe-run/lathe/internal/gateway/splice"
)

// Clients of OpenAI's Responses may send references to items of stored responses instead of the items. The npm package
// @ai-sdk/openai does so by default. The id of an item contains the id of its response.

// maxReferences limits the number of different responses that the references of one request belong to.
const maxReferences = 256

// referenceType is the type of an item that refers to another one by its id.
const referenceType = "item_reference"

// referencedAnswer returns the ids of the item that a part refers to and of its answer. ok is false if the part is not a reference.
func referencedAnswer(p lathe.Part) (answer, item string, ok bool) {
	o, is := p.(lathe.Opaque)
	if !is || textMember(o.JSON, "type") != referenceType {
		return "", "", false
	}
	item = textMember(o.JSON, "id")
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

// resolveReferences replaces references by the messages that the runs of their responses added to the conversation. The first
// reference to a response is replaced by all of its messages, including calls of this server; further ones are removed. A
// request that is relayed keeps its references, since they refer to items of the model server. waits is set if the last of the
// runs waits for the results in the request.
func (h *planner) resolveReferences(ctx context.Context, a *chat) (waits *splice.Stored, p *problem) {
	if a.protocol.Wire() != lathe.WireResponses || a.plan.relayed || !slices.ContainsFunc(a.req.Messages, func(m lathe.Message) bool { return slices.ContainsFunc(m.Parts, isReference) }) {
		return nil, nil
	}
	ids, p := h.turns.CallIDsIn(ctx, a.caller.key.Name, a.req.Messages)
	if p != nil {
		return nil, p
	}
	var out []lathe.Message
	done, taken := map[string]bool{}, map[string]int{} // by answer; by run: the number of messages of its conversation
	given := a.req.Messages
	for len(given) > 0 {
		m := &given[0]
		given = given[1:]
		if !slices.ContainsFunc(m.Parts, isReference) {
			out = append(out, *m)
			continue
		}
		rest := *m
		rest.Parts = nil
		before, answers := len(out), 0
		for answers < len(given) && given[answers].Role == lathe.RoleTool {
			answers++
		}
		for _, part := range m.Parts {
			answer, item, ok := referencedAnswer(part)
			if !ok {
				rest.Parts = append(rest.Parts, part)
				continue
			}
			if done[answer] {
				continue
			}
			if done[answer] = true; len(done) > maxReferences {
				return nil, badRequest(a.protocol.conversation, "The input refers to items of more than %d responses.", maxReferences)
			}
			sp, p := h.settledResponse(ctx, a, responsePrefix+answer)
			if p != nil {
				return nil, ofItem(p, a.protocol.conversation, item)
			}
			if sp.Waits() && answers > 0 && answers == len(given) {
				return &splice.Stored{RunID: sp.ID.Run}, nil
			}
			own := sp.Take(taken, slices.ContainsFunc(given, func(m lathe.Message) bool { return m.Role == lathe.RoleUser }))
			if p := a.caller.reserved.Load(own); p != nil {
				return nil, p
			}
			if len(own) == 0 {
				continue
			}
			rest = ids.Originals([]lathe.Message{rest}, own)[0]
			rest.Parts = withoutCalls(rest.Parts, pairs.CallsOf(own))
			if len(rest.Parts) > 0 { // the parts before the reference
				out, rest.Parts = append(out, rest), nil
			}
			if !sp.Open() {
				out = append(out, own...)
				continue
			}
			joined, ok := pairs.Join(out, own, ids.Originals(given[:answers], own))
			if !ok {
				return nil, &problem{Status: http.StatusBadRequest, Code: "missing_tool_result", Param: a.protocol.conversation,
					Message: "The input refers to a response that has calls: one function_call_output for each of them must follow."}
			}
			out, given, answers = joined, given[answers:], 0
		}
		rest = ids.Originals([]lathe.Message{rest}, out[before:])[0]
		rest.Parts = withoutCalls(rest.Parts, pairs.CallsOf(out[before:])) // the request may have a call beside references to the rest
		if len(rest.Parts) > 0 {
			out = append(out, rest)
		}
	}
	a.req.Messages, a.referred = out, true
	return nil, nil
}

// ofItem returns the problem of an item that the request refers to, for one of its response.
func ofItem(p *problem, param, item string) *problem {
	if p.Code != codeNoResponse {
		return p
	}
	return &problem{Status: http.StatusNotFound, Code: "item_not_found", Param: param,
		Message: "There is no item " + item + ". It was not stored, or it was removed, or another key has it. Send the item itself in place of the reference."}
}

// withoutCalls returns the parts without the calls that are among others, under the same name.
func withoutCalls(parts []lathe.Part, others map[string]lathe.ToolCall) []lathe.Part {
	return slices.DeleteFunc(parts, func(p lathe.Part) bool {
		call, is := p.(lathe.ToolCall)
		return is && others[call.ID].Name == call.Name
	})
}

// continuesResponse reports whether the messages of the request include those of stored responses.
func (a *request) continuesResponse() bool { return a.req.PreviousID != "" || a.referred }
