package openai

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// noArguments is the schema sent for a tool that has none.
const noArguments = `{"type":"object","properties":{}}`

// appendTools appends the tools that are functions, and those that the server executes itself as they are. It returns the paths of
// what is not sent of the functions.
func appendTools(dst []byte, req *lathe.Request, opts *EncodeOptions) (_ []byte, dropped []string) {
	dst, dropped = opts.Definitions.Append(append(dst, '['), opts.Shared, req.Tools, wire.Form{Strict: opts.Strict, Schema: opts.Takes.Schema},
		func(dst []byte, t *lathe.ToolSpec) ([]byte, []string) { return appendDefinition(dst, t, opts) })
	for i, t := range req.HostedTools {
		if len(req.Tools)+i > 0 { // the definitions may be shared: then they are not in dst
			dst = append(dst, ',')
		}
		dst = rawjson.AppendCompact(dst, t)
	}
	return append(dst, ']'), dropped
}

// appendDefinition appends the definition of a function. It returns the paths below the tool of what is not sent.
func appendDefinition(dst []byte, t *lathe.ToolSpec, opts *EncodeOptions) (_ []byte, notSent []string) {
	var d dropped
	dst = append(dst, `{"type":"function","function":{"name":`...)
	dst = rawjson.AppendQuote(dst, t.Name)
	if t.Description != "" {
		dst = wire.AppendText(dst, "description", t.Description)
	}
	dst = append(dst, `,"parameters":`...)
	if opts.Strict.SetsStrict(t) {
		s, ok := strictTool(t, opts)
		if ok {
			for _, path := range s.Changes {
				d.add(".schema", path)
			}
			return append(appendSchema(dst, s.Schema, rawjson.DefaultMaxDepth), `,"strict":true}}`...), d
		}
		d.add(".strict")
	}
	if rawjson.SkipSpace(t.Schema, 0) == len(t.Schema) {
		dst = append(dst, noArguments...)
	} else {
		start := len(dst)
		dst = appendSchema(dst, t.Schema, rawjson.DefaultMaxDepth)
		schema, changes := opts.Takes.FitSchema(dst[start:])
		dst = append(dst[:start], schema...)
		for _, path := range changes {
			d.add(".schema", path)
		}
	}
	if foreign(t.Wire) {
		d.addMembers("", t.Extra, func(name string) bool { return name == "strict" })
		return append(wire.AppendMembers(dst, t.Extra, notStrict), "}}"...), d
	}
	dst = append(appendExtraInner(dst, t.Extra, knownInFunction), '}')
	return append(wire.AppendMembers(dst, t.Extra, knownInCall), '}'), d
}

// strictTool returns the schema with which a tool is sent as strict; ok is false if it cannot be.
func strictTool(t *lathe.ToolSpec, opts *EncodeOptions) (s wire.StrictSchema, ok bool) {
	schema := []byte(t.Schema)
	if rawjson.SkipSpace(schema, 0) == len(schema) {
		schema = []byte(noArguments)
	}
	if opts.Strict == wire.StrictWhole {
		return wire.StrictSchema{Schema: schema}, true
	}
	schema = rawjson.AppendCompact(nil, schema)
	if plain, changes := opts.Takes.FitSchema(schema); len(changes) == 0 {
		schema = plain
	}
	return wire.StrictOpenAI.StrictArguments(schema)
}

// notStrict claims all members of a tool of another wire but strict, which means the same on all wires.
func notStrict(name string) bool { return name != "strict" }

func knownInFunction(name string) bool {
	return name == "name" || name == "description" || name == "parameters" || name == "arguments"
}

// appendSchema appends a JSON Schema without white space and without `"required":[]`, which draft 4
// forbids and some servers still refuse. Where a value is data and not a schema, and below depth
// levels, nothing is removed.
func appendSchema(dst, schema []byte, depth int) []byte {
	schema = schema[rawjson.SkipSpace(schema, 0):]
	if depth == 0 || kind(schema) != '{' && kind(schema) != '[' {
		return rawjson.AppendCompact(dst, schema)
	}
	if schema[0] == '[' {
		dst = append(dst, '[')
		for el := range rawjson.Elements(schema) {
			dst = appendSchema(appendComma(dst, '['), el, depth-1)
		}
		return append(dst, ']')
	}
	dst = append(dst, '{')
	for key, value := range rawjson.Members(schema) {
		if rawjson.EqualKey(key, "required") && wire.EmptyArray(value) {
			continue
		}
		dst = append(appendComma(dst, '{'), key...)
		dst = append(dst, ':')
		switch string(key) {
		case `"enum"`, `"const"`, `"default"`, `"examples"`, `"example"`:
			dst = rawjson.AppendCompact(dst, value)
		case `"properties"`, `"patternProperties"`, `"$defs"`, `"definitions"`, `"dependentSchemas"`, `"dependencies"`:
			dst = appendSchemaMap(dst, value, depth-1)
		default:
			dst = appendSchema(dst, value, depth-1)
		}
	}
	return append(dst, '}')
}

// appendSchemaMap appends an object whose keys are names, not keywords, and whose values are schemas.
func appendSchemaMap(dst, obj []byte, depth int) []byte {
	if depth <= 0 || kind(obj) != '{' {
		return rawjson.AppendCompact(dst, obj)
	}
	dst = append(dst, '{')
	for key, value := range rawjson.Members(obj) {
		dst = append(appendComma(dst, '{'), key...)
		dst = append(dst, ':')
		dst = appendSchema(dst, value, depth-1)
	}
	return append(dst, '}')
}

func appendComma(dst []byte, open byte) []byte {
	if dst[len(dst)-1] != open {
		dst = append(dst, ',')
	}
	return dst
}

func appendToolChoice(dst []byte, c lathe.ToolChoice) []byte {
	if c.Mode != lathe.ChoiceFunction {
		return rawjson.AppendQuote(dst, c.Mode)
	}
	dst = append(dst, `{"type":"function","function":{"name":`...)
	dst = rawjson.AppendQuote(dst, c.Name)
	return append(dst, "}}"...)
}
