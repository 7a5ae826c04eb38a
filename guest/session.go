package guest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wasmrt"
	"github.com/lathe-run/lathe/tool"
)

// A session is a conversation that a guest builds: messages, functions, parameters.
type session struct {
	id        string
	messages  []lathe.Message
	functions []*function // those that can be called, in the order in which they were registered
	params    params
	mcp       mcpState
	size      int  // bytes, as they count
	offered   int  // functions that were registered, the unusable ones too
	sending   bool // a send is under way
}

// perItem is what a message, function or parameter counts beyond its text.
const perItem = 64

// origin is the Origin of the functions of guests.
const origin = "guest"

// write appends a message. Roles other than those of a person, a system and a model are refused: what
// a tool said follows a call, and the host writes it.
func (s *session) write(role, content string) int32 {
	switch r := lathe.Role(role); r {
	case lathe.RoleSystem, lathe.RoleDeveloper, lathe.RoleUser, lathe.RoleAssistant:
		s.messages = append(s.messages, lathe.Message{Role: r, Parts: []lathe.Part{lathe.Text{Text: content}}})
		return 0
	default: // a tool's, or none at all
		return -einval
	}
}

// sizeOf returns what messages count.
func sizeOf(msgs []lathe.Message) int {
	n := 0
	for i := range msgs {
		n += perItem
		for _, p := range msgs[i].Parts {
			switch p := p.(type) {
			case lathe.Text:
				n += len(p.Text)
			case lathe.Reasoning:
				n += len(p.Text)
			case lathe.Refusal:
				n += len(p.Text)
			case lathe.Blob:
				n += len(p.URL) + len(p.Data) + len(p.Raw)
			case lathe.ToolCall:
				n += perItem + len(p.Arguments)
			case lathe.Opaque:
				n += len(p.JSON)
			case lathe.ToolResult:
				n += perItem + len(p.Content)
				for _, b := range p.Blobs {
					n += len(b.URL) + len(b.Data)
				}
			}
		}
	}
	return n
}

// register makes a function of its JSON. What cannot be read, and what is registered already, is
// passed over: it is neither sent nor called. The text says why.
func (s *session) register(p *program, offset int32, text []byte) (skipped string) {
	spec, why := readFunction(text)
	if why != "" {
		return why
	}
	for _, f := range s.functions {
		if f.spec.Name == spec.Name {
			return "a function of that name is registered already"
		}
	}
	f := &function{program: p, session: s, offset: offset, spec: *spec}
	if _, err := tool.NewSet(f); err != nil {
		return fmt.Sprintf("its name %.80q or its parameters are not usable", spec.Name)
	}
	s.functions = append(s.functions, f)
	return ""
}

// uncallable says why the function that was registered last cannot be called as the guest is now, "" where it can. It is
// registered all the same: the guest may still fill its table.
func (s *session) uncallable(p *program) string {
	f := s.functions[len(s.functions)-1]
	fn, err := p.find(f)
	var e *wasmrt.Error
	switch {
	case errors.As(err, &e):
		return f.spec.Name + " cannot be called: " + trapCause(e)
	case err == nil && fn == nil:
		return f.spec.Name + " cannot be called: no function is exported under its name"
	}
	return ""
}

// readFunction reads a definition: OpenAI's {"type":"function","function":{…}}, or the bare object
// with name and parameters.
func readFunction(text []byte) (spec *lathe.ToolSpec, why string) {
	switch {
	case rawjson.Check(text, rawjson.Limits{}) != nil:
		return nil, "it is not JSON"
	case !rawjson.IsObject(text, rawjson.Limits{}):
		return nil, "it is no object"
	}
	def := text
	if inner, ok := rawjson.Get(text, "function"); ok {
		if def = inner; def[0] != '{' {
			return nil, "its function is no object"
		}
	}
	spec = &lathe.ToolSpec{Allowlist: []string{"*"}, Origin: origin, Concurrency: 1}
	name, _ := rawjson.Get(def, "name")
	if spec.Name = strings.TrimSpace(rawjson.Text(name)); spec.Name == "" {
		return nil, "it has no name"
	}
	description, _ := rawjson.Get(def, "description")
	spec.Description = rawjson.Text(description)
	if schema, _ := rawjson.Get(def, "parameters"); string(schema) != "null" {
		spec.Schema = bytes.Clone(schema)
	}
	return spec, ""
}

// stringList returns the strings of a JSON array; false where there is anything else in it.
func stringList(raw []byte) (list []string, ok bool) {
	if len(raw) == 0 || raw[0] != '[' {
		return nil, false
	}
	list = []string{} // empty is not unset
	for el := range rawjson.Elements(raw) {
		if el[0] != '"' {
			return nil, false
		}
		list = append(list, rawjson.Text(el))
	}
	return list, true
}
