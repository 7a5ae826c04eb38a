package messages

import (
	"bytes"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// readTools parses the tools: those that the client executes become a [lathe.ToolSpec], others become hosted tools.
func (r *reader) readTools(o wire.Object) {
	seen := map[string]bool{}
	for el := range o.Elements("tools") {
		name := r.readTool("", el)
		if name != "" && seen[name] {
			r.Fail("name", "Two tools have this name.")
		}
		seen[name] = true
	}
}

// readTool parses one tool and returns the client's name for it.
func (r *reader) readTool(at string, v []byte) string {
	o := r.Object(at, v, toolNames)
	if o.Get("type") != nil {
		if typ := o.String("type"); typ != "custom" {
			r.Hosted = append(r.Hosted, wire.HostedTool{Type: typ, JSON: bytes.Clone(v)})
			return rawjson.Text(o.Get("name"))
		}
	}
	name := o.String("name")
	if name == "" {
		o.Fail("name", "A tool needs a name.")
	}
	t := &lathe.ToolSpec{Name: r.shortName(name), Wire: lathe.WireMessages, Description: o.OptString("description"), Schema: bytes.Clone(o.RawObject("input_schema"))}
	t.Extra = o.Rest()
	r.Tools = append(r.Tools, t)
	return name
}

// changeTools reads the tool in a block that adds or removes a tool within the conversation. A definition applies to the whole request; the
// name of a tool whose last change is a removal is added to Removed.
func (r *reader) changeTools(change string, tool []byte) {
	name := text(tool, "name")
	switch text(tool, "type") {
	case "tool_definition":
		definition := get(tool, "definition")
		name = text(definition, "name")
		short, n := r.toolName(name), len(r.Tools)
		isDeclared := slices.ContainsFunc(r.Tools, func(t *lathe.ToolSpec) bool { return t.Name == short })
		if !isDeclared {
			r.readTool("tool.definition", definition)
		}
		for _, t := range r.Tools[n:] {
			t.Origin = wire.OriginInput
		}
	case "tool_reference":
	default: // a tool of a server of the vendor
		return
	}
	name = r.toolName(name)
	r.Removed = slices.DeleteFunc(r.Removed, func(removed string) bool { return removed == name })
	if change == "tool_removal" {
		r.Removed = append(r.Removed, name)
	}
}

// shortName returns the internal name of a tool, and records both names if they differ.
func (r *reader) shortName(name string) string {
	short := shortName(name)
	if short == name {
		return name
	}
	if r.Names == nil {
		r.Names, r.names = map[string]wire.ToolName{}, map[string]string{}
	}
	r.Names[short] = wire.ToolName{Name: name}
	r.names[name] = short
	return short
}

// toolName returns the internal name of a tool that the request has declared or called.
func (r *reader) toolName(name string) string {
	if short, ok := r.names[name]; ok {
		return short
	}
	return r.shortName(name)
}

func (r *reader) readChoice(v []byte) {
	o := r.Object("tool_choice", v, choiceNames)
	typ := o.String("type")
	switch typ {
	case "auto":
		r.ToolChoice.Mode = lathe.ChoiceAuto
	case "none":
		r.ToolChoice.Mode = lathe.ChoiceNone
	case "any":
		r.ToolChoice.Mode = lathe.ChoiceRequired
	case "tool":
		r.ToolChoice = lathe.ToolChoice{Mode: lathe.ChoiceFunction, Name: o.String("name")} // checkChoice maps the name
	default:
		o.Fail("type", "Must be auto, any, tool or none.")
	}
	if o.Bool("disable_parallel_tool_use") && typ != "none" {
		r.ParallelToolCalls = new(bool)
	}
	o.DropRest()
}

// checkChoice refuses a tool choice that does not match the tools, and marks the hosted tools that it forces.
func (r *reader) checkChoice() {
	switch r.ToolChoice.Mode {
	case lathe.ChoiceRequired:
		if len(r.Tools) == 0 && len(r.Hosted) == 0 {
			r.Fail("tool_choice", "A call is required, but there are no tools.")
		}
		for i := range r.Hosted {
			r.Hosted[i].Forced = len(r.Tools) == 0
		}
	case lathe.ChoiceFunction:
		name := r.ToolChoice.Name
		if short, ok := r.names[name]; ok {
			r.ToolChoice.Name = short
		}
		if slices.ContainsFunc(r.Tools, func(t *lathe.ToolSpec) bool { return t.Name == r.ToolChoice.Name }) {
			return
		}
		for i := range r.Hosted {
			if text(r.Hosted[i].JSON, "name") == name {
				r.Hosted[i].Forced = true
				return
			}
		}
		r.Fail("tool_choice.name", "There is no tool with this name.")
	}
}
