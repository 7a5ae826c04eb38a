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
	for i := 0; i < len(messages); i++ {
		if messages[i].Role == lathe.RoleTool {
			return &Unpaired{code: "unexpected_tool_result", Message: i, id: Answered(&messages[i])}
		}
		calls := messages[i].Calls()
		if len(calls) == 0 {
			continue
		}
		open := make(map[string]bool, len(calls))
		for _, call := range calls {
			if call.ID == "" || open[call.ID] {
				return newUnpaired("invalid_request", messages, i, &call)
			}
			open[call.ID] = true
		}
		first := i
		for range calls {
			if i+1 == len(messages) || !open[Answered(&messages[i+1])] {
				for k := range calls {
					if open[calls[k].ID] {
						return newUnpaired("missing_tool_result", messages, first, &calls[k])
					}
				}
			}
			i++
			delete(open, Answered(&messages[i]))
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
	words, other := wirePairs[w]
	if !other {
		words = chatPair
	}
	p := &problem.Problem{Status: http.StatusBadRequest, Code: u.code, Param: at(fmt.Sprintf("messages[%d].parts[%d]", u.Message, u.part))}
	switch element, _, _ := strings.Cut(p.Param, "]"); {
	case !other:
		p.Param = element + "]"
	case strings.HasPrefix(p.Param, "messages[") && strings.Contains(p.Param, ".parts["): // the part is not in this request
		p.Param = words.conversation
	}
	of := ""
	if u.tool != "" {
		of = fmt.Sprintf(" of %.64s", u.tool)
	}
	switch u.code {
	case "missing_tool_result":
		p.Code = "missing_tool_result"
		p.Message = fmt.Sprintf("Each %s must be followed by one %s, before anything else. The call%s with the id %.64q, %s, has none.", words.call, words.result, of, u.id, p.Param)
	case "unexpected_tool_result":
		p.Code = "unexpected_tool_result"
		p.Message = fmt.Sprintf("Each %s must follow the %s that it answers, once. There is no call without a result for the %s %.64q of %s.", words.result, words.call, words.id, u.id, p.Param)
	default:
		p.Message = fmt.Sprintf("Each %s needs an id of its own, which that of %s is not: %.64q.", words.call, p.Param, u.id)
	}
	return p
}
