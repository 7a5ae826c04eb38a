package server

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/gateway/splice"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/openai"
)

// serverCall returns a call of this server in the form in which clients get it.
func (a *content) serverCall(asked lathe.ToolCall, name, id, output string, failed bool) *wire.ServerCall {
	name = cmp.Or(asked.Name, name, "unknown") // the call could not be read, so it may have no name
	arguments := splice.Unwrapped(asked.Arguments)
	if !openai.Sendable(arguments) {
		arguments = "{}"
	}
	return &wire.ServerCall{ID: id, Name: name, Server: a.caller.serverOf(name), Arguments: arguments, Output: output, Failed: failed}
}

// serverOf returns the source of a tool that clients see: the name of its MCP server, or "lathe" for other tools.
func (c *access) serverOf(tool string) string {
	if spec := c.specOf(tool); spec != nil {
		if server, ok := strings.CutPrefix(spec.Origin, "mcp:"); ok && server != "" {
			return server
		}
	}
	return "lathe"
}

// A callFeed writes the calls of this server into a stream in the order in which the model made them, although their
// results arrive in the order in which the calls end.
type callFeed struct {
	asked   map[string]lathe.ToolCall   // the calls of the current turn, by id
	order   []string                    // ids of the calls that are planned and not written yet
	results map[string]*wire.ServerCall // the calls that have a result and are not written yet, by id
}

// ask records the calls in a message of the model.
func (f *callFeed) ask(m *lathe.Message) {
	for _, call := range m.Calls() {
		if f.asked == nil {
			f.asked = map[string]lathe.ToolCall{}
		}
		f.asked[call.ID] = call
	}
}

// appendShown appends the calls that have a result, up to the first call without one. If rest is true it skips calls
// without a result, and empties the feed.
func (a *content) appendShown(dst []byte, rest bool) []byte {
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

func (a *content) appendCall(dst []byte, call *wire.ServerCall) []byte {
	a.splitText = true
	return a.writer.AppendServerCall(dst, call)
}

// isServerCall reports whether a call of the tool, whose result has the code, is shown as a call of this server. It is not
// if the tool belongs to the client, or if no tool has that name.
func isServerCall(a *content, tool string, code lathe.Code) bool {
	unknown := code == lathe.CodeUnknownTool || code == lathe.CodePayloadParseError
	return !a.calls.names[tool] && (!unknown || a.caller.specOf(tool) != nil)
}

// called records the result of a call, and appends the calls whose turn it is now.
func (a *content) called(dst []byte, d *event.ToolCallResult) []byte {
	if !a.showsCalls || d.Client {
		return dst
	}
	if !isServerCall(a, cmp.Or(a.feed.asked[d.ToolCallID].Name, d.Tool), d.ErrorType) {
		a.feed.order = slices.DeleteFunc(a.feed.order, func(id string) bool { return id == d.ToolCallID })
		return a.appendShown(dst, false)
	}
	if !slices.Contains(a.feed.order, d.ToolCallID) { // the call was planned before the first event of this stream
		a.feed.order = append(a.feed.order, d.ToolCallID)
	}
	if a.feed.results == nil {
		a.feed.results = map[string]*wire.ServerCall{}
	}
	a.feed.results[d.ToolCallID] = a.serverCall(a.feed.asked[d.ToolCallID], d.Tool, d.ToolCallID, d.Result, d.Status == "error")
	return a.appendShown(dst, false)
}
