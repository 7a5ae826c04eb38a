package responses

import (
	"bytes"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// A clientItem is a type of call for which the vendor defines a tool and which the client executes, such as local_shell_call. In the
// internal form it is a call of a function named tool, with the member args as its arguments, and its output is the result, so that models
// of all wires receive both. Servers of this wire receive the items unchanged.
//
// The type of the output is that of the call with the suffix _output, such as local_shell_call_output, except for tool_search_output.
type clientItem struct{ tool, args string }

// typeToolSearch is the type of the call by which a model searches for tools. Its output declares the tools that were found.
const typeToolSearch = "tool_search_call"

var clientItems = map[string]clientItem{
	"local_shell_call": {"local_shell", "action"},
	"shell_call":       {"shell", "action"},
	"apply_patch_call": {"apply_patch", "operation"},
	"computer_call":    {"computer", "action"},
	typeToolSearch:     {"tool_search", "arguments"},
}

// readClientItem parses a call of a clientItem, or the output of one. It returns false for other items, and for calls that the vendor's
// server executed.
func (r *input) readClientItem(v []byte, o wire.Object, typ string) bool {
	callType, isOutput := strings.CutSuffix(typ, "_output")
	if callType == "tool_search" {
		callType = typeToolSearch
	}
	kind, known := clientItems[callType]
	id := rawjson.Text(o.Get("call_id"))
	isSearch := callType == typeToolSearch
	executedByServer := isSearch && rawjson.Text(o.Get("execution")) != "client"
	if !known || id == "" || executedByServer {
		return false
	}
	kept := []lathe.Member{{Name: wire.ItemMember, Value: bytes.Clone(v)}}
	if !isOutput {
		c := lathe.ToolCall{ID: id, Name: kind.tool, Arguments: "{}", Extra: kept}
		if args := o.Get(kind.args); rawjson.Kind(args) == '{' {
			c.Arguments = string(args)
		}
		r.addCall(c)
		return true
	}
	res := lathe.ToolResult{CallID: id, Name: kind.tool}
	if isSearch {
		r.readFoundTools(&res, o)
	} else {
		readClientOutput(&res, v, o)
	}
	r.addResult(res, kept)
	return true
}

// readFoundTools adds the tools that a search found to the request, and sets the content of its result to their names.
func (r *reader) readFoundTools(res *lathe.ToolResult, o wire.Object) {
	before := len(r.Tools)
	r.addTools(o, anyTool)
	res.Content = "Loaded tools:"
	for _, t := range r.Tools[before:] {
		res.Content += " " + t.Name
	}
}

// readClientOutput reads an output: a text, a screenshot, or other JSON, which becomes text.
func readClientOutput(res *lathe.ToolResult, item []byte, o wire.Object) {
	switch output := o.Get("output"); {
	case rawjson.Kind(output) == '"':
		res.Content = rawjson.Text(output)
	case text(output, "type") == "computer_screenshot":
		b := readImage(o.Object("output", partNames), nil) // not a part of a message
		res.Blobs = []lathe.Blob{b}
	case output != nil:
		res.Content = string(rawjson.AppendCompact(nil, output))
	default: // members of the item itself, such as its status
		res.Content = string(wire.JSON("{").Members(members(item, "type", "id", "call_id"), nil).Lit("}"))
	}
}

// addTools adds the tools that an item of the input declares and whose types are wanted. They are available in the whole request. A tool
// that the request already has is not added again.
func (r *reader) addTools(o wire.Object, wanted func(typ string) bool) {
	if o.Get("tools") == nil {
		return
	}
	r.inItem = true
	for el := range o.Elements("tools") {
		if wanted(text(el, "type")) {
			r.readTool(el, "")
		}
	}
	r.inItem = false
}

func anyTool(string) bool { return true }

// isHosted reports whether a tool of that type is executed by the vendor.
func isHosted(typ string) bool {
	return typ != "" && typ != "function" && typ != typeCustom && typ != "namespace"
}

// sentAsItem returns the item from which a call or a result was read, if a server of this wire may receive it unchanged: it is from this
// wire and has the same call_id. Otherwise it returns nil.
func sentAsItem(from lathe.Wire, extra []lathe.Member, id string) []byte {
	if item := wire.MemberValue(extra, wire.ItemMember); own(from) && text(item, "call_id") == id {
		return item
	}
	return nil
}
