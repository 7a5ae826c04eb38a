package vendor

import (
	"regexp"
	"slices"
	"sync"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// unrestricted are types of tools that the client executes, or that only search the definitions in the request: they require no permission.
var unrestricted = foldedSet("", "function", "custom", "namespace", "function_declarations",
	"bash", "text_editor", "computer", "computer_use", "memory", "local_shell", "apply_patch",
	"tool_search", "tool_search_tool_regex", "tool_search_tool_bm25")

// toolMembers maps members of a request that make the vendor execute a tool to the name of the tool.
var toolMembers = map[string]string{"web_search_options": "web_search", "search_parameters": "web_search", "enable_search": "web_search", "mcp_servers": "mcp"}

// version matches the version at the end of the type of a tool.
var version = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(_preview)?(_\d{8}|_\d{4}_\d\d_\d\d)?$`) })

// ToolName returns the name of a tool by its type: the type without its version, for example web_search for web_search_20250305.
func ToolName(typ string) string {
	switch name := typ[:version().FindStringIndex(typ)[0]]; name {
	case "mcp_toolset", "mcp_toolset_reference", "mcp_tool_reference":
		return "mcp"
	default:
		return name
	}
}

// AllowsTool reports whether a list contains the type of a tool or its name. Underscores are ignored, because the protocols write names
// with and without them.
func AllowsTool(list []string, typ string) bool {
	return slices.ContainsFunc(list, func(s string) bool {
		return s == typ || fold(s) == fold(ToolName(typ))
	})
}

// IsToolMember reports whether a member of a request makes the vendor execute a tool.
func IsToolMember(name string) bool { return toolMembers[name] != "" }

// Withheld is a request without the vendor tools that its client may not use.
type Withheld struct {
	Body  []byte
	Tools []string // types of the removed tools, and names of the removed members, without duplicates
	// Forced is the type of a removed tool that the tool choice of the request requires, or "".
	Forced string
}

// Withhold removes the vendor tools that are not in the list, wherever the request declares them. The other bytes are unchanged. body must
// be valid JSON; if it is not an object, it is returned unchanged.
func Withhold(body []byte, list []string) Withheld {
	w := withholder{list: list, seen: map[string]bool{}, names: map[string]string{}, inTopTools: true, toolsLeft: true}
	out := Withheld{Body: body}
	top := body[rawjson.SkipSpace(body, 0):]
	if rawjson.Kind(top) != '{' {
		return out
	}
	w.editTools(get(top, "tools")) // collects the names of removed tools, which blocks before and after the tools refer to
	edited := rawjson.AppendEdited(nil, top, func(name string, v []byte) (key, to []byte, keep bool) {
		w.inTopTools = name == "tools" && v[0] == '[' // for needs, during the calls below
		switch {
		case toolMembers[name] != "" && string(v) != "null" && !AllowsTool(list, toolMembers[name]):
			w.remove(name)
			return nil, v, false
		case w.inTopTools:
			kept, changed := w.editTools(v)
			w.toolsLeft = kept[rawjson.SkipSpace(kept, 1)] != ']'
			isEmptied := changed && !w.toolsLeft
			return nil, kept, !isEmptied
		case data[fold(name)] && v[0] == '{':
			return nil, v, true
		}
		kept, _ := w.editValue(v)
		return nil, kept, true
	}, nil)
	if len(w.removed) == 0 {
		return out
	}
	w.inTopTools = true // for the tools in the tool choice, which are those of the top-level member tools
	out.Body, out.Tools, out.Forced = edited, w.removed, w.forced(top)
	if !w.toolsLeft { // vendors refuse a tool choice in a request without tools
		for _, name := range []string{"tool_choice", "parallel_tool_calls", "toolConfig", "tool_config"} {
			out.Body = rawjson.Without(out.Body, name)
		}
	}
	return out
}

// A withholder removes vendor tools from one request.
type withholder struct {
	list    []string
	removed []string
	seen    map[string]bool   // the types in removed
	names   map[string]string // name of a removed tool → type of the tool
	// inTopTools: the current value is the top-level member tools, or a part of it. Withhold sets it for each top-level member.
	inTopTools bool
	toolsLeft  bool // the top-level member tools is absent, or has tools that are not removed
}

func (w *withholder) remove(typ string) {
	if !w.seen[typ] {
		w.seen[typ] = true
		w.removed = append(w.removed, typ)
	}
}

// needs reports whether a tool type requires a permission that the list does not contain. Tools of type mcp in the top-level member tools
// require none: they name MCP servers in the configuration of the gateway, which handles them itself.
func (w *withholder) needs(typ string) bool {
	return (typ != "mcp" || !w.inTopTools) && !unrestricted[fold(ToolName(typ))] && !AllowsTool(w.list, typ)
}

// refuse returns true if an object declares a tool that must be removed, and records the type of the tool.
func (w *withholder) refuse(tool []byte) bool {
	if rawjson.Kind(tool) != '{' {
		return false
	}
	typ := text(tool, "type")
	switch typ {
	case "tool_definition": // the definition of a tool that the client adds
		return w.refuse(get(tool, "definition"))
	case "tool_reference": // refers to a tool that the request declares
		return w.names[text(tool, "name")] != ""
	case "shell":
		if text(get(tool, "environment"), "type") == "local" { // the client executes the commands
			return false
		}
	}
	if !w.needs(typ) {
		return false
	}
	w.remove(typ)
	if name := text(tool, "name"); name != "" {
		w.names[name] = typ
	}
	return true
}

// editValue removes from v, at any depth, the declarations of vendor tools that the list does not allow, and reports whether it removed any.
func (w *withholder) editValue(v []byte) (out []byte, changed bool) {
	kind := rawjson.Kind(v)
	if kind == '[' {
		return filter(v, w.editBlock)
	}
	if kind != '{' {
		return v, false
	}
	out = rawjson.AppendEdited(nil, v, func(name string, v []byte) (key, to []byte, keep bool) {
		if data[fold(name)] && v[0] == '{' {
			return nil, v, true
		}
		remove := w.editValue
		if name == "tools" && v[0] == '[' {
			remove = w.editTools
		}
		value, edited := remove(v)
		changed = changed || edited
		return nil, value, true
	}, nil)
	if !changed {
		return v, false
	}
	return out, true
}

// filter replaces each element of an array by what edit returns, and removes those for which that is nil.
func filter(v []byte, edit func(el []byte) (kept []byte, changed bool)) (out []byte, changed bool) {
	if rawjson.Kind(v) != '[' {
		return v, false
	}
	out = []byte{'['}
	for el := range rawjson.Elements(v) {
		kept, edited := edit(el)
		changed = changed || edited
		if kept == nil {
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

// editTools removes the tools that are not allowed from a list of tools.
func (w *withholder) editTools(v []byte) (out []byte, changed bool) { return filter(v, w.editTool) }

// editBlock returns an element of another array without the vendor tools in it; nil for a tool_addition or tool_removal of such a tool.
func (w *withholder) editBlock(el []byte) (out []byte, changed bool) {
	out, changed = w.editValue(el)
	if w.refuse(get(el, "tool")) {
		return nil, true
	}
	return out, changed
}

// editTool returns an element of a list of tools, or nil if it is not allowed. For Gemini, whose elements have several tools as members, out is
// the element without the members that are not allowed.
func (w *withholder) editTool(el []byte) (out []byte, changed bool) {
	if rawjson.Kind(el) != '{' {
		return el, false
	}
	if text(el, "type") != "" {
		if w.refuse(el) {
			return nil, true
		}
		return w.editValue(el) // the element is a namespace, which can contain tools
	}
	if text(el, "name") != "" { // a tool that the client executes
		return el, false
	}
	left := false // at least one tool is not removed
	out = rawjson.AppendEdited(nil, el, func(name string, v []byte) (key, to []byte, keep bool) {
		if string(v) == "null" { // null is equivalent to an absent member
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
	if changed && !left {
		return nil, true
	}
	return out, changed
}

// forced returns the type of a removed tool that the tool choice of the request requires, or "".
func (w *withholder) forced(body []byte) string {
	choice := get(body, "tool_choice")
	typ := text(choice, "type")
	if forced := w.names[text(choice, "name")]; forced != "" {
		return forced
	}
	if w.seen[typ] {
		return typ
	}
	listed := get(choice, "tools")
	gemini := get(get(body, "toolConfig", "tool_config"), "functionCallingConfig", "function_calling_config")
	// The choice requires one of several tools: of all, of those that it lists, or of the functions. If none of them
	// is left, it requires a removed tool.
	isAny := rawjson.Text(choice) == "required" || typ == "any"
	switch {
	case isAny && !w.toolsLeft,
		text(choice, "mode") == "required" && len(listed) > 0 && !w.leaves(listed),
		text(gemini, "mode") == "ANY" && !declaresFunctions(body):
		return w.removed[0]
	}
	return ""
}

// leaves reports whether an array has at least one tool that is not removed.
func (w *withholder) leaves(tools []byte) bool {
	for el := range rawjson.Elements(tools) {
		if !w.needs(text(el, "type")) {
			return true
		}
	}
	return false
}

// get returns the value of the first member that has one of the names, or nil.
func get(v []byte, names ...string) []byte {
	for _, name := range names {
		if value, ok := rawjson.Get(v, name); ok {
			return value
		}
	}
	return nil
}

func text(v []byte, name string) string { return rawjson.Text(get(v, name)) }

// declaresFunctions reports whether a Gemini request declares functions of the client.
func declaresFunctions(body []byte) bool {
	for el := range rawjson.Elements(get(body, "tools")) {
		if get(el, "functionDeclarations", "function_declarations") != nil {
			return true
		}
	}
	return false
}
