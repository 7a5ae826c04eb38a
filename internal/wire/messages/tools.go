package messages

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// readTools parses the tools: those that the client executes as [lathe.ToolSpec], the others as hosted tools.
func (r *reader) readTools(v []byte) *wire.APIError {
	if err := wire.NeedArray(v, "tools"); err != nil {
		return err
	}
	seen := map[string]bool{}
	i := 0
	for el := range rawjson.Elements(v) {
		at := "tools[" + strconv.Itoa(i) + "]"
		i++
		name, err := r.readTool(el, at)
		if err != nil {
			return err
		}
		if name != "" && seen[name] {
			return wire.BadRequest(at+".name", "Two tools have this name.")
		}
		seen[name] = true
	}
	return nil
}

// readTool reads one tool and returns the client's name for it.
func (r *reader) readTool(v []byte, at string) (string, *wire.APIError) {
	if err := wire.CheckObject(v, toolNames, at); err != nil {
		return "", err
	}
	if typ := get(v, "type"); typ != nil {
		word, err := wire.ParseString(typ, at+".type")
		if err != nil {
			return "", err
		}
		if word != "custom" {
			r.Hosted = append(r.Hosted, wire.HostedTool{Type: word, JSON: bytes.Clone(v)})
			return text(v, "name"), nil
		}
	}
	name, err := wire.ParseString(get(v, "name"), at+".name")
	if err != nil {
		return "", err
	}
	if name == "" {
		return "", wire.BadRequest(at+".name", "A tool needs a name.")
	}
	t := &lathe.ToolSpec{Name: r.shortName(name), Wire: lathe.WireMessages, Extra: members(v, "type", "name", "description", "input_schema")}
	if d := get(v, "description"); d != nil {
		if t.Description, err = wire.ParseString(d, at+".description"); err != nil {
			return "", err
		}
	}
	schema := get(v, "input_schema")
	if err := wire.NeedObject(schema, at+".input_schema"); err != nil {
		return "", err
	}
	t.Schema = bytes.Clone(schema)
	r.Tools = append(r.Tools, t)
	return name, nil
}

// changeTools reads the tool of a block that adds or removes one within the conversation. The definitions are those of the whole request;
// a tool that is removed last is in Removed.
func (r *reader) changeTools(change string, tool []byte) *wire.APIError {
	name := text(tool, "name")
	switch text(tool, "type") {
	case "tool_definition":
		definition := get(tool, "definition")
		name = text(definition, "name")
		if short := r.toolName(name); slices.ContainsFunc(r.Tools, func(t *lathe.ToolSpec) bool { return t.Name == short }) {
			break
		}
		n := len(r.Tools)
		if _, err := r.readTool(definition, "definition"); err != nil {
			return err
		}
		for _, t := range r.Tools[n:] {
			t.Origin = wire.OriginInput
		}
	case "tool_reference":
	default: // of a server of the vendor
		return nil
	}
	name = r.toolName(name)
	r.Removed = slices.DeleteFunc(r.Removed, func(removed string) bool { return removed == name })
	if change == "tool_removal" {
		r.Removed = append(r.Removed, name)
	}
	return nil
}

// shortName returns the name of a tool in the internal form, and records it if it differs from the client's name.
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

// toolName returns the name in the internal form of a tool that the request has declared or called.
func (r *reader) toolName(name string) string {
	if short, ok := r.names[name]; ok {
		return short
	}
	return r.shortName(name)
}

func (r *reader) readChoice(v []byte) *wire.APIError {
	const at = "tool_choice"
	if err := wire.CheckObject(v, choiceNames, at); err != nil {
		return err
	}
	typ, err := wire.ParseString(get(v, "type"), at+".type")
	if err != nil {
		return err
	}
	read := []string{"type", "disable_parallel_tool_use"}
	switch typ {
	case "auto":
		r.ToolChoice.Mode = lathe.ChoiceAuto
	case "none":
		r.ToolChoice.Mode = lathe.ChoiceNone
	case "any":
		r.ToolChoice.Mode = lathe.ChoiceRequired
	case "tool":
		name, err := wire.ParseString(get(v, "name"), at+".name")
		if err != nil {
			return err
		}
		r.ToolChoice = lathe.ToolChoice{Mode: lathe.ChoiceFunction, Name: name} // checkChoice maps the name
		read = append(read, "name")
	default:
		return wire.BadRequest(at+".type", "Must be auto, any, tool or none.")
	}
	r.drop(v, at, read...)
	if p := get(v, "disable_parallel_tool_use"); p != nil {
		off, err := wire.ParseBool(p, at+".disable_parallel_tool_use")
		if err != nil {
			return err
		}
		if off && typ != "none" {
			r.ParallelToolCalls = new(bool)
		}
	}
	return nil
}

// checkChoice returns an error for a tool choice that does not match the tools, and marks the hosted tools that it forces.
func (r *reader) checkChoice() *wire.APIError {
	switch r.ToolChoice.Mode {
	case lathe.ChoiceRequired:
		if len(r.Tools) == 0 && len(r.Hosted) == 0 {
			return wire.BadRequest("tool_choice", "A call is required, but there are no tools.")
		}
		for i := range r.Hosted {
			r.Hosted[i].Forced = len(r.Tools) == 0
		}
	case lathe.ChoiceFunction:
		name := r.ToolChoice.Name
		if short, ok := r.names[name]; ok {
			r.ToolChoice.Name = short
		}
		for _, t := range r.Tools {
			if t.Name == r.ToolChoice.Name {
				return nil
			}
		}
		for i := range r.Hosted {
			if text(r.Hosted[i].JSON, "name") == name {
				r.Hosted[i].Forced = true
				return nil
			}
		}
		return wire.BadRequest("tool_choice.name", "There is no tool with this name.")
	}
	return nil
}
