package provider

import (
	"cmp"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
)

// render returns req in the form of dialect d, with these tools as text.
func render(d *dialect.Dialect, req *lathe.Request, tools []*lathe.ToolSpec) *lathe.Request {
	out := *req
	out.Tools, out.ToolChoice, out.ParallelToolCalls = nil, lathe.ToolChoice{}, nil
	said := req.Messages
	if isStructured(d) {
		said = structured(said, lastAnswer(said))
	}
	out.Messages = d.Rewrite(&lathe.Request{Tools: tools, Messages: said}).Messages
	if note := choiceNote(req, tools); note != "" {
		first := &out.Messages[0]
		first.Parts = append(slices.Clip(first.Parts), lathe.Text{Text: "\n\n" + note})
	}
	return &out
}

// choiceNote returns tool_choice and parallel_tool_calls as an instruction in words; "" if they demand nothing.
func choiceNote(req *lathe.Request, tools []*lathe.ToolSpec) string {
	if len(tools) == 0 {
		return ""
	}
	note := ""
	switch req.ToolChoice.Mode {
	case lathe.ChoiceRequired:
		note = "You must call a tool now."
	case lathe.ChoiceFunction:
		note = "You must call the tool " + req.ToolChoice.Name + " now."
	}
	if req.ParallelToolCalls != nil && !*req.ParallelToolCalls {
		if note != "" {
			note += " "
		}
		note += "Call one tool at a time."
	}
	return note
}

// lastAnswer returns the index of the last answer, which is an assistant message with text and without calls, or -1.
func lastAnswer(messages []lathe.Message) int {
	for i, m := range slices.Backward(messages) {
		if m.Role == lathe.RoleAssistant && m.Text() != "" && len(m.Calls()) == 0 {
			return i
		}
	}
	return -1
}

// structured prepares a history for a server that writes calls and reasoning itself: it removes the reasoning of messages up to index
// answered, and replaces unreadable calls.
func structured(messages []lathe.Message, answered int) []lathe.Message {
	out := slices.Clone(messages)
	for i := range out {
		m := &out[i]
		if m.Role != lathe.RoleAssistant {
			continue
		}
		m.Parts = readable(m.Parts)
		if i <= answered {
			m.Parts = slices.DeleteFunc(m.Parts, isReasoning)
		}
	}
	return out
}

func isReasoning(p lathe.Part) bool { _, ok := p.(lathe.Reasoning); return ok }

func isUnreadable(p lathe.Part) bool {
	c, ok := p.(lathe.ToolCall)
	return ok && c.ParseError != ""
}

// readable returns a copy of parts that has calls without arguments in place of unreadable ones. So each result still belongs to a call;
// the unreadable text is in the message already.
func readable(parts []lathe.Part) []lathe.Part {
	parts = slices.Clone(parts)
	for i, p := range parts {
		if c, ok := p.(lathe.ToolCall); ok && c.ParseError != "" {
			c.Name, c.Arguments = cmp.Or(c.Name, "unknown"), "{}"
			parts[i] = c
		}
	}
	return parts
}
