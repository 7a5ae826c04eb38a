package sim

import (
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/gemini"
	"github.com/lathe-run/lathe/internal/wire/messages"
	"github.com/lathe-run/lathe/internal/wire/openai"
	"github.com/lathe-run/lathe/internal/wire/responses"
)

// A protocol is one wire of the simulated server: its codec, and properties of the wire that the internal form does not have.
type protocol struct {
	wire.Served
	// thoughts and data are the fields of [lathe.Reasoning] for the text and for the signature of reasoning. If they are equal, one part
	// has both. data is "" on a wire without signatures.
	thoughts, data string
	// unanswered and orphan are the error messages for a call without a result, and for a result without a call. The ids are appended to
	// them.
	unanswered, orphan string
}

var (
	chatCompletions = &protocol{
		Served: strictChat{}, thoughts: "reasoning_content",
		unanswered: "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. " +
			"These had no response: ",
		orphan: "messages with role 'tool' must be a response to a preceding message with 'tool_calls'.",
	}
	responsesAPI = &protocol{
		Served: responses.Codec{}, thoughts: "encrypted_content", data: "encrypted_content",
		unanswered: "No tool output found for function call ",
		orphan:     "No tool call found for function call output with call_id ",
	}
	messagesAPI = &protocol{
		Served: messages.Codec{}, thoughts: "thinking", data: "thinking",
		unanswered: "`tool_use` ids were found without `tool_result` blocks immediately after: ",
		orphan:     "unexpected `tool_use_id` found in `tool_result` blocks: ",
	}
	generateContent = &protocol{
		Served: gemini.Codec{}, thoughts: "thought", data: "thoughtSignature",
		unanswered: "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn. No response: ",
		orphan:     "Please ensure that a function response turn comes immediately after a function call turn. No call: ",
	}
	protocols = []*protocol{chatCompletions, responsesAPI, messagesAPI, generateContent}
)

// strictChat is the codec of chat completions that rejects members that the internal form does not have.
type strictChat struct{ openai.Served }

// ParseRequest implements [wire.Served].
func (strictChat) ParseRequest(body []byte) (*wire.ClientRequest, error) {
	req, err := openai.ParseRequest(body)
	if err != nil {
		return nil, err
	}
	req.Body = body
	return req, nil
}

// message returns the turn as the assistant message that a client of the wire assembles from it.
func (p *protocol) message(t *Turn, model string) lathe.Message {
	m := lathe.Message{Role: lathe.RoleAssistant}
	if p != chatCompletions { // Wire is "" for chat completions
		m.Wire = p.Wire()
	}
	signature := ""
	if p.data != "" && !t.unsigned && (t.Reasoning != "" || t.hidden != "") {
		signature = sign(model, t)
	}
	apart := p.data != p.thoughts // the signature is a separate part, before the first call or after the text
	thoughts := lathe.Reasoning{Text: t.Reasoning, Field: p.thoughts}
	switch {
	case apart:
	case t.redacted:
		thoughts = lathe.Reasoning{Field: redactedThinking, Data: signature}
	default:
		thoughts.Data = signature
	}
	if thoughts.Text != "" || thoughts.Data != "" {
		m.Parts = append(m.Parts, thoughts)
	}
	if t.Text != "" {
		m.Parts = append(m.Parts, lathe.Text{Text: t.Text})
	}
	if apart && signature != "" {
		m.Parts = append(m.Parts, lathe.Reasoning{Field: p.data, Data: signature})
	}
	for _, c := range t.Calls {
		m.Parts = append(m.Parts, c)
	}
	return m
}

// redactedThinking is the field of reasoning on Messages that consists only of opaque data.
const redactedThinking = "redacted_thinking"

// deltas yields a message as a server streams it: text in words, and argument text in pieces of 16 bytes. It returns false if yield did.
func deltas(m *lathe.Message, yield func(lathe.Delta) bool) bool {
	say := func(kind lathe.DeltaKind, text string) bool {
		for _, w := range pieces(text) {
			if !yield(lathe.Delta{Kind: kind, Text: w}) {
				return false
			}
		}
		return true
	}
	calls := 0
	for _, p := range m.Parts {
		ok := true
		switch p := p.(type) {
		case lathe.Reasoning:
			ok = say(lathe.DeltaReasoning, p.Text)
			if ok && p.Data != "" {
				ok = yield(lathe.Delta{Kind: lathe.DeltaReasoningData, Name: p.Field, Text: p.Data})
			}
		case lathe.Text:
			ok = say(lathe.DeltaText, p.Text)
		case lathe.ToolCall:
			ok = callDeltas(calls, &p, yield)
			calls++
		case lathe.Blob, lathe.Refusal, lathe.ToolResult, lathe.Opaque: // a turn does not have these
		}
		if !ok {
			return false
		}
	}
	return true
}

func callDeltas(index int, c *lathe.ToolCall, yield func(lathe.Delta) bool) bool {
	if !yield(lathe.Delta{Kind: lathe.DeltaCallStart, Index: index, ID: c.ID, Name: c.Name}) {
		return false
	}
	for _, text := range cutText(c.Arguments) {
		if !yield(lathe.Delta{Kind: lathe.DeltaCallArgs, Index: index, Text: text}) {
			return false
		}
	}
	return yield(lathe.Delta{Kind: lathe.DeltaCallEnd, Index: index, Incomplete: c.Incomplete})
}

// NewWriter implements [wire.Served]. In a stream, names of calls are written unchanged, including names that no server would send.
func (c strictChat) NewWriter(head *wire.AnswerHead) wire.Writer {
	w := c.Served.NewWriter(head)
	if chunks, ok := w.(*openai.ChunkWriter); ok {
		chunks.AnyName = !head.Whole
	}
	return w
}

// modelPath divides the path of a request for generateContent into the name of the model, without "models/", and the method after the
// last colon.
func modelPath(path string) (model, method string) {
	i := strings.LastIndexByte(path, ':')
	if i < 0 {
		return strings.TrimPrefix(path, "models/"), ""
	}
	return strings.TrimPrefix(path[:i], "models/"), path[i+1:]
}
