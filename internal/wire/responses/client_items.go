package responses

import (
	"bytes"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// A clientItem is a type of call that the vendor has a tool for and the client executes, such as local_shell_call. In the internal form it
// is a call of a function with the name tool, whose arguments are the member args, and its output is the result, so that a model of any
// wire sees both. A server of this wire gets the items as they came.
type clientItem struct{ tool, args string }

var clientItems = map[string]clientItem{
	"local_shell_call": {"local_shell", "action"},
	"shell_call":       {"shell", "action"},
	"apply_patch_call": {"apply_patch", "operation"},
	"computer_call":    {"computer", "action"},
	"tool_search_call": {"tool_search", "arguments"},
}

// parseClientItem parses a call of a clientItem or its output. done is false for other items, and for those that the vendor's server
// executed.
func (r *reader) parseClientItem(v []byte, o wire.Object, typ string) (done bool, err *wire.APIError) {
	call, isOutput := strings.CutSuffix(typ, "_output")
	if call == "tool_search" {
		call += "_call"
	}
	kind, ok := clientItems[call]
	id := text(v, "call_id")
	if !ok || id == "" || call == "tool_search_call" && text(v, "execution") != "client" {
		return false, nil
	}
	kept := []lathe.Member{{Name: wire.ItemMember, Value: bytes.Clone(v)}}
	if !isOutput {
		c := lathe.ToolCall{ID: id, Name: kind.tool, Arguments: "{}", Extra: kept}
		if args := o.Get(kind.args); wire.Kind(args) == '{' {
			c.Arguments = string(args)
		}
		return true, r.addCall(c)
	}
	res := lathe.ToolResult{CallID: id, Name: kind.tool}
	if call == "tool_search_call" {
		n := len(r.tools)
		if err := r.addTools(o.Get("tools"), ".tools", true); err != nil {
			return true, err
		}
		res.Content = "Loaded tools:"
		for _, t := range r.tools[n:] {
			res.Content += " " + t.Name
		}
	} else if err := r.readClientOutput(&res, v, o.Get("output")); err != nil {
		return true, err
	}
	return true, r.addResult(res, kept)
}

// readClientOutput reads an output: a text, a screenshot, or JSON, which becomes text.
func (r *reader) readClientOutput(res *lathe.ToolResult, item, output []byte) *wire.APIError {
	switch {
	case wire.Kind(output) == '"':
		res.Content = rawjson.Text(output)
	case text(output, "type") == "computer_screenshot":
		p, err := parseImage(output, ".output")
		if b, ok := p.(lathe.Blob); ok {
			b.Raw = nil // not a part of a message
			res.Blobs = []lathe.Blob{b}
		}
		return err
	case output != nil:
		res.Content = string(rawjson.AppendCompact(nil, output))
	default: // what the item says itself, such as its status
		res.Content = string(wire.JSON("{").Members(members(item, "type", "id", "call_id"), nil).Lit("}"))
	}
	return nil
}

// addTools adds the tools that an item of the input gives the model, below at. They are available in the whole request. A tool that the
// request has already is not added again. Of an item that is not known, such as the output of a search that the vendor executed, only
// the vendor's tools are added: the functions are no tools of the client.
func (r *reader) addTools(v []byte, at string, known bool) *wire.APIError {
	if v == nil || !known && wire.Kind(v) != '[' {
		return nil
	}
	if err := wire.NeedArray(v, at); err != nil {
		return err
	}
	n, i, hosted := len(r.tools), 0, len(r.Hosted)
	r.loading = true
	for el := range rawjson.Elements(v) {
		if known || !isFunction(text(el, "type")) {
			if err := r.parseTool(el, wire.Element(at, i), ""); err != nil {
				return err
			}
		}
		for ; hosted < len(r.Hosted); hosted++ {
			r.Hosted[hosted].Item = wire.Element(at, i)
		}
		i++
	}
	r.loading = false
	for _, t := range r.tools[n:] {
		t.Origin = wire.OriginInput
	}
	r.Tools = append(r.Tools[:len(r.Tools):len(r.Tools)], r.tools[n:]...)
	return nil
}

// isFunction reports whether a tool of that type is one of the client.
func isFunction(typ string) bool {
	return typ == "" || typ == "function" || typ == typeCustom || typ == "namespace"
}

// sentAsItem returns the item that a call or a result was read from, if a server of this wire gets it as it came: with the same call_id.
func sentAsItem(own bool, extra []lathe.Member, id string) []byte {
	if !own {
		return nil
	}
	if item := wire.MemberValue(extra, wire.ItemMember); item != nil && text(item, "call_id") == id {
		return item
	}
	return nil
}
