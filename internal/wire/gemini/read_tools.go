package gemini

import (
	"bytes"
	"encoding/json"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

var (
	toolNames = newNameSet(`functionDeclarations googleSearch googleSearchRetrieval codeExecution urlContext googleMaps computerUse fileSearch
		enterpriseWebSearch retrieval mcpServers parallelAiSearch exaAiSearch`)
	declarationNames = newNameSet("name description parameters parametersJsonSchema behavior response responseJsonSchema")
	toolConfigNames  = newNameSet("functionCallingConfig retrievalConfig includeServerSideToolInvocations")
	choiceNames      = newNameSet("mode allowedFunctionNames streamFunctionCallArguments")
)

// readTools reads the tools: declarations of functions, and tools that Google's servers execute.
func (r *reader) readTools(body wire.Object) {
	seen := map[string]bool{}
	for el := range body.Elements("tools") {
		o := r.object("", el, toolNames)
		for name, v := range o.Unread() {
			if name != "functionDeclarations" {
				r.Hosted = append(r.Hosted, wire.HostedTool{Type: name, JSON: json.RawMessage(wire.ObjectOf(name, v))})
				continue
			}
			for el := range o.Elements(name) {
				t := r.declaration(el)
				if seen[t.Name] {
					r.Fail("name", "Two functions have this name.")
				}
				seen[t.Name] = true
				r.Tools = append(r.Tools, t)
			}
		}
	}
}

func (r *reader) declaration(v []byte) *lathe.ToolSpec {
	o := r.object("", v, declarationNames)
	t := &lathe.ToolSpec{Wire: lathe.WireGemini, Name: o.OptString("name"), Description: o.OptString("description")}
	if schema := o.OptObject("parameters"); schema != nil {
		t.Schema = toJSONSchema(schema)
	}
	if schema := o.OptObject("parametersJsonSchema"); schema != nil {
		if t.Schema != nil {
			o.Fail("parametersJsonSchema", "Send one of parameters and parametersJsonSchema.")
		}
		t.Schema = bytes.Clone(schema)
	}
	if t.Name == "" {
		o.Fail("name", "A function needs a name.")
	}
	t.Name = r.innerName(t.Name)
	t.Extra = o.Rest()
	return t
}

// readToolConfig reads toolConfig. [reader.choose] then sets the tool choice.
func (r *reader) readToolConfig(v []byte) {
	o := r.object("toolConfig", v, toolConfigNames)
	if o.Get("functionCallingConfig") != nil {
		r.readChoice(choiceNames.in(o, "functionCallingConfig"))
	}
	r.restChoice = o.Rest()
}

func (r *reader) readChoice(o wire.Object) {
	switch o.OptString("mode") {
	case "AUTO":
		r.ToolChoice.Mode = lathe.ChoiceAuto
	case "VALIDATED": // Lathe validates all arguments
		r.ToolChoice.Mode = lathe.ChoiceAuto
		o.Drop("mode")
	case "ANY":
		r.ToolChoice.Mode, r.forced = lathe.ChoiceRequired, true
	case "NONE":
		r.ToolChoice.Mode = lathe.ChoiceNone
	case "", "MODE_UNSPECIFIED":
	default:
		o.Fail("mode", "Must be AUTO, ANY, NONE or VALIDATED.")
	}
	r.allowed = o.Strings("allowedFunctionNames")
	o.DropRest() // streamFunctionCallArguments is ignored: every client can read calls with complete arguments
}

// choose applies the allowed functions to the tool choice and the tools. If a call is required and one function is allowed, the tool choice
// is that function. If several are allowed, choose marks all others as disallowed, so that calls of them are not executed.
func (r *reader) choose() {
	if r.forced && len(r.Tools) == 0 {
		for i := range r.Hosted {
			r.Hosted[i].Forced = true
		}
	}
	if len(r.allowed) == 0 || r.ToolChoice.Mode == lathe.ChoiceNone {
		return
	}
	const at = "toolConfig.functionCallingConfig.allowedFunctionNames"
	if r.forced && len(r.allowed) == 1 {
		r.ToolChoice = lathe.ToolChoice{Mode: lathe.ChoiceFunction, Name: r.innerName(r.allowed[0])}
		return
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
			r.Fail(wire.Element(at, i), "There is no function with this name.")
		}
	}
}

// innerName returns the internal name of a function, and records the client's name if it differs.
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

// innerName returns name if it has at most 64 letters, digits, _ and -. Otherwise it returns a name of such characters that ends with a
// hash of name.
func innerName(name string) string {
	if len(name) <= wire.MaxName && wire.PlainName(name) {
		return name
	}
	const hash = 8
	return wire.Masked(name[:min(len(name), wire.MaxName-hash-1)]) + "_" + wire.Hash(name)[:hash]
}
