package loop

import (
	"errors"
	"strings"

	"github.com/lathe-run/lathe"
)

// refusesTools reports whether err says that the server cannot do tools at all, so that the same
// request without tools may succeed. Everything else (keys, rate limits, time, faults of the
// server, complaints about the messages of tool calls) is not a reason to go without tools.
func refusesTools(err error) bool {
	var up *lathe.UpstreamError
	if !errors.As(err, &up) {
		return false
	}
	text := strings.ToLower(up.Message)
	switch up.Status {
	case 400:
		return mentions(text, toolWords) && !mentions(text, messageWords)
	case 404:
		return strings.Contains(text, "no endpoints found that support tool use")
	default:
		return false
	}
}

// toolWords are the ways in which servers name the feature.
var toolWords = []string{
	"tools", "tool_choice", "tool choice", "tool use", "tool_use", "tool call", "tool-call",
	"function call", "function_call", "functions",
}

// messageWords mark complaints about the conversation, which going without tools does not cure.
var messageWords = []string{"tool_call_id", "role 'tool'", `role "tool"`, "role `tool`", "role of 'tool'"}

func mentions(text string, words []string) bool {
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}
