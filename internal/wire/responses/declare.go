package responses

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// noArguments is the schema of a function without arguments.
const noArguments = `{"type":"object","properties":{}}`

// tools appends the members tools, tool_choice and parallel_tool_calls, if the request has tools.
func (e *encoder) tools(dst wire.JSON) wire.JSON {
	req := e.req
	if len(req.Tools)+len(req.HostedTools) == 0 {
		return dst
	}
	if !e.opts.Omits(featureCustom) {
		e.custom = customNames(req.Tools)
	}
	tools := req.Tools
	if slices.ContainsFunc(tools, fromItem) {
		tools = slices.DeleteFunc(slices.Clone(tools), fromItem)
	}
	if len(tools)+len(req.HostedTools) > 0 {
		dst = appendDefinitions(dst, e, tools)
	}
	allowed, mode := allowedNames(req), req.ToolChoice.Mode
	switch {
	case allowed != nil && mode != lathe.ChoiceFunction && mode != lathe.ChoiceNone:
		dst = e.allowed(dst.Key("tool_choice"), mode, allowed)
	case mode != "":
		dst = e.choice(dst.Key("tool_choice"), req.ToolChoice)
	}
	return dst.FieldsExcept(e.taken, "parallel_tool_calls", req.ParallelToolCalls)
}

// appendDefinitions appends the member tools: the given tools and the hosted tools.
func appendDefinitions(dst wire.JSON, e *encoder, tools []*lathe.ToolSpec) wire.JSON {
	req := e.req
	dst = dst.Arr("tools")
	dst, dropped := e.opts.Definitions.Append(dst, e.opts.Shared, tools, wire.Form{Strict: e.opts.Strict, Schema: e.opts.Takes.Schema}, e.definition)
	for _, path := range dropped {
		e.drop(path)
	}
	for i, t := range req.HostedTools {
		if len(tools)+i > 0 { // shared definitions are not in dst
			dst = dst.Lit(",")
		}
		if disallowed(t) {
			t = rawjson.Without(t, wire.DisallowedMember)
		}
		dst = dst.Raw(t)
	}
	return dst.Lit("]")
}

// disallowed reports whether a hosted tool is marked as one that the model may not call.
func disallowed(hosted []byte) bool { return get(hosted, wire.DisallowedMember) != nil }

// allowedNames returns the names of the tools that the model may call if some tools, hosted ones included, are disallowed; otherwise nil.
func allowedNames(req *lathe.Request) []string {
	names := wire.Allowed(req.Tools)
	if names != nil || !slices.ContainsFunc(req.HostedTools, func(t json.RawMessage) bool { return disallowed(t) }) {
		return names
	}
	names = []string{}
	for _, t := range req.Tools {
		names = append(names, t.Name)
	}
	return names
}

// fromItem reports whether the definition of a tool is in an item of the input, which the server receives unchanged.
func fromItem(t *lathe.ToolSpec) bool {
	return t.Wire == lathe.WireResponses && t.Origin == wire.OriginInput
}

func (e *encoder) choice(dst wire.JSON, c lathe.ToolChoice) wire.JSON {
	if c.Mode != lathe.ChoiceFunction {
		return dst.Quote(c.Mode)
	}
	return e.chosen(dst, c.Name)
}

// chosen appends the object that refers to a tool in a tool choice.
func (e *encoder) chosen(dst wire.JSON, name string) wire.JSON {
	typ := "function"
	if e.custom[name] {
		typ = typeCustom
	}
	return dst.Raw(wire.ObjectOf("type", typ, "name", name))
}

// allowed appends a tool choice that allows the tools with the given names and the hosted tools that are not disallowed.
func (e *encoder) allowed(dst wire.JSON, mode string, names []string) wire.JSON {
	dst = dst.Lit(`{"type":"allowed_tools"`).Str("mode", cmp.Or(mode, lathe.ChoiceAuto)).Arr("tools")
	for _, name := range names {
		dst = e.chosen(dst.Next(), name)
	}
	for _, t := range e.req.HostedTools {
		if disallowed(t) {
			continue
		}
		dst = dst.Next().Raw(wire.ObjectOf("type", text(t, "type"), "server_label", wire.Optional(text(t, "server_label"))))
	}
	return dst.Lit("]}")
}

// definition is a [wire.EncodeDefinition]. featureCustom affects only tools of clients, whose definitions are not cached.
func (e *encoder) definition(dst []byte, t *lathe.ToolSpec) (_ []byte, dropped []string) {
	all := e.dropped
	e.dropped = nil
	dst = e.tool(dst, t)
	dropped, e.dropped = e.dropped, all
	return dst, dropped
}

// tool appends a tool, and records the paths below it that the wire cannot express. For a tool of another wire it always writes `strict`,
// because the default is true only on this wire.
func (e *encoder) tool(dst wire.JSON, t *lathe.ToolSpec) wire.JSON {
	if isCustom(t) {
		if e.custom[t.Name] {
			return dst.Lit("{").Fields("type", typeCustom, "name", t.Name, "description", wire.Optional(t.Description)).Members(t.Extra, knownInTool).Lit("}")
		}
		e.drop(".type")
	}
	dst = dst.Lit("{").Fields("type", "function", "name", t.Name, "description", wire.Optional(t.Description)).Key("parameters")
	schema, fitted, changes := argumentsOf(t, e.opts)
	if e.opts.Strict.SetsStrict(t) {
		if s, ok := wire.StrictOpenAI.StrictArguments(schema); ok {
			for _, path := range s.Changes {
				e.drop(".schema" + path)
			}
			return dst.Raw(s.Schema).Lit(`,"strict":true}`)
		}
		e.drop(".strict")
	}
	if own(t.Wire) {
		return dst.Raw(schema).Members(t.Extra, func(name string) bool { return knownInTool(name) || name == "format" && isCustom(t) }).Lit("}")
	}
	for _, path := range changes {
		e.drop(".schema" + path)
	}
	strict := isStrict(t)
	if strict && !strictSchema(fitted, rawjson.DefaultMaxDepth) {
		strict = false
		e.drop(".strict")
	}
	for _, m := range t.Extra {
		if m.Name == "function" { // from chat completions: members of the inner object
			e.dropMembers(members(m.Value, "strict"), "")
		} else if m.Name != "strict" {
			e.drop("." + m.Name)
		}
	}
	return dst.Raw(fitted).Bool("strict", strict).Lit("}")
}

// customNames returns the names of the custom tools; nil if there are none.
func customNames(tools []*lathe.ToolSpec) (names map[string]bool) {
	for _, t := range tools {
		if isCustom(t) {
			if names == nil {
				names = map[string]bool{}
			}
			names[t.Name] = true
		}
	}
	return names
}

// argumentsOf returns the schema of a tool's arguments, fitted to the destination only if that changes nothing but its spelling, and the
// fitted schema with the paths of its changes.
func argumentsOf(t *lathe.ToolSpec, opts *wire.EncodeOptions) (schema, fitted []byte, changes []string) {
	if schema = rawjson.AppendCompact(nil, t.Schema); len(schema) == 0 {
		schema = []byte(noArguments)
	}
	if fitted, changes = opts.Takes.FitSchema(schema); len(changes) == 0 {
		schema = fitted
	}
	return schema, fitted, changes
}

var knownInTool = rawjson.NewNames("type", "name", "description", "parameters", "function").Has

// isStrict reports whether a tool of another wire is declared as strict.
func isStrict(t *lathe.ToolSpec) bool {
	v := wire.MemberValue(t.Extra, "strict")
	if fn := wire.MemberValue(t.Extra, "function"); v == nil && fn != nil {
		v = get(fn, "strict")
	}
	return string(v) == "true"
}
