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

// Model servers refuse histories that their templates cannot render. The simulated model refuses the same histories, with the status and
// the message of the servers named below, so that a test with it finds requests that would fail in use.

// refusedCalls returns the error of a history in which a call does not have exactly one tool message after its message, or a tool message
// belongs to no call (OpenAI, Anthropic, Google). It returns nil for all others.
func refusedCalls(p *protocol, messages []lathe.Message) *wire.APIError {
	var open []string // ids of calls without a result
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

// refusedArguments returns the error of a history with a call whose arguments are not a JSON object, or nil. Ollama answers 400 to all
// such arguments, including empty ones; llama.cpp answers 500 if they are not JSON.
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

// refusedRoles returns the error of a history whose roles do not alternate as Mistral's templates require, or nil: after an optional
// system message, user and assistant messages must alternate. Tool messages and assistant messages with calls do not count, so a user
// message directly after a tool message is refused.
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

// refusal returns the error for the message at index i. Only chat completions name the index, because other wires do not count messages.
func refusal(p *protocol, i int, message string) *wire.APIError {
	e := &wire.APIError{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: message}
	if p == chatCompletions {
		e.Param = fmt.Sprintf("messages[%d]", i)
	}
	return e
}
