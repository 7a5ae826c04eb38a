package messages

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// helperTool is the name of the tool that replaces a response format which the server does not support. The input of the call is the
// answer.
const helperTool = "lathe_output_json"

const helperDescription = "Give the final answer to the user by calling this tool. The input of the tool is the answer."

// anyObject is the schema of a tool without arguments, and of an answer that may be any JSON object.
const anyObject = `{"type":"object"}`

// planFormat chooses how the response format is sent: as output_config.format or as the helper tool.
func (e *planner) planFormat() {
	format := e.req.Sampling.ResponseFormat
	if len(format) == 0 {
		return
	}
	schema, typ := jsonSchema(format)
	switch {
	case typ == "text":
	case typ == "json_object":
		e.helper = []byte(anyObject)
	case typ != "json_schema" || schema == nil:
		e.drop("sampling.response_format")
	case e.without(featureFormat):
		e.helper = rawjson.AppendCompact(nil, schema)
	default:
		strict := strictRules.Strict(schema)
		e.format = strict.Schema
		for _, path := range strict.Changes {
			e.drop("sampling.response_format.json_schema.schema" + path)
		}
	}
	if e.req.ToolChoice.Mode == lathe.ChoiceFunction && len(e.req.Tools)+len(e.req.HostedTools) > 0 {
		e.helper = nil // the answer is a call of the chosen function
	}
}

// tools appends the members tools and tool_choice.
func (e *encoder) tools(dst wire.JSON) wire.JSON {
	tools := e.req.Tools
	mode := e.req.ToolChoice.Mode
	mayChoose := mode != lathe.ChoiceFunction && mode != lathe.ChoiceNone
	if mayChoose && wire.Allowed(tools) != nil {
		e.drop(wire.AllowedPath)
	}
	if !e.opts.Takes.MovesSystem() && slices.ContainsFunc(tools, fromBlock) {
		tools = slices.DeleteFunc(slices.Clone(tools), fromBlock)
	}
	others := e.otherTools()
	if len(tools)+len(others) == 0 {
		if len(e.req.Tools) > 0 { // all tools are in blocks of the conversation
			dst = e.choice(dst)
		}
		return dst
	}
	dst = dst.Arr("tools")
	from := len(dst) - 1
	dst, dropped := e.opts.Definitions.Append(dst, e.opts.Shared, tools, wire.Form{Strict: e.opts.Strict, Schema: e.opts.Takes.Schema, Reduced: e.without(featureStrict)}, e.definition)
	for _, path := range dropped {
		e.drop(path)
	}
	for i, raw := range others {
		dst = dst.If(len(tools)+i > 0, ",").Raw(raw) // not Next, because shared definitions are not in dst
	}
	dst = dst.Lit("]")
	if shared := e.opts.Shared; shared != nil && len(shared.Text) > 0 {
		e.prefix.add(dst[from:shared.At], shared.Text, dst[shared.At:])
	} else {
		e.prefix.add(dst[from:])
	}
	return e.choice(dst)
}

// otherTools returns the definitions that follow those of the request's own tools.
func (e *encoder) otherTools() []json.RawMessage {
	others := slices.Clip(e.req.HostedTools)
	for _, name := range e.stubs {
		others = append(others, json.RawMessage(appendTool(nil, name, "", []byte(anyObject)).Lit("}")))
	}
	if e.helper != nil {
		others = append(others, json.RawMessage(appendTool(nil, helperTool, helperDescription, e.helper).Lit("}")))
	}
	return others
}

// fromBlock reports whether the definition of a tool is in a block of a system message of the conversation. A server that accepts such
// messages receives the definition there.
func fromBlock(t *lathe.ToolSpec) bool {
	return t.Wire == lathe.WireMessages && t.Origin == wire.OriginInput
}

// appendTool appends a tool without its closing brace.
func appendTool(dst wire.JSON, name, description string, schema []byte) wire.JSON {
	return dst.Lit(`{"name":`).Quote(name).OptStr("description", description).Val("input_schema", schema)
}

// definition is a [wire.EncodeDefinition]. It encodes one tool.
func (e *encoder) definition(dst []byte, t *lathe.ToolSpec) (_ []byte, dropped []string) {
	earlier := e.dropped // the paths of this tool are collected apart from them
	e.dropped = nil
	dst = e.tool(dst, t)
	dropped, e.dropped = e.dropped, earlier
	return dst, dropped
}

// tool appends a definition, and records the paths below the tool that the wire cannot express.
func (e *encoder) tool(dst wire.JSON, t *lathe.ToolSpec) wire.JSON {
	schema := bytes.TrimSpace(t.Schema)
	if len(schema) == 0 {
		schema = []byte(anyObject)
	}
	if t.Wire != lathe.WireMessages {
		var changes []string
		schema, changes = e.opts.Takes.FitSchema(rawjson.AppendCompact(nil, schema))
		for _, path := range changes {
			e.drop(".schema" + path)
		}
	}
	if e.opts.Strict.SetsStrict(t) && !e.without(featureStrict) {
		if strict, ok := strictRules.StrictArguments(schema); ok {
			for _, path := range strict.Changes {
				e.drop(".schema" + path)
			}
			dst = appendTool(dst, shortName(t.Name), t.Description, strict.Schema)
			return dst.Lit(`,"strict":true}`)
		}
		e.drop(".strict")
	}
	dst = appendTool(dst, shortName(t.Name), t.Description, schema)
	if t.Wire == lathe.WireMessages {
		written := []string{"type", "name", "description", "input_schema"}
		if e.without(featureStrict) && wire.MemberValue(t.Extra, "strict") != nil {
			e.drop(".strict")
			written = append(written, "strict")
		}
		return appendMembers(dst, t.Extra, written...).Lit("}")
	}
	for _, x := range t.Extra {
		switch {
		case x.Name == "cache_control" && rawjson.Kind(x.Value) == '{':
			dst = dst.Val(x.Name, x.Value)
		case x.Name == "function": // from chat completions: members of the inner object
			for _, y := range wire.OtherMembers(x.Value) {
				dst = e.foreign(dst, y, schema)
			}
		default:
			dst = e.foreign(dst, x, schema)
		}
	}
	return dst.Lit("}")
}

// foreign appends a member of a tool from another wire if it has the same meaning on this wire; otherwise it records it as dropped.
func (e *encoder) foreign(dst wire.JSON, x lathe.Member, schema []byte) wire.JSON {
	isTrue := string(x.Value) == "true"
	switch {
	case x.Name == "strict" && string(x.Value) == "false": // the default
	case x.Name == "defer_loading" && isTrue:
		return dst.Val(x.Name, x.Value)
	case x.Name == "strict" && isTrue && !e.without(featureStrict) && len(strictRules.Strict(schema).Changes) == 0:
		return dst.Val(x.Name, x.Value)
	default:
		e.drop("." + x.Name)
	}
	return dst
}

// choice appends tool_choice.
func (e *encoder) choice(dst wire.JSON) wire.JSON {
	parallel := e.req.ParallelToolCalls == nil || *e.req.ParallelToolCalls
	typ, name := choiceOf(e)
	if typ == "" && !parallel {
		typ = "auto"
	}
	if typ == "" {
		return dst
	}
	dst = dst.Key("tool_choice").Lit(`{"type":"`).Lit(typ).Lit(`"`).OptStr("name", name)
	if !parallel && typ != "none" {
		dst = dst.Bool("disable_parallel_tool_use", true)
	}
	return dst.Lit("}")
}

// choiceOf returns the type of tool_choice, and the name of the tool for the type tool. The type is "" if the request makes no choice. With
// the helper tool the model must call a tool, which may be another one if the request has tools that it may call.
func choiceOf(e *encoder) (typ, name string) {
	c := e.req.ToolChoice
	hasTools := len(e.req.Tools)+len(e.req.HostedTools) > 0
	switch {
	case e.helper == nil && len(e.stubs) > 0:
		return "none", "" // the stubs are needed only for calls in the history
	case e.helper != nil && (!hasTools || c.Mode == lathe.ChoiceNone):
		return "tool", helperTool
	case c.Mode == lathe.ChoiceFunction:
		return "tool", shortName(c.Name)
	case e.helper != nil, c.Mode == lathe.ChoiceRequired:
		return "any", ""
	case c.Mode == lathe.ChoiceNone, c.Mode == lathe.ChoiceAuto:
		return c.Mode, "" // the wire has the same names
	}
	return "", ""
}

// jsonSchema returns the type of a response format and, for json_schema, its schema, which is nil if it is not an object.
func jsonSchema(format []byte) (schema []byte, typ string) {
	if rawjson.Kind(format[rawjson.SkipSpace(format, 0):]) == '{' {
		schema = get(get(format, "json_schema"), "schema")
		if rawjson.Kind(schema) != '{' {
			schema = nil
		}
		return schema, text(format, "type")
	}
	return nil, ""
}
