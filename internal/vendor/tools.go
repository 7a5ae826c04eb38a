package vendor

import (
	"regexp"
	"slices"
	"sync"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// others are types of tools that the client executes, or that only read the definitions of the request: they need no right.
var others = foldKeys(map[string]bool{"": true, "function": true, "custom": true, "namespace": true, "function_declarations": true,
	"bash": true, "text_editor": true, "computer": true, "computer_use": true, "memory": true, "local_shell": true, "apply_patch": true,
	"tool_search": true, "tool_search_tool_regex": true, "tool_search_tool_bm25": true})

// toolMembers are members of a request that have the vendor execute a tool, with the name of the tool.
var toolMembers = map[string]string{"web_search_options": "web_search", "search_parameters": "web_search", "enable_search": "web_search", "mcp_servers": "mcp"}

// version is the end of a type that names one version of a tool.
var version = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(_preview)?(_\d{8}|_\d{4}_\d\d_\d\d)?$`) })

// ToolName returns the name of the tool of a type: the type without its version, such as web_search for web_search_20250305.
func ToolName(typ string) string {
	switch name := typ[:version().FindStringIndex(typ)[0]]; name {
	case "mcp_toolset", "mcp_toolset_reference", "mcp_tool_reference":
		return "mcp"
	default:
		return name
	}
}

// AllowsTool reports whether a list has the tool of a type, by the type or by its name. The wires write names with and without underscores.
func AllowsTool(list []string, typ string) bool {
	fold := func(s string) string { return string(appendFolded(nil, []byte(s))) }
	return slices.ContainsFunc(list, func(s string) bool {
		return s == typ || fold(s) == fold(ToolName(typ))
	})
}

// IsToolMember reports whether a member of a request has the vendor execute a tool.
func IsToolMember(name string) bool { return toolMembers[name] != "" }

// Withheld is a request without the tools of the vendor that its client may not use.
type Withheld struct {
	Body  []byte
	Tools []string // the types of the tools and the members that were removed, once each
	// Forced is the type of a removed tool that the tool choice of the request forces; "" if it forces no removed tool.
	Forced string
}

// Withhold removes the tools from a request that the vendor would execute and that are not in the list, wherever the request declares
// them. The other bytes stay. body must be valid JSON; what is no object is returned as it is.
func Withhold(body []byte, list []string) Withheld {
	w := withholder{list: list, seen: map[string]bool{}, names: map[string]string{}}
	out := Withheld{Body: body}
	top := body[rawjson.SkipSpace(body, 0):]
	if len(top) == 0 || top[0] != '{' {
		return out
	}
	w.array(get(top, "tools"), true) // the names of removed tools are known before blocks that refer to them
	left := true
	edited := rawjson.AppendEdited(nil, top, func(name string, v []byte) ([]byte, []byte, bool) {
		switch {
		case toolMembers[name] != "" && string(v) != "null" && !AllowsTool(list, toolMembers[name]):
			w.remove(name)
			return nil, v, false
		case name == "tools" && v[0] == '[':
			w.within = false
			kept, changed := w.array(v, true)
			left = kept[rawjson.SkipSpace(kept, 1)] != ']'
			return nil, kept, !changed || left
		case data[string(appendFolded(nil, []byte(name)))] && v[0] == '{':
			return nil, v, true
		}
		w.within = true
		kept, _ := w.value(v)
		return nil, kept, true
	}, nil)
	if w.within = false; len(w.removed) == 0 {
		return out
	}
	out.Body, out.Tools, out.Forced = edited, w.removed, w.forced(top, left)
	if !left { // vendors refuse a choice without tools
		for _, name := range []string{"tool_choice", "parallel_tool_calls", "toolConfig", "tool_config"} {
			out.Body = rawjson.Without(out.Body, name)
		}
	}
	return out
}

// A withholder removes tools from one request.
type withholder struct {
	list    []string
	removed []string
	seen    map[string]bool   // the same
	names   map[string]string // the types of removed tools by their names
	within  bool              // what is read is not the member tools of the request
}

func (w *withholder) remove(typ string) {
	if !w.seen[typ] {
		w.seen[typ] = true
		w.removed = append(w.removed, typ)
	}
}

// needs reports whether a type is that of a tool that needs a right which the list does not give. The server itself reads tools of type
// mcp in the member tools: they name servers of its configuration.
func (w *withholder) needs(typ string) bool {
	return (typ != "mcp" || w.within) && !others[string(appendFolded(nil, []byte(ToolName(typ))))] && !AllowsTool(w.list, typ)
}

// declares reports whether an object declares a tool to remove.
func (w *withholder) declares(tool []byte) bool {
	if len(tool) == 0 || tool[0] != '{' {
		return false
	}
	typ := text(tool, "type")
	switch typ {
	case "tool_definition": // of a tool that the client adds
		return w.declares(get(tool, "definition"))
	case "tool_reference": // to a tool that the request declares
		return w.names[text(tool, "name")] != ""
	}
	if !w.needs(typ) || typ == "shell" && text(get(tool, "environment"), "type") == "local" { // the client executes the commands
		return false
	}
	w.remove(typ)
	if name := text(tool, "name"); name != "" {
		w.names[name] = typ
	}
	return true
}

// value removes the tools that are declared within an item or a message.
func (w *withholder) value(v []byte) (out []byte, changed bool) {
	switch {
	case len(v) == 0:
		return v, false
	case v[0] == '[':
		return w.array(v, false)
	case v[0] != '{':
		return v, false
	}
	one := false
	out = rawjson.AppendEdited(nil, v, func(name string, v []byte) ([]byte, []byte, bool) {
		if data[string(appendFolded(nil, []byte(name)))] && v[0] == '{' {
			return nil, v, true
		}
		if name == "tools" && v[0] == '[' {
			v, one = w.array(v, true)
		} else {
			v, one = w.value(v)
		}
		changed = changed || one
		return nil, v, true
	}, nil)
	if !changed {
		return v, false
	}
	return out, true
}

// array removes elements: with tools those that are tools to remove, else the blocks that add one.
func (w *withholder) array(v []byte, tools bool) (out []byte, changed bool) {
	if len(v) == 0 || v[0] != '[' {
		return v, false
	}
	out = []byte{'['}
	for el := range rawjson.Elements(v) {
		var kept []byte
		var one, drop bool
		if tools {
			kept, one, drop = w.tool(el)
		} else if kept, one = w.value(el); el[0] == '{' {
			drop = w.declares(get(el, "tool")) // a block tool_addition or tool_removal
		}
		if changed = changed || one || drop; drop {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, kept...)
	}
	if !changed {
		return v, false
	}
	return append(out, ']'), true
}

// tool removes a tool, or of an element of Gemini those members that are tools to remove.
func (w *withholder) tool(el []byte) (kept []byte, changed, drop bool) {
	if len(el) == 0 || el[0] != '{' {
		return el, false, false
	}
	if text(el, "type") != "" {
		if w.declares(el) {
			return el, false, true
		}
		kept, changed = w.value(el) // a namespace has tools
		return kept, changed, false
	}
	if text(el, "name") != "" { // a tool of the client
		return el, false, false
	}
	left := false
	kept = rawjson.AppendEdited(nil, el, func(name string, v []byte) ([]byte, []byte, bool) {
		if string(v) == "null" { // as if it were not there
			return nil, v, true
		}
		if w.needs(name) {
			w.remove(name)
			changed = true
			return nil, v, false
		}
		left = true
		return nil, v, true
	}, nil)
	return kept, changed, changed && !left
}

// forced returns the type of a removed tool that the tool choice of the request forces. left is whether tools are left.
func (w *withholder) forced(body []byte, left bool) string {
	choice := get(body, "tool_choice")
	typ, mode := text(choice, "type"), text(choice, "mode")
	if forced := w.names[text(choice, "name")]; forced != "" {
		return forced
	}
	if w.seen[typ] {
		return typ
	}
	switch {
	case (rawjson.Text(choice) == "required" || typ == "any") && !left,
		mode == "required" && len(get(choice, "tools")) > 0 && !w.leaves(get(choice, "tools")),
		text(get(get(body, "toolConfig", "tool_config"), "functionCallingConfig", "function_calling_config"), "mode") == "ANY" && !declaresFunctions(body):
		return w.removed[0]
	}
	return ""
}

// leaves reports whether an array has a tool that is not removed.
func (w *withholder) leaves(tools []byte) bool {
	for el := range rawjson.Elements(tools) {
		if !w.needs(text(el, "type")) {
			return true
		}
	}
	return false
}

// get returns the value of the first member that has one of the names; nil if there is no such member.
func get(v []byte, names ...string) []byte {
	for _, name := range names {
		if value, ok := rawjson.Get(v, name); ok {
			return value
		}
	}
	return nil
}

func text(v []byte, name string) string { return rawjson.Text(get(v, name)) }

// declaresFunctions reports whether a request of Gemini has functions of the client.
func declaresFunctions(body []byte) bool {
	for el := range rawjson.Elements(get(body, "tools")) {
		if get(el, "functionDeclarations", "function_declarations") != nil {
			return true
		}
	}
	return false
}
