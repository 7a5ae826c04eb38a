package lathe

import "strings"

// RefusesTools reports whether the server says that it or the model does not support tools at all, so that the same request without tools
// may succeed. It is decided by Status and by words in Message, and is false for all other failures, including errors about the
// messages of earlier tool calls.
func (e *UpstreamError) RefusesTools() bool {
	text := strings.ToLower(e.Message)
	switch e.Status {
	case 400:
		return mentions(text, toolWords) && !mentions(text, toolMessageWords)
	case 404:
		return strings.Contains(text, "no endpoints found that support tool use")
	case 500, 501:
		return mentions(text, toolWords) && mentions(text, []string{"requires --jinja", "not supported", "does not support", "unsupported"}) &&
			!mentions(text, toolMessageWords)
	default:
		return false
	}
}

// toolWords are the ways in which servers name the feature.
var toolWords = []string{
	"tools", "tool_choice", "tool choice", "tool use", "tool_use", "tool call", "tool-call",
	"function call", "function_call", "functions",
}

// toolMessageWords mark complaints about the conversation, which going without tools does not cure.
var toolMessageWords = []string{"tool_call_id", "role 'tool'", `role "tool"`, "role `tool`", "role of 'tool'", "tool call arguments"}

func mentions(text string, words []string) bool {
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}
