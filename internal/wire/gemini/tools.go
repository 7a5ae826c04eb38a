package gemini

import (
	"encoding/json"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

var (
	toolNames = newNameSet("functionDeclarations", "googleSearch", "googleSearchRetrieval", "codeExecution", "urlContext", "googleMaps",
		"computerUse", "fileSearch", "enterpriseWebSearch", "retrieval", "mcpServers", "parallelAiSearch", "exaAiSearch")
	declarationNames = newNameSet("name", "description", "parameters", "parametersJsonSchema", "behavior", "response", "responseJsonSchema")
	toolConfigNames  = newNameSet("functionCallingConfig", "retrievalConfig", "includeServerSideToolInvocations")
	choiceNames      = newNameSet("mode", "allowedFunctionNames", "streamFunctionCallArguments")
)

// parseTools reads the tools: declarations of functions, and tools that the model's server executes.
func (r *reader) parseTools(v []byte) *wire.APIError {
	if wire.Kind(v) != '[' {
		return wire.BadRequest("tools", "Must be an array.")
	}
	seen := map[string]bool{}
	i := 0
	for el := range rawjson.Elements(v) {
		at := wire.Element("tools", i)
		i++
		members, err := toolNames.read(nil, nil, el, at)
		if err != nil {
			return err
		}
		for j := range members {
			m := &members[j]
			if m.name == "functionDeclarations" {
				err = r.parseDeclarations(m.value, wire.Join(at, m.name), seen)
			} else {
				r.Hosted = append(r.Hosted, wire.HostedTool{Type: m.name, JSON: json.RawMessage(wire.JSON("{").Val(m.name, m.value).Lit("}"))})
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *reader) parseDeclarations(v []byte, at string, seen map[string]bool) *wire.APIError {
	if wire.Kind(v) != '[' {
		return wire.BadRequest(at, "Must be an array.")
	}
	i := 0
	for el := range rawjson.Elements(v) {
		at := wire.Element(at, i)
		i++
		t, err := r.parseDeclaration(el, at)
		if err != nil {
			return err
		}
		if seen[t.Name] {
			return wire.BadRequest(wire.Join(at, "name"), "Two functions have this name.")
		}
		seen[t.Name] = true
		r.Tools = append(r.Tools, t)
	}
	return nil
}

func (r *reader) parseDeclaration(v []byte, at string) (*lathe.ToolSpec, *wire.APIError) {
	members, err := declarationNames.read(nil, nil, v, at)
	if err != nil {
		return nil, err
	}
	t := &lathe.ToolSpec{Wire: lathe.WireGemini}
	for i := range members {
		m := &members[i]
		at := wire.Join(at, m.name)
		switch m.name {
		case "name":
			t.Name, err = wire.ParseString(m.value, at)
		case "description":
			t.Description, err = wire.ParseString(m.value, at)
		case "parameters", "parametersJsonSchema":
			if wire.Kind(m.value) != '{' {
				return nil, wire.BadRequest(at, "Must be an object.")
			}
			if t.Schema != nil {
				return nil, wire.BadRequest(at, "Send one of parameters and parametersJsonSchema.")
			}
			if m.name == "parameters" {
				t.Schema = toJSONSchema(m.value)
			} else {
				t.Schema = slices.Clone(m.value)
			}
		default:
			t.Extra = append(t.Extra, m.kept())
		}
		if err != nil {
			return nil, err
		}
	}
	if t.Name == "" {
		return nil, wire.BadRequest(wire.Join(at, "name"), "A function needs a name.")
	}
	t.Name = r.innerName(t.Name)
	return t, nil
}

// parseToolConfig reads toolConfig. The choice that it makes is set by [reader.choose].
func (r *reader) parseToolConfig(v []byte) *wire.APIError {
	const at = "toolConfig"
	members, err := toolConfigNames.read(nil, nil, v, at)
	if err != nil {
		return err
	}
	for i := range members {
		m := &members[i]
		if m.name != "functionCallingConfig" {
			r.rest[restChoice] = append(r.rest[restChoice], m.kept())
		} else if err := r.parseChoice(m.value, wire.Join(at, m.name)); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) parseChoice(v []byte, at string) *wire.APIError {
	members, err := choiceNames.read(nil, nil, v, at)
	if err != nil {
		return err
	}
	for i := range members {
		m := &members[i]
		at := wire.Join(at, m.name)
		switch m.name {
		case "mode":
			var mode string
			if mode, err = wire.ParseString(m.value, at); err != nil {
				return err
			}
			switch mode {
			case "AUTO":
				r.ToolChoice.Mode = lathe.ChoiceAuto
			case "VALIDATED": // Lathe validates all arguments
				r.ToolChoice.Mode = lathe.ChoiceAuto
				r.Drop(at)
			case "ANY":
				r.ToolChoice.Mode, r.forced = lathe.ChoiceRequired, true
			case "NONE":
				r.ToolChoice.Mode = lathe.ChoiceNone
			case "MODE_UNSPECIFIED":
			default:
				return wire.BadRequest(at, "Must be AUTO, ANY, NONE or VALIDATED.")
			}
		case "allowedFunctionNames":
			r.allowed, err = parseStrings(m.value, at)
		default: // arguments are whole in each answer, which every client can read
			r.Drop(at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// choose applies the tool choice to the tools. If one function is allowed and a call is required, the tool choice is that
// function. If several are allowed, choose bars all other functions, since calls to them must not be executed.
func (r *reader) choose() *wire.APIError {
	if r.forced && len(r.Tools) == 0 {
		for i := range r.Hosted {
			r.Hosted[i].Forced = true
		}
	}
	if len(r.allowed) == 0 || r.ToolChoice.Mode == lathe.ChoiceNone {
		return nil
	}
	const at = "toolConfig.functionCallingConfig.allowedFunctionNames"
	if r.forced && len(r.allowed) == 1 {
		r.ToolChoice = lathe.ToolChoice{Mode: lathe.ChoiceFunction, Name: r.innerName(r.allowed[0])}
		return nil
	}
	allowed := map[string]bool{}
	for _, name := range r.allowed {
		allowed[r.innerName(name)] = true
	}
	for _, t := range r.Tools {
		t.Disallowed = !allowed[t.Name]
		delete(allowed, t.Name)
	}
	for i, name := range r.allowed {
		if allowed[r.innerName(name)] {
			return wire.BadRequest(wire.Element(at, i), "There is no function with this name.")
		}
	}
	return nil
}

// maxName is the maximum length of a tool's name in the internal form.
const maxName = 64

// innerName returns the name of a function in the internal form, and records the client's name if it is different.
func (r *reader) innerName(name string) string {
	inner := innerName(name)
	if inner != name {
		if r.Names == nil {
			r.Names = map[string]wire.ToolName{}
		}
		r.Names[inner] = wire.ToolName{Name: name}
	}
	return inner
}

// innerName returns name if it has at most 64 letters, digits, _ and -; else a name of such characters with a hash of name.
func innerName(name string) string {
	if len(name) <= maxName && wire.PlainName(name) {
		return name
	}
	const hash = 8
	return wire.Masked(name[:min(len(name), maxName-hash-1)]) + "_" + wire.Hash(name)[:hash]
}
