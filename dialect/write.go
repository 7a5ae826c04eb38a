package dialect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// A form is the parser of a dialect, and describes how the dialect writes prompts. The text that it writes contains no marks that come from
// outside.
type form struct {
	parser func(o Options) fullParser
	// call returns one call as text. args is never blank.
	call func(c lathe.ToolCall, args string) string
	// typed returns a call of a tool whose schema is known; nil: call is used.
	typed func(c lathe.ToolCall, args string, schema []byte) string
	// layout returns the callLayout of call, for constraints.
	layout func() *callLayout
	// result returns one tool result as text.
	result func(r lathe.ToolResult) string
	// tools returns the description of the tools; nil: the scaffold and a line with an example of call.
	tools func(tools []*lathe.ToolSpec) string
	// native: the servers of these models write calls and results of the history themselves, so they stay parts of their messages.
	native bool
	// clean removes the dialect's marks from text of users and tools.
	clean func(text string) string
	// explained: system text is not cleaned, because its author may describe the syntax of calls.
	explained bool
	// arguments removes marks from the arguments of a call of the history, where that changes no value; nil: they are unchanged.
	arguments func(args string) string
}

// AppendTools appends to dst the text that describes the tools, and how to call them, to the model. Equal tools in the same order give
// equal bytes.
func (d *Dialect) AppendTools(dst []byte, tools []*lathe.ToolSpec) []byte {
	if d.form.tools != nil {
		return append(dst, d.form.tools(tools)...)
	}
	example := d.form.call(lathe.ToolCall{ID: "call00001", Name: "NAME"}, `{"argument":"value"}`)
	return append(dst, d.form.clean(scaffold(tools))+"To call a tool, write: "+example...)
}

// AppendCall appends a call to dst in the form in which the model writes it. If the format does not write the types of values, the parser
// may read a value with another type. [Dialect.Rewrite], which has the schemas of the tools, avoids that.
func (d *Dialect) AppendCall(dst []byte, c lathe.ToolCall) []byte {
	return append(dst, d.form.call(c, argumentsOf(c))...)
}

// argumentsOf returns the arguments of c; "{}" if they are blank.
func argumentsOf(c lathe.ToolCall) string {
	if strings.TrimSpace(c.Arguments) == "" {
		return "{}"
	}
	return c.Arguments
}

// callOf returns a call of one of tools as text from which a parser with these tools reads the same arguments.
func (d *Dialect) callOf(c lathe.ToolCall, tools []*lathe.ToolSpec) string {
	if d.form.typed == nil {
		return d.form.call(c, argumentsOf(c))
	}
	return d.form.typed(c, argumentsOf(c), schemaOf(tools, c.Name))
}

// AppendResult appends the result of a call to dst in the form that the model expects.
func (d *Dialect) AppendResult(dst []byte, r lathe.ToolResult) []byte {
	return append(dst, d.form.result(r)...)
}

// scaffold returns the list of tools, each with name, description and schema on lines of their own.
func scaffold(tools []*lathe.ToolSpec) string {
	var b strings.Builder
	b.WriteString("TOOLS:\n")
	for _, t := range tools {
		schema := `{"type":"object","properties":{}}`
		if len(t.Schema) > 0 {
			schema = rawjson.CompactText(t.Schema)
		}
		fmt.Fprintf(&b, "- name: %s\n  description: %s\n  schema: %s\n", t.Name, strings.Join(strings.Fields(t.Description), " "), schema)
	}
	return b.String() + "END TOOLS\n"
}

// Rewrite returns req in the form for a server without tool support. The tools become text at the end of the system text, calls become text
// of the assistant, and results become text of the user. The result has no Tools, ToolChoice and ParallelToolCalls. The results of one turn
// become one message; the text of a user message that follows is part of it. A call that could not be read is omitted, because its message
// already contains its text. For harmony, whose servers write calls and results themselves, calls and results are unchanged.
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
		switch {
		case m.Role == lathe.RoleAssistant && d.form.native, d.form.explained && isSystem(m.Role):
		case m.Role == lathe.RoleAssistant:
			m.Parts = d.assistant(m.Parts, req.Tools)
		case m.Role == lathe.RoleTool && !d.form.native:
			m = d.results(m)
		default:
			m.Parts = d.cleaned(m.Parts)
		}
		if i == 0 && tools != "" {
			m.Parts = append(slices.Clip(m.Parts), lathe.Text{Text: "\n\n" + tools})
		}
		if m.Role == lathe.RoleUser && i > 0 && req.Messages[i-1].Role == lathe.RoleTool && !d.form.native {
			last := &out.Messages[len(out.Messages)-1] // the results; the templates of some models require alternating roles
			last.Parts = append(last.Parts, m.Parts...)
			continue
		}
		out.Messages = append(out.Messages, m)
	}
	return &out
}

func isSystem(r lathe.Role) bool { return r == lathe.RoleSystem || r == lathe.RoleDeveloper }

// assistant returns parts with the calls as text. It omits unreadable calls, whose text is in the message already: a server without tool
// support must not receive them in `tool_calls`.
func (d *Dialect) assistant(parts []lathe.Part, tools []*lathe.ToolSpec) []lathe.Part {
	isCall := func(p lathe.Part) bool { _, ok := p.(lathe.ToolCall); return ok }
	if !slices.ContainsFunc(parts, isCall) {
		return parts
	}
	out := make([]lathe.Part, 0, len(parts)) // not nil, even if all calls are unreadable
	for _, p := range parts {
		c, ok := p.(lathe.ToolCall)
		switch {
		case !ok:
			out = append(out, p)
		case c.ParseError == "":
			if d.form.arguments != nil {
				c.Arguments = d.form.arguments(c.Arguments)
			}
			out = append(out, lathe.Text{Text: d.callOf(c, tools)})
		}
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
		out.Parts = append(out.Parts, lathe.Text{Text: d.form.result(r) + "\n"})
		for _, b := range r.Blobs {
			out.Parts = append(out.Parts, b)
		}
	}
	return out
}

// cleaned returns parts without marks; it is parts itself if nothing changes.
func (d *Dialect) cleaned(parts []lathe.Part) []lathe.Part {
	out, changed := slices.Clone(parts), false
	clean := func(text string) string {
		cleaned := d.form.clean(text)
		changed = changed || cleaned != text
		return cleaned
	}
	for i, p := range out {
		switch p := p.(type) {
		case lathe.Text:
			p.Text = clean(p.Text)
			out[i] = p
		case lathe.ToolResult:
			p.Content = clean(p.Content)
			out[i] = p
		default: // other parts have no text from outside in a prompt
		}
	}
	if !changed {
		return parts
	}
	return out
}
