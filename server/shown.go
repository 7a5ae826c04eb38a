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

// Clients of some wires see the calls of this server: each call with its result is an element of the answer (mcp_call on
// Responses; mcp_tool_use and mcp_tool_result on Messages).

// serverCall returns a call of this server in the form in which clients get it. asked is the call as the model wrote it; it
// is zero if the call could not be read.
func (a *content) serverCall(asked lathe.ToolCall, result lathe.ToolResult) *wire.ServerCall {
	name := cmp.Or(asked.Name, result.Name, "unknown")
	arguments := splice.Unwrapped(asked.Arguments)
	if !openai.Sendable(arguments) {
		arguments = "{}"
	}
	return &wire.ServerCall{ID: result.CallID, Name: name, Server: a.caller.serverOf(name), Arguments: arguments, Output: result.Content, Failed: result.IsError}
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

// appendReady appends the calls that have a result, up to the first call without one.
func (a *content) appendReady(dst []byte) []byte {
	for len(a.feed.order) > 0 && a.feed.results[a.feed.order[0]] != nil {
		dst = a.appendNext(dst)
	}
	return dst
}

// appendNext removes the next call from the feed, and appends it if it has a result.
func (a *content) appendNext(dst []byte) []byte {
	id := a.feed.order[0]
	call := a.feed.results[id]
	a.feed.order = a.feed.order[1:]
	delete(a.feed.asked, id)
	delete(a.feed.results, id)
	if call == nil {
		return dst
	}
	return a.appendCall(a.start(dst), call)
}

func (a *content) appendCall(dst []byte, call *wire.ServerCall) []byte {
	a.splitText = true
	return a.writer.AppendServerCall(dst, call)
}

// isServerCall reports whether a call of the tool, whose result has the code, is shown as a call of this server. It is not
// if the tool belongs to the client, or if no tool has that name.
func (a *content) isServerCall(tool string, code lathe.Code) bool {
	unknown := code == lathe.CodeUnknownTool || code == lathe.CodePayloadParseError
	return !a.calls.names[tool] && (!unknown || a.caller.specOf(tool) != nil)
}

// appendResult records the result of a call, and appends the calls whose turn it is now.
func (a *content) appendResult(dst []byte, d *event.ToolCallResult) []byte {
	if !a.showsCalls || d.Client {
		return dst
	}
	feed, id := &a.feed, d.ToolCallID
	asked := feed.asked[id]
	if !a.isServerCall(cmp.Or(asked.Name, d.Tool), d.ErrorType) {
		feed.order = slices.DeleteFunc(feed.order, func(other string) bool { return other == id })
		return a.appendReady(dst)
	}
	if !slices.Contains(feed.order, id) { // the call was planned before the first event of this stream
		feed.order = append(feed.order, id)
	}
	if feed.results == nil {
		feed.results = map[string]*wire.ServerCall{}
	}
	feed.results[id] = a.serverCall(asked, lathe.ToolResult{CallID: id, Name: d.Tool, Content: d.Result, IsError: d.Status == "error"})
	return a.appendReady(dst)
}
