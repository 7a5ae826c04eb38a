package dialect

import (
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// A form describes how a dialect writes prompts. The text that it writes contains no marks that come from outside.
type form struct {
	// call appends one call. args is never blank.
	call func(dst []byte, c lathe.ToolCall, args string) []byte
	// typed appends a call of a tool whose schema is known; nil: call is used.
	typed func(dst []byte, c lathe.ToolCall, args string, schema []byte) []byte
	// layout returns the callLayout of call, for constraints.
	layout func() *callLayout
	// result appends one tool result; nil: in the form of the dialect tags.
	result func(dst []byte, r lathe.ToolResult) []byte
	// tools appends the description of the tools; nil: the scaffold and a line with an example of call.
	tools func(dst []byte, tools []*lathe.ToolSpec) []byte
	// native: the servers of these models write calls and results of the history themselves, so they stay parts of their messages.
	native bool
	// clean removes the dialect's marks from text of users and tools; nil: the text is unchanged.
	clean func(text string) string
	// explained: system text is not cleaned, because its author may describe the syntax of calls.
	explained bool
	// arguments removes marks from the arguments of a call of the history, where that changes no value; nil: they are unchanged.
	arguments func(args string) string
}

// AppendTools appends text for a model that describes the tools and how to call them. Equal tools in the same order give equal bytes.
func (d *Dialect) AppendTools(dst []byte, tools []*lathe.ToolSpec) []byte {
	if d.form.tools != nil {
		return d.form.tools(dst, tools)
	}
	scaffold := string(appendScaffold(nil, tools))
	if d.form.clean != nil {
		scaffold = d.form.clean(scaffold)
	}
	dst = append(dst, scaffold...)
	dst = append(dst, "To call a tool, write: "...)
	return d.form.call(dst, lathe.ToolCall{ID: "call00001", Name: "NAME"}, `{"argument":"value"}`)
}

// AppendCall appends a call as the model writes it. In a dialect whose values have no types, the parser may read a value as one of another type;
// [Dialect.Rewrite], which has the schemas of the tools, avoids that.
func (d *Dialect) AppendCall(dst []byte, c lathe.ToolCall) []byte {
	return d.form.call(dst, c, argumentsOf(c))
}

// argumentsOf returns the arguments of c; "{}" if they are blank.
func argumentsOf(c lathe.ToolCall) string {
	if strings.TrimSpace(c.Arguments) == "" {
		return "{}"
	}
	return c.Arguments
}

// appendCallOf appends a call of one of tools so that a parser with these tools reads the same arguments.
func (d *Dialect) appendCallOf(dst []byte, c lathe.ToolCall, tools []*lathe.ToolSpec) []byte {
	if d.form.typed == nil {
		return d.AppendCall(dst, c)
	}
	return d.form.typed(dst, c, argumentsOf(c), schemaOf(tools, c.Name))
}

// AppendResult appends the result of a call in the form that the model expects.
func (d *Dialect) AppendResult(dst []byte, r lathe.ToolResult) []byte {
	if d.form.result != nil {
		return d.form.result(dst, r)
	}
	return appendTagResult(dst, r)
}

// appendScaffold appends the list of tools, each with name, description and schema on lines of their own.
func appendScaffold(dst []byte, tools []*lathe.ToolSpec) []byte {
	dst = append(dst, "TOOLS:\n"...)
	for _, t := range tools {
		dst = append(dst, "- name: "...)
		dst = append(dst, t.Name...)
		dst = append(dst, "\n  description: "...)
		dst = append(dst, strings.Join(strings.Fields(t.Description), " ")...)
		dst = append(dst, "\n  schema: "...)
		if len(t.Schema) == 0 {
			dst = append(dst, `{"type":"object","properties":{}}`...)
		} else {
			dst = rawjson.AppendCompact(dst, t.Schema)
		}
		dst = append(dst, '\n')
	}
	return append(dst, "END TOOLS\n"...)
}

// Rewrite returns req in the form for a server without tool support: the tools are text at the end of the system text, calls are text of
// the assistant, and results are text of the user. The results of one turn are one message, with the user's own text if that follows. An
// unreadable call is omitted, because its message already contains its text. For harmony, whose servers write calls and results
// themselves, calls and results are unchanged.
//
// req is not changed. Messages without changes share their parts with req.
func (d *Dialect) Rewrite(req *lathe.Request) *lathe.Request {
	out := *req
	out.Tools, out.ToolChoice, out.ParallelToolCalls = nil, lathe.ToolChoice{}, nil
	out.Messages = make([]lathe.Message, 0, len(req.Messages)+1)
	tools := ""
	if len(req.Tools) > 0 {
		tools = string(d.AppendTools(nil, req.Tools))
	}
	if tools != "" && (len(req.Messages) == 0 || !isSystem(req.Messages[0].Role)) {
		out.Messages = append(out.Messages, lathe.System(tools))
		tools = ""
	}
	for i, m := range req.Messages {
		results := len(out.Messages) > 0 && i > 0 && req.Messages[i-1].Role == lathe.RoleTool
		switch {
		case m.Role == lathe.RoleAssistant && !d.form.native:
			m.Parts = d.assistant(m.Parts, req.Tools)
		case m.Role == lathe.RoleTool && !d.form.native:
			m = d.results(m)
			if last := len(out.Messages) - 1; results {
				out.Messages[last].Parts = append(out.Messages[last].Parts, m.Parts...)
				continue
			}
		case m.Role == lathe.RoleUser && results && !d.form.native: // the templates of some models require alternating roles
			if d.form.clean != nil {
				m.Parts = d.cleaned(m.Parts)
			}
			last := len(out.Messages) - 1
			out.Messages[last].Parts = append(out.Messages[last].Parts, m.Parts...)
			continue
		case m.Role != lathe.RoleAssistant && d.form.clean != nil && !(d.form.explained && isSystem(m.Role)):
			m.Parts = d.cleaned(m.Parts)
		}
		if i == 0 && tools != "" {
			m.Parts = append(m.Parts[:len(m.Parts):len(m.Parts)], lathe.Text{Text: "\n\n" + tools})
		}
		out.Messages = append(out.Messages, m)
	}
	return &out
}

func isSystem(r lathe.Role) bool { return r == lathe.RoleSystem || r == lathe.RoleDeveloper }

// assistant returns parts with the calls as text. It omits unreadable calls, whose text is in the message already: a server without tool
// support must not receive them in `tool_calls`.
func (d *Dialect) assistant(parts []lathe.Part, tools []*lathe.ToolSpec) []lathe.Part {
	var out []lathe.Part
	for i, p := range parts {
		c, ok := p.(lathe.ToolCall)
		switch {
		case ok && out == nil:
			out = append(make([]lathe.Part, 0, len(parts)), parts[:i]...) // not nil, even if i is 0
		case !ok && out != nil:
			out = append(out, p)
		}
		if ok && c.ParseError == "" {
			if d.form.arguments != nil {
				c.Arguments = d.form.arguments(c.Arguments)
			}
			out = append(out, lathe.Text{Text: string(d.appendCallOf(nil, c, tools))})
		}
	}
	if out == nil {
		return parts
	}
	return out
}

// results returns a tool message as a user message.
func (d *Dialect) results(m lathe.Message) lathe.Message {
	out := lathe.Message{Role: lathe.RoleUser, Synthetic: m.Synthetic}
	for _, p := range m.Parts {
		r, ok := p.(lathe.ToolResult)
		if !ok {
			out.Parts = append(out.Parts, p)
			continue
		}
		out.Parts = append(out.Parts, lathe.Text{Text: string(append(d.AppendResult(nil, r), '\n'))})
		for _, b := range r.Blobs {
			out.Parts = append(out.Parts, b)
		}
	}
	return out
}

// cleaned returns parts without marks; it is parts itself if nothing changes.
func (d *Dialect) cleaned(parts []lathe.Part) []lathe.Part {
	var out []lathe.Part
	for i, p := range parts {
		var q lathe.Part
		switch p := p.(type) {
		case lathe.Text:
			if text := d.form.clean(p.Text); text != p.Text {
				p.Text = text
				q = p
			} else {
				continue
			}
		case lathe.ToolResult:
			if text := d.form.clean(p.Content); text != p.Content {
				p.Content = text
				q = p
			} else {
				continue
			}
		default:
			continue
		}
		if out == nil {
			out = append(out, parts...)
		}
		out[i] = q
	}
	if out == nil {
		return parts
	}
	return out
}
