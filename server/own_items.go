package server

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gateway/pairs"
	"github.com/lathe-run/lathe/internal/gateway/splice"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire/messages"
)

// Some clients send the calls of this server back, as items that they store without interpreting them: mcp_call items on
// Responses, mcp_tool_use and mcp_tool_result blocks on Messages. If no hidden turn has replaced such items, they are
// converted to the calls and results that the model received. Other items of this server, such as approval requests, are
// removed.

func isOwnPart(p lathe.Part) bool {
	o, ok := p.(lathe.Opaque)
	return ok && splice.IsOwn(o.JSON)
}

// resolveItems returns the messages with items of this server replaced by their calls and results. changed is false if
// there are no such items.
func (c *caller) resolveItems(history []lathe.Message) (out []lathe.Message, changed bool) {
	if !pairs.AnyPart(history, isOwnPart) {
		return history, false
	}
	for i := range history {
		if !slices.ContainsFunc(history[i].Parts, isOwnPart) {
			out = append(out, history[i])
			continue
		}
		out = c.appendResolved(out, &history[i])
	}
	return out, true
}

// appendResolved appends an assistant message, split after each group of calls of this server. A call is left out if this
// server does not have its tool or its result is missing.
func (c *caller) appendResolved(out []lathe.Message, m *lathe.Message) []lathe.Message {
	turn := *m
	turn.Parts = nil
	var results []lathe.Message // of the calls in turn
	given := resultBlocks(m)
	for _, p := range m.Parts {
		if isOwnPart(p) {
			call, result, ok := readCall(p.(lathe.Opaque).JSON, given)
			if ok && c.specOf(call.Name) != nil {
				turn.Parts = append(turn.Parts, call)
				results = append(results, lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{result}})
			}
			continue
		}
		other, ok := c.withoutWaiting(p)
		if !ok {
			continue
		}
		if len(results) > 0 { // the calls before it end a turn
			out = append(append(out, turn), results...)
			turn.Parts, results = nil, nil
		}
		turn.Parts = append(turn.Parts, other)
	}
	if len(turn.Parts) == 0 {
		return out
	}
	return append(append(out, turn), results...)
}

// withoutWaiting returns a part without the waiting sentence (approval.waiting_text), which is obsolete since the result of
// the call follows. ok is false if nothing remains.
func (c *caller) withoutWaiting(p lathe.Part) (_ lathe.Part, ok bool) {
	t, isText := p.(lathe.Text)
	if !isText {
		return p, true
	}
	rest, _, waited := c.setup.waiting.Split(t.Text)
	if !waited {
		return p, true
	}
	t.Text = rest
	return t, rest != ""
}

func resultBlocks(m *lathe.Message) map[string][]byte {
	blocks := map[string][]byte{}
	for _, p := range m.Parts {
		if o, ok := p.(lathe.Opaque); ok && rawjson.TextAt(o.JSON, "type") == "mcp_tool_result" {
			blocks[rawjson.TextAt(o.JSON, "tool_use_id")] = o.JSON
		}
	}
	return blocks
}

// readCall returns the call and the result of a mcp_call item, or of a mcp_tool_use block whose result block is in results.
// ok is false for other items, and if the result, the id or the name is missing. The forms are:
//
//	{"type":"mcp_call","id":"…","name":"…","arguments":"{…}","output":"…","error":null}
//	{"type":"mcp_tool_use","id":"…","name":"…","input":{…}}
//	{"type":"mcp_tool_result","tool_use_id":"…","content":[{"type":"text","text":"…"}],"is_error":false}
func readCall(item []byte, results map[string][]byte) (call lathe.ToolCall, result lathe.ToolResult, ok bool) {
	call.ID, call.Name = rawjson.TextAt(item, "id"), rawjson.TextAt(item, "name")
	switch rawjson.TextAt(item, "type") {
	case "mcp_call":
		call.Arguments = rawjson.TextAt(item, "arguments")
		result.Content = rawjson.TextAt(item, "output")
		if failed := rawjson.At(item, "error"); failed != nil && string(failed) != "null" {
			result.IsError, result.Content = true, cmp.Or(result.Content, rawjson.Text(failed))
		}
	case "mcp_tool_use":
		call.Arguments = string(rawjson.At(item, "input"))
		block, has := results[call.ID]
		if !has {
			return call, result, false
		}
		call.ID = messages.OriginalCallID(call.ID)
		result.Content = blockText(block)
		result.IsError = string(rawjson.At(block, "is_error")) == "true"
	default:
		return call, result, false
	}
	result.CallID, result.Name = call.ID, call.Name
	return call, result, call.ID != "" && call.Name != ""
}

// blockText returns the text of the content of a result block, which is a string or an array of text blocks.
func blockText(block []byte) string {
	content := rawjson.At(block, "content")
	if rawjson.Kind(content) != '[' {
		return rawjson.Text(content)
	}
	var text strings.Builder
	for el := range rawjson.Elements(content) {
		text.WriteString(rawjson.TextAt(el, "text"))
	}
	return text.String()
}
