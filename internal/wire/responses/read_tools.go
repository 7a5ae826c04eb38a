package responses

import (
	"bytes"
	"cmp"
	"encoding/json"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	texts "github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/internal/wire"
)

// typeCustom is the type of a custom tool, whose input is text.
const typeCustom = "custom"

// maxHosted bounds the hosted tools of a request.
const maxHosted = 128

// inputName is the name of the only argument of a custom tool in the internal form.
const inputName = "input"

// readTools parses the tools of a request. Tools that are neither functions nor custom tools are added to Hosted.
func (r *reader) readTools(o wire.Object) {
	if o.Get("tools") == nil {
		return
	}
	for el := range o.Elements("tools") {
		r.readTool(el, "")
	}
}

// readTool parses one tool in a namespace ("": none), and adds it to Tools or to Hosted.
func (r *reader) readTool(v []byte, space string) {
	o := r.Object("", v, toolNames)
	typ := o.String("type")
	switch {
	case typ == "function":
		r.addTool(o, readFunction(o), typ, space)
	case typ == typeCustom:
		r.addTool(o, readCustom(o), typ, space)
	case typ == "namespace" && space == "":
		r.readNamespace(o)
	case space != "":
		o.Fail("type", "A namespace has tools of the types function and custom only.")
	case len(r.Hosted) == maxHosted:
		r.Fail("", "There are more than %d tools that are no functions.", maxHosted)
	default:
		hosted := wire.HostedTool{Type: typ, JSON: bytes.Clone(v)}
		if r.inItem {
			hosted.Item = r.At("")
		}
		r.Hosted = append(r.Hosted, hosted)
		r.labels = append(r.labels, rawjson.Text(o.Get("server_label")))
	}
}

// addTool adds the tool t, which was read from o, under an internal name that no other tool has.
func (r *reader) addTool(o wire.Object, t *lathe.ToolSpec, typ, space string) {
	if t.Name == "" {
		o.Fail("name", "A tool needs a name.")
	}
	client := wire.ToolName{Namespace: space, Name: t.Name} // the client's name
	isKnown := r.inner[client] != ""
	if isKnown && r.inItem {
		return // an item may repeat a tool that the request already has
	}
	t.Name = joinName(space, client.Name)
	if r.taken[t.Name] {
		t.Name = hashedName(space, client.Name)
	}
	if isKnown || r.taken[t.Name] {
		o.Fail("name", "Two tools have this name.")
	}
	r.taken[t.Name], r.inner[client] = true, t.Name
	client.Custom = typ == typeCustom
	if client.Custom || t.Name != client.Name {
		if r.Names == nil {
			r.Names = map[string]wire.ToolName{}
		}
		r.Names[t.Name] = client
	}
	t.Wire = lathe.WireResponses
	if r.inItem {
		t.Origin = wire.OriginInput
	}
	r.Tools = append(r.Tools, t)
}

// readFunction parses a function, also in the form of chat completions with a nested object `function`.
func readFunction(o wire.Object) *lathe.ToolSpec {
	t := &lathe.ToolSpec{}
	readDeclaration(t, o)
	nested := o.Get("function") != nil
	if t.Extra = o.Rest(); nested {
		fn := o.Object("function", toolNames)
		readDeclaration(t, fn)
		t.Extra = append(t.Extra, fn.Rest()...)
	}
	return t
}

// readDeclaration reads the members for which ToolSpec has fields.
func readDeclaration(t *lathe.ToolSpec, o wire.Object) {
	t.Name, t.Description = cmp.Or(o.OptString("name"), t.Name), cmp.Or(o.OptString("description"), t.Description)
	if schema := o.OptObject("parameters"); schema != nil {
		t.Schema = bytes.Clone(schema)
	}
}

// readCustom parses a custom tool as a function with one string argument.
func readCustom(o wire.Object) *lathe.ToolSpec {
	t := &lathe.ToolSpec{}
	readDeclaration(t, o)
	o.Skip("function")
	t.Extra = append([]lathe.Member{{Name: "type", Value: []byte(`"custom"`)}}, o.Rest()...)
	about := "The input of the tool, as text."
	if format := o.OptObject("format"); format != nil {
		if definition := text(format, "definition"); definition != "" {
			about = "The input of the tool, as text that matches this grammar (" + text(format, "syntax") + "):\n" + definition
		}
	}
	t.Schema = json.RawMessage(wire.ObjectOf("type", "object", "properties", wire.ObjectOf("input", wire.ObjectOf("type", "string", "description", about)),
		"required", []string{"input"}, "additionalProperties", false))
	return t
}

func (r *reader) readNamespace(o wire.Object) {
	space := o.String("name")
	if space == "" {
		o.Fail("name", "A namespace needs a name.")
	}
	for el := range o.Elements("tools") {
		r.readTool(el, space)
	}
	o.DropRest()
}

// nameOf returns the internal name of the tool with the client's namespace and name.
func (r *reader) nameOf(space, name string) string {
	if inner, ok := r.inner[wire.ToolName{Namespace: space, Name: name}]; ok {
		return inner
	}
	return joinName(space, name)
}

// joinName returns the name of a tool in a namespace ("": none) in a form that all wires accept.
func joinName(space, name string) string {
	full := fullName(space, name)
	switch {
	case full == "":
		return "unknown"
	case len(full) <= wire.MaxName && wire.PlainName(full):
		return full
	}
	return hashedName(space, name)
}

func fullName(space, name string) string {
	if space == "" {
		return name
	}
	return space + "__" + name
}

// hashedName returns a valid name that differs for each pair of namespace and name.
func hashedName(space, name string) string {
	return wire.Masked(texts.Cut(fullName(space, name), 52)) + "_" + wire.Hash(space + "\x00" + name)[:10]
}

// isCustom reports whether a tool was declared as a custom tool.
func isCustom(t *lathe.ToolSpec) bool {
	return t.Wire == lathe.WireResponses && string(wire.MemberValue(t.Extra, "type")) == `"custom"`
}

// customArguments returns the arguments of a call of a custom tool in the internal form: an object with the member input.
func customArguments(input string) string {
	return string(append(rawjson.AppendQuote([]byte(`{"input":`), input), '}'))
}

// customInput returns the input of a custom tool from arguments in the internal form. Arguments in another form are returned unchanged.
func customInput(arguments string) string {
	raw := []byte(arguments)
	if wire.Sendable(raw) {
		if v := get(raw, inputName); rawjson.Kind(v) == '"' {
			return rawjson.Text(v)
		}
	}
	return arguments
}
