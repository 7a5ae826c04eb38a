package guest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wasmrt"
	"github.com/lathe-run/lathe/tool"
)

// A session is a conversation that a guest writes: messages, functions, parameters.
type session struct {
	id        string
	messages  []lathe.Message
	functions []*function // usable functions, in order of registration
	params    params
	mcp       mcpState
	size      int  // in bytes, as counted by perItem and sizeOf
	offered   int  // number of registrations, including ignored ones
	sending   bool // cchat_send is in progress
}

// perItem is the size, in bytes, that each message, function and parameter counts in addition to its text.
const perItem = 64

// origin is the Origin of the functions of guests.
const origin = "guest"

// write appends a message. It returns -EINVAL for roles other than system, developer, user and assistant: only the host writes results of
// tools.
func (s *session) write(role, content string) int32 {
	switch r := lathe.Role(role); r {
	case lathe.RoleSystem, lathe.RoleDeveloper, lathe.RoleUser, lathe.RoleAssistant:
		s.messages = append(s.messages, lathe.Message{Role: r, Parts: []lathe.Part{lathe.Text{Text: content}}})
		return 0
	default: // the role tool, or an unknown one
		return -einval
	}
}

// sizeOf returns the size of messages in bytes, as it counts towards SessionBytes.
func sizeOf(msgs []lathe.Message) int {
	n := 0
	for _, m := range msgs {
		n += perItem
		for _, p := range m.Parts {
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

// register adds the function that the JSON text defines. A definition that is invalid, or whose name is registered already, is ignored:
// the function is neither sent to the model nor called. skipped is the reason, or "".
func (s *session) register(p *program, offset int32, text []byte) (skipped string) {
	spec, why := readFunction(text)
	if why != "" {
		return why
	}
	if slices.ContainsFunc(s.functions, func(f *function) bool { return f.spec.Name == spec.Name }) {
		return "a function of that name is registered already"
	}
	f := &function{program: p, session: s, offset: offset, spec: *spec}
	if _, err := tool.NewSet(f); err != nil {
		return fmt.Sprintf("its name %.80q or its parameters are not usable", spec.Name)
	}
	s.functions = append(s.functions, f)
	return ""
}

// uncallable returns why the function that was registered last cannot be called in the current state of the guest; "" if it can. Such a
// function stays registered, because the guest may still fill its table.
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

// readFunction parses a definition: OpenAI's {"type":"function","function":{…}}, or the inner object alone. If it is invalid, why is the
// reason.
func readFunction(text []byte) (spec *lathe.ToolSpec, why string) {
	switch {
	case rawjson.Check(text, rawjson.Limits{}) != nil:
		return nil, "it is not JSON"
	case !rawjson.IsObject(text, rawjson.Limits{}):
		return nil, "it is no object"
	}
	def := text
	if inner := rawjson.At(text, "function"); inner != nil {
		if def = inner; def[0] != '{' {
			return nil, "its function is no object"
		}
	}
	spec = &lathe.ToolSpec{Allowlist: []string{"*"}, Origin: origin, Concurrency: 1}
	if spec.Name = strings.TrimSpace(rawjson.TextAt(def, "name")); spec.Name == "" {
		return nil, "it has no name"
	}
	spec.Description = rawjson.TextAt(def, "description")
	if schema := rawjson.At(def, "parameters"); string(schema) != "null" {
		spec.Schema = bytes.Clone(schema)
	}
	return spec, ""
}

// stringList returns the strings of a JSON array; ok is false if raw is no array, or has other elements.
func stringList(raw []byte) (list []string, ok bool) {
	if rawjson.Kind(raw) != '[' {
		return nil, false
	}
	list = []string{} // not nil: an empty list differs from none
	for el := range rawjson.Elements(raw) {
		if el[0] != '"' {
			return nil, false
		}
		list = append(list, rawjson.Text(el))
	}
	return list, true
}
