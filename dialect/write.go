package dialect

import (
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// A form is how a dialect writes. The text of tools, calls and results that it writes holds no
// marks that come from outside.
type form struct {
	// call appends one call. args is never blank.
	call func(dst []byte, c lathe.ToolCall, args string) []byte
	// typed is call for a tool whose schema is known; nil: call.
	typed func(dst []byte, c lathe.ToolCall, args string, schema []byte) []byte
	// layout returns how call writes, for constraints.
	layout func() *callLayout
	// result appends one result; nil: as tags do.
	result func(dst []byte, r lathe.ToolResult) []byte
	// tools appends what tells the model about its tools; nil: the scaffold and a line that shows call.
	tools func(dst []byte, tools []*lathe.ToolSpec) []byte
	// native says that the servers of its models write calls and results of the history by
	// themselves: they stay parts of their messages.
	native bool
	// clean takes the dialect's marks out of text that people and tools wrote; nil: it stays.
	clean func(text string) string
	// explained says that system text is not cleaned: its author may speak of calls, and means them.
	explained bool
	// arguments does so in those of a call of the history, where that changes no value; nil: they stay.
	arguments func(args string) string
}

// AppendTools appends the text that tells a model about its tools and how to call them. Its bytes
// depend on the tools and their order alone.
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

// AppendCall appends a call as the model writes it. Formats without types of their own write a value as it is read if
// the tool's schema allows its type alone; [Dialect.Rewrite], which knows the schemas, writes other values as JSON.
func (d *Dialect) AppendCall(dst []byte, c lathe.ToolCall) []byte {
	return d.form.call(dst, c, argumentsOf(c))
}

func argumentsOf(c lathe.ToolCall) string {
	if strings.TrimSpace(c.Arguments) == "" {
		return "{}"
	}
	return c.Arguments
}

// appendCallOf appends a call of one of the tools so that a parser that knows them reads the same arguments.
func (d *Dialect) appendCallOf(dst []byte, c lathe.ToolCall, tools []*lathe.ToolSpec) []byte {
	if d.form.typed == nil {
		return d.AppendCall(dst, c)
	}
	return d.form.typed(dst, c, argumentsOf(c), schemaOf(tools, c.Name))
}

// AppendResult appends the result of a call in the form that the model reads.
func (d *Dialect) AppendResult(dst []byte, r lathe.ToolResult) []byte {
	if d.form.result != nil {
		return d.form.result(dst, r)
	}
	return appendTagResult(dst, r)
}

// appendScaffold appends the list of tools, one line for each property of one.
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

// Rewrite returns req as a server without tool support is to see it: the tools are text at the
// end of the system text, calls are text of the assistant, and results are text of the user, those
// of one turn in one message, with the user's own text if that comes next. A call that could not be read is in its message's text already. For
// harmony, whose servers write them in their own way, calls and results stay what they are.
//
// req is not changed. Messages that need no rewriting are the same values.
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
		case m.Role == lathe.RoleUser && results && !d.form.native: // templates may want roles to alternate
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

// assistant writes the calls among parts as text. It drops calls that could not be read, whose text is
// in the message: a server that takes calls as text must not get one in `tool_calls`.
func (d *Dialect) assistant(parts []lathe.Part, tools []*lathe.ToolSpec) []lathe.Part {
	var out []lathe.Part
	for i, p := range parts {
		c, ok := p.(lathe.ToolCall)
		switch {
		case ok && out == nil:
			out = append(make([]lathe.Part, 0, len(parts)), parts[:i]...) // not nil, also where i is 0
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

// results turns a tool message into one of the user.
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

// cleaned takes marks out of parts.
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
