package pairs

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gateway/problem"
)

// An Unpaired is a call without a result, or a result without a call, in a conversation.
type Unpaired struct {
	Message  int    // index of the message
	code     string // code of the problem
	part     int
	id, tool string
}

// Check returns the first call without a result right after its message, or the first result without a call. It returns nil if all are
// paired.
func Check(messages []lathe.Message) *Unpaired {
	asked := 0                // index of the last message with calls
	open := map[string]bool{} // ids of its calls that have no result so far
	for i := range messages {
		m := &messages[i]
		if len(open) > 0 {
			id := Answered(m)
			if !open[id] {
				return missing(messages, asked, open)
			}
			delete(open, id)
			continue
		}
		if m.Role == lathe.RoleTool {
			return &Unpaired{code: "unexpected_tool_result", Message: i, id: Answered(m)}
		}
		asked = i
		for _, call := range m.Calls() {
			if call.ID == "" || open[call.ID] {
				return newUnpaired("invalid_request", messages, i, &call)
			}
			open[call.ID] = true
		}
	}
	if len(open) == 0 {
		return nil
	}
	return missing(messages, asked, open)
}

// missing returns an Unpaired for the first call of message i that is open.
func missing(messages []lathe.Message, i int, open map[string]bool) *Unpaired {
	for _, call := range messages[i].Calls() {
		if open[call.ID] {
			return newUnpaired("missing_tool_result", messages, i, &call)
		}
	}
	return nil
}

// newUnpaired returns an Unpaired for a call of message i.
func newUnpaired(code string, messages []lathe.Message, i int, call *lathe.ToolCall) *Unpaired {
	u := &Unpaired{code: code, Message: i, id: call.ID, tool: call.Name}
	for j, p := range messages[i].Parts {
		if c, ok := p.(lathe.ToolCall); ok && c.ID == call.ID {
			u.part = j
		}
	}
	return u
}

// pairWords are the terms of a wire for a call, its result, the id that both contain, and the list of messages.
type pairWords struct{ call, result, id, conversation string }

var (
	chatPair  = pairWords{"call in tool_calls", "tool message", "tool_call_id", "messages"}
	wirePairs = map[lathe.Wire]pairWords{
		lathe.WireResponses: {"function_call", "function_call_output", "call_id", "input"},
		lathe.WireMessages:  {"tool_use block", "tool_result block", "tool_use_id", "messages"},
		lathe.WireGemini:    {"functionCall", "functionResponse", "id", "contents"},
	}
)

// Problem returns the response to a request on the wire w. at maps a path in the messages to the path in the request of the client.
func (u *Unpaired) Problem(w lathe.Wire, at func(path string) string) *problem.Problem {
	words, ok := wirePairs[w]
	isChat := !ok
	if isChat {
		words = chatPair
	}
	param := at(fmt.Sprintf("messages[%d].parts[%d]", u.Message, u.part))
	isMapped := !strings.HasPrefix(param, "messages[") || !strings.Contains(param, ".parts[")
	if isChat { // the place is the message
		element, _, _ := strings.Cut(param, "]")
		param = element + "]"
	} else if !isMapped { // the part is not in this request
		param = words.conversation
	}
	of := ""
	if u.tool != "" {
		of = fmt.Sprintf(" of %.64s", u.tool)
	}
	switch u.code {
	case "missing_tool_result":
		return problem.New(http.StatusBadRequest, "missing_tool_result", "Each %s must be followed by one %s, before anything else. The call%s with the id %.64q, %s, has none.",
			words.call, words.result, of, u.id, param).WithParam(param)
	case "unexpected_tool_result":
		return problem.New(http.StatusBadRequest, "unexpected_tool_result", "Each %s must follow the %s that it answers, once. There is no call without a result for the %s %.64q of %s.",
			words.result, words.call, words.id, u.id, param).WithParam(param)
	default:
		return problem.New(http.StatusBadRequest, "invalid_request", "Each %s needs an id of its own, which that of %s is not: %.64q.", words.call, param, u.id).WithParam(param)
	}
}
