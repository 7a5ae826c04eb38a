package sim

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// Model servers refuse histories that their templates cannot render. The simulated model refuses the same ones,
// with the status and in the words of the servers named below, so that a test against it finds a request that
// would fail in use.

// refusedCalls returns the error of a history in which a call is not answered, by exactly one tool message that
// follows its message, or a tool message answers no call (OpenAI, Anthropic, Google).
func refusedCalls(p *protocol, messages []lathe.Message) *wire.APIError {
	var open []string // ids without an answer
	for i := range messages {
		m := &messages[i]
		if m.Role == lathe.RoleTool {
			at := slices.Index(open, answeredID(m))
			if at < 0 {
				words := p.orphan
				if p != chatCompletions {
					words += answeredID(m)
				}
				return refusal(p, i, words)
			}
			open = slices.Delete(open, at, at+1)
			continue
		}
		if len(open) > 0 {
			return unansweredCalls(p, i, open)
		}
		for _, c := range m.Calls() {
			open = append(open, c.ID)
		}
	}
	if len(open) > 0 {
		return unansweredCalls(p, len(messages), open)
	}
	return nil
}

func unansweredCalls(p *protocol, i int, ids []string) *wire.APIError {
	return refusal(p, i, p.unanswered+strings.Join(ids, ", "))
}

func answeredID(m *lathe.Message) string {
	for _, p := range m.Parts {
		if r, ok := p.(lathe.ToolResult); ok {
			return r.CallID
		}
	}
	return ""
}

// refusedArguments returns the error of a history with a call whose arguments are not a JSON object. Ollama
// answers 400 to every such text, the empty one included; llama.cpp answers 500 where it is not JSON.
func refusedArguments(p *protocol, messages []lathe.Message) *wire.APIError {
	for i := range messages {
		for _, c := range messages[i].Calls() {
			if !rawjson.IsObject([]byte(c.Arguments), rawjson.Limits{MaxDepth: 1000, MaxKeys: 1 << 30}) {
				return refusal(p, i, "invalid tool call arguments")
			}
		}
	}
	return nil
}

// refusedRoles returns the error of a history whose roles do not alternate as Mistral's templates want: after
// an optional system message user and assistant in turn, where tool messages and assistant messages with calls
// do not count. So a user message directly after a tool message is refused.
func refusedRoles(p *protocol, messages []lathe.Message) *wire.APIError {
	wantsUser := true
	for i := range messages {
		m := &messages[i]
		system := m.Role == lathe.RoleSystem || m.Role == lathe.RoleDeveloper
		switch {
		case m.Role == lathe.RoleTool, len(m.Calls()) > 0, system && i == 0:
			continue
		case system, (m.Role == lathe.RoleUser) != wantsUser:
			return refusal(p, i, "After the optional system message, conversation roles must alternate user/assistant/user/assistant/...")
		}
		wantsUser = !wantsUser
	}
	return nil
}

// refusal is the error for the message at index i. Other wires count something else than messages.
func refusal(p *protocol, i int, message string) *wire.APIError {
	e := &wire.APIError{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: message}
	if p == chatCompletions {
		e.Param = fmt.Sprintf("messages[%d]", i)
	}
	return e
}
