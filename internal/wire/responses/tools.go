package responses

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	texts "github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/internal/wire"
)

// typeCustom is the type of a custom tool, whose input is text.
const typeCustom = "custom"

// maxHosted limits the hosted tools of a request.
const maxHosted = 128

// inputName is the one argument of a custom tool in the internal form.
const inputName = "input"

// parseTools parses the tools of a request. Those that are neither functions nor custom tools go to Hosted.
func (r *reader) parseTools(v []byte) *wire.APIError {
	r.inner, r.taken = map[wire.ToolName]string{}, map[string]bool{}
	if v == nil {
		return nil
	}
	if err := wire.NeedArray(v, "tools"); err != nil {
		return err
	}
	i := 0
	for el := range rawjson.Elements(v) {
		if err := r.parseTool(el, "tools["+strconv.Itoa(i)+"]", ""); err != nil {
			return err
		}
		i++
	}
	r.Tools = r.tools
	return nil
}

// parseTool reads one tool of a namespace ("": none).
func (r *reader) parseTool(v []byte, at, space string) *wire.APIError {
	if err := wire.CheckObject(v, toolNames, at); err != nil {
		return err
	}
	typ, err := wire.ParseString(get(v, "type"), at+".type")
	if err != nil {
		return err
	}
	var t *lathe.ToolSpec
	switch {
	case typ == "function":
		t, err = r.parseFunction(v, at)
	case typ == typeCustom:
		t, err = parseCustom(v, at)
	case typ == "namespace" && space == "":
		return r.parseNamespace(v, at)
	case space != "":
		return wire.BadRequest(at+".type", "A namespace has tools of the types function and custom only.")
	case len(r.Hosted) == maxHosted:
		return wire.BadRequest(at, "There are more than %d tools that are no functions.", maxHosted)
	default:
		r.Hosted = append(r.Hosted, wire.HostedTool{Type: typ, JSON: bytes.Clone(v)})
		r.labels = append(r.labels, text(v, "server_label"))
		return nil
	}
	if err != nil {
		return err
	}
	if t.Name == "" {
		return wire.BadRequest(at+".name", "A tool needs a name.")
	}
	name := wire.ToolName{Namespace: space, Name: t.Name}
	if _, twice := r.inner[name]; twice && r.loading {
		return nil
	} else if twice {
		return wire.BadRequest(at+".name", "Two tools have this name.")
	}
	if t.Name = joinName(space, t.Name); r.taken[t.Name] {
		if t.Name = hashedName(space, name.Name); r.taken[t.Name] {
			return wire.BadRequest(at+".name", "Two tools have this name.")
		}
	}
	r.taken[t.Name], r.inner[name] = true, t.Name
	name.Custom = typ == typeCustom
	if name.Custom || t.Name != name.Name {
		if r.Names == nil {
			r.Names = map[string]wire.ToolName{}
		}
		r.Names[t.Name] = name
	}
	t.Wire = lathe.WireResponses
	r.tools = append(r.tools, t)
	return nil
}

// parseFunction parses a function, also in the form of chat completions with a nested object `function`.
func (r *reader) parseFunction(v []byte, at string) (*lathe.ToolSpec, *wire.APIError) {
	t := &lathe.ToolSpec{}
	if err := readFunction(t, v, at); err != nil {
		return nil, err
	}
	t.Extra = members(v, "type", "name", "description", "parameters", "function")
	fn := get(v, "function")
	if fn == nil {
		return t, nil
	}
	at += ".function"
	if err := wire.CheckObject(fn, toolNames, at); err != nil {
		return nil, err
	}
	t.Extra = append(t.Extra, members(fn, "name", "description", "parameters")...)
	return t, readFunction(t, fn, at)
}

// readFunction reads the members that ToolSpec has fields for.
func readFunction(t *lathe.ToolSpec, v []byte, at string) *wire.APIError {
	for _, m := range [...]struct {
		name string
		to   *string
	}{{"name", &t.Name}, {"description", &t.Description}} {
		raw := get(v, m.name)
		if raw == nil {
			continue
		}
		var err *wire.APIError
		if *m.to, err = wire.ParseString(raw, at+"."+m.name); err != nil {
			return err
		}
	}
	if raw := get(v, "parameters"); raw != nil {
		if err := wire.NeedObject(raw, at+".parameters"); err != nil {
			return err
		}
		t.Schema = bytes.Clone(raw)
	}
	return nil
}

// parseCustom parses a custom tool as a function with one string argument.
func parseCustom(v []byte, at string) (*lathe.ToolSpec, *wire.APIError) {
	t := &lathe.ToolSpec{}
	if err := readFunction(t, v, at); err != nil {
		return nil, err
	}
	t.Extra = append([]lathe.Member{{Name: "type", Value: []byte(`"custom"`)}}, members(v, "type", "name", "description", "parameters", "function")...)
	about := "The input of the tool, as text."
	if format := get(v, "format"); format != nil {
		if err := wire.NeedObject(format, at+".format"); err != nil {
			return nil, err
		}
		if definition := text(format, "definition"); definition != "" {
			about = "The input of the tool, as text that matches this grammar (" + text(format, "syntax") + "):\n" + definition
		}
	}
	schema := wire.JSON(`{"type":"object","properties":{"input":{"type":"string"`).Str("description", about)
	t.Schema = json.RawMessage(schema.Lit(`}},"required":["input"],"additionalProperties":false}`))
	return t, nil
}

func (r *reader) parseNamespace(v []byte, at string) *wire.APIError {
	space, err := wire.ParseString(get(v, "name"), at+".name")
	if err != nil {
		return err
	}
	if space == "" {
		return wire.BadRequest(at+".name", "A namespace needs a name.")
	}
	list := get(v, "tools")
	if err := wire.NeedArray(list, at+".tools"); err != nil {
		return err
	}
	r.drop(v, at, "type", "name", "tools")
	i := 0
	for el := range rawjson.Elements(list) {
		if err := r.parseTool(el, at+".tools["+strconv.Itoa(i)+"]", space); err != nil {
			return err
		}
		i++
	}
	return nil
}

// nameOf returns the name in Request of a tool that the client names.
func (r *reader) nameOf(space, name string) string {
	if inner, ok := r.inner[wire.ToolName{Namespace: space, Name: name}]; ok {
		return inner
	}
	return joinName(space, name)
}

// joinName returns the name of a tool in a namespace ("": none) in a form that all wires allow.
func joinName(space, name string) string {
	full := name
	if space != "" {
		full = space + "__" + name
	}
	if full != "" && len(full) <= 64 && wire.PlainName(full) {
		return full
	}
	if full == "" {
		return "unknown"
	}
	return hashedName(space, name)
}

// hashedName returns a name that differs for each pair of namespace and name.
func hashedName(space, name string) string {
	full := name
	if space != "" {
		full = space + "__" + name
	}
	return wire.Masked(texts.Cut(full, 52)) + "_" + wire.Hash(space + "\x00" + name)[:10]
}

// isCustom reports whether a tool was declared as a custom tool.
func isCustom(t *lathe.ToolSpec) bool {
	return t.Wire == lathe.WireResponses && string(wire.MemberValue(t.Extra, "type")) == `"custom"`
}

// customArguments returns the arguments of a call of a custom tool in the internal form.
func customArguments(input string) string {
	return string(append(rawjson.AppendQuote([]byte(`{"input":`), input), '}'))
}

// customInput returns the text of a custom tool from arguments in the internal form. It returns arguments unchanged if they do
// not have that form.
func customInput(arguments string) string {
	raw := []byte(arguments)
	if wire.Sendable(raw) {
		if v := get(raw, inputName); wire.Kind(v) == '"' {
			return rawjson.Text(v)
		}
	}
	return arguments
}
