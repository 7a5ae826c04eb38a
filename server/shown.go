package server

import (
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/visible"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/openai"
)

// A step is one element of an answer to a client: a part of a message, or a call of this server with its result.
type step struct {
	part lathe.Part
	call *wire.ServerCall
}

// steps returns the elements of messages that the client receives, in the order of a stream. history has the calls that the
// results among messages answer.
func (a *chat) steps(messages, history []lathe.Message) (out []step) {
	if !a.protocol.ordered {
		for _, p := range a.shown(messages) {
			out = append(out, step{part: p})
		}
		return out
	}
	var asked map[string]lathe.ToolCall
	for i := range messages {
		m := &messages[i]
		if r, ok := resultOf(m); ok && a.shows && r.Code != lathe.CodeUnknownTool && a.isServerCall(r.Name) {
			if asked == nil {
				asked = callsOf(history)
			}
			out = append(out, step{call: a.serverCall(asked[r.CallID], r.Name, r.CallID, r.Content, r.IsError)})
		}
		if m.Role == lathe.RoleAssistant {
			out = a.appendTurn(out, m)
		}
	}
	return out
}

// appendTurn appends the parts of an assistant message that the client receives.
func (a *chat) appendTurn(out []step, m *lathe.Message) []step {
	for _, p := range visible.Parts(m) {
		var last lathe.Part
		if len(out) > 0 {
			last = out[len(out)-1].part
		}
		switch p := p.(type) {
		case lathe.Text:
			if p.Text == "" || a.alone {
				continue // the one of the last turn is appended at the end
			}
			if before, ok := last.(lathe.Text); ok {
				out[len(out)-1].part = lathe.Text{Text: before.Text + between + p.Text}
				continue
			}
			out = append(out, step{part: lathe.Text{Text: p.Text}})
		case lathe.Reasoning:
			if before, ok := last.(lathe.Reasoning); ok {
				out[len(out)-1].part = lathe.Reasoning{Text: before.Text + p.Text}
				continue
			}
			if p.Text != "" {
				out = append(out, step{part: lathe.Reasoning{Text: p.Text}})
			}
		case lathe.Refusal:
			out = append(out, step{part: p})
		case lathe.Blob, lathe.ToolCall, lathe.ToolResult, lathe.Opaque:
		}
	}
	return out
}

// isServerCall reports whether a call is shown as one of this server: it is none of the client's tools, and not of a name that no tool has.
func (a *chat) isServerCall(tool string) bool { return tool != unknownTool && !a.calls.names[tool] }

// resultOf returns the result in a message of a tool.
func resultOf(m *lathe.Message) (lathe.ToolResult, bool) {
	if m.Role != lathe.RoleTool || len(m.Parts) != 1 {
		return lathe.ToolResult{}, false
	}
	r, ok := m.Parts[0].(lathe.ToolResult)
	return r, ok
}

func callsOf(messages []lathe.Message) map[string]lathe.ToolCall {
	calls := map[string]lathe.ToolCall{}
	for i := range messages {
		for _, call := range messages[i].Calls() {
			calls[call.ID] = call
		}
	}
	return calls
}

// serverCall returns a call of this server in the form in which clients receive it.
func (a *chat) serverCall(asked lathe.ToolCall, name, id, output string, failed bool) *wire.ServerCall {
	if asked.Name != "" {
		name = asked.Name
	}
	arguments := unwrapped(asked.Arguments)
	if !openai.Sendable(arguments) {
		arguments = "{}"
	}
	return &wire.ServerCall{ID: id, Name: name, Server: a.caller.serverOf(name), Arguments: arguments, Output: output, Failed: failed}
}

// serverOf returns the source of a tool as clients receive it: the name of its MCP server, else "lathe".
func (c *caller) serverOf(tool string) string {
	if spec := c.specOf(tool); spec != nil {
		if server, ok := strings.CutPrefix(spec.Origin, "mcp:"); ok && server != "" {
			return server
		}
	}
	return "lathe"
}

// A callFeed orders the calls of this server in a stream as the model made them. Their results arrive in the order in which the
// calls end.
type callFeed struct {
	asked   map[string]lathe.ToolCall // of the current turn
	order   []string                  // calls that were planned and not written yet
	results map[string]*wire.ServerCall
}

// ask records the calls of a turn.
func (f *callFeed) ask(m *lathe.Message) {
	for _, call := range m.Calls() {
		if f.asked == nil {
			f.asked = map[string]lathe.ToolCall{}
		}
		f.asked[call.ID] = call
	}
}

// appendShown appends the calls that are next in order; if rest is set, all calls that have a result.
func (a *chat) appendShown(dst []byte, rest bool) []byte {
	f := &a.feed
	for len(f.order) > 0 {
		id := f.order[0]
		call := f.results[id]
		if call == nil && !rest {
			return dst
		}
		f.order = f.order[1:]
		delete(f.asked, id)
		if delete(f.results, id); call != nil {
			dst = a.appendCall(a.start(dst), call)
		}
	}
	return dst
}

func (a *chat) appendCall(dst []byte, call *wire.ServerCall) []byte {
	a.splitText = true
	return a.writer.AppendServerCall(dst, call)
}

// called records the result of a call and appends the calls that can be written now.
func (a *chat) called(dst []byte, d *event.ToolCallResult) []byte {
	if !a.shows || d.Client || !a.isServerCall(d.Tool) {
		return dst
	}
	if !slices.Contains(a.feed.order, d.ToolCallID) { // it was planned before the first event of this stream
		a.feed.order = append(a.feed.order, d.ToolCallID)
	}
	if a.feed.results == nil {
		a.feed.results = map[string]*wire.ServerCall{}
	}
	a.feed.results[d.ToolCallID] = a.serverCall(a.feed.asked[d.ToolCallID], d.Tool, d.ToolCallID, d.Result, d.Status == "error")
	return a.appendShown(dst, false)
}

// wholeAnswer returns the parts of an answer that is not streamed, and the items between them.
func (a *chat) wholeAnswer(res *event.Result) (parts []lathe.Part, items []wire.Item) {
	own := res.History[min(a.base, len(res.History)):]
	if !a.protocol.ordered {
		return withParagraph(a.shown(own), a.waitingFor(res)), nil
	}
	began := 0
	for i := range own {
		last := i+1 == len(own)
		if !last && (a.carriers == nil || own[i].Role != lathe.RoleTool || own[i+1].Role != lathe.RoleAssistant) {
			continue
		}
		for _, s := range a.steps(own[began:i+1], res.History) {
			if s.call != nil {
				items = append(items, wire.Item{Before: len(parts), Call: s.call})
				continue
			}
			parts = append(parts, s.part)
		}
		if began = i + 1; !last {
			items = appendCarrier(items, len(parts), a.carriers.seal(own[:began], a.job.loop.Retention()))
		}
	}
	if a.alone {
		for _, p := range a.shown(own) {
			if t, ok := p.(lathe.Text); ok {
				parts = append(parts, t)
			}
		}
	}
	if a.carriers != nil && len(a.handedOver(res)) > 0 {
		items = appendCarrier(items, len(parts), a.carriers.end(own, a.hands, a.job.loop.Retention()))
	}
	for _, ask := range a.approvalsOf(res) {
		items = append(items, wire.Item{Before: len(parts), Approval: ask})
	}
	if wait := a.waitingFor(res); wait != "" {
		parts = append(parts, lathe.Text{Text: wait})
	}
	return parts, items
}

func appendCarrier(items []wire.Item, before int, text string) []wire.Item {
	if text == "" {
		return items
	}
	return append(items, wire.Item{Before: before, Carrier: text})
}
