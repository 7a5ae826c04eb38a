package openai

import (
	"encoding/json"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// noArguments is the schema sent for a tool without a schema.
const noArguments = `{"type":"object","properties":{}}`

// appendTools appends the functions, and unchanged the tools that the model server executes. It returns the paths of members of the
// functions that are not sent.
func appendTools(dst wire.JSON, req *lathe.Request, opts *EncodeOptions) (_ wire.JSON, dropped []string) {
	dst, dropped = opts.Definitions.Append(dst.Lit("["), opts.Shared, req.Tools, wire.Form{Strict: opts.Strict, Schema: opts.Takes.Schema},
		func(dst []byte, t *lathe.ToolSpec) ([]byte, []string) { return appendDefinition(dst, t, opts) })
	for i, t := range req.HostedTools {
		if len(req.Tools)+i > 0 { // shared definitions are not in dst
			dst = dst.Lit(",")
		}
		dst = dst.Compact(t)
	}
	return dst.Lit("]"), dropped
}

// appendDefinition appends the definition of a function. It returns the paths, below the tool, of members that are not sent.
func appendDefinition(dst wire.JSON, t *lathe.ToolSpec, opts *EncodeOptions) (_ wire.JSON, notSent []string) {
	var d dropped
	dst = dst.Lit(`{"type":"function","function":{"name":`).Quote(t.Name).OptStr("description", t.Description).Lit(`,"parameters":`)
	if opts.Strict.SetsStrict(t) {
		s, ok := strictTool(t, opts)
		if ok {
			for _, path := range s.Changes {
				d.add(".schema", path)
			}
			return appendSchema(dst, s.Schema, rawjson.DefaultMaxDepth).Lit(`,"strict":true}}`), d
		}
		d.add(".strict")
	}
	if rawjson.SkipSpace(t.Schema, 0) == len(t.Schema) {
		dst = dst.Lit(noArguments)
	} else {
		start := len(dst)
		dst = appendSchema(dst, t.Schema, rawjson.DefaultMaxDepth)
		schema, changes := opts.Takes.FitSchema(dst[start:])
		dst = dst[:start].Raw(schema)
		for _, path := range changes {
			d.add(".schema", path)
		}
	}
	if foreign(t.Wire) {
		d.addMembers("", t.Extra, func(name string) bool { return name == "strict" })
		return dst.Members(t.Extra, notStrict).Lit("}}"), d
	}
	dst = appendExtraInner(dst, t.Extra, knownInFunction).Lit("}")
	return dst.Members(t.Extra, knownInCall).Lit("}"), d
}

// strictTool returns the schema for sending a tool as strict; ok is false if that is not possible.
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

// notStrict reports whether a member of a tool from another wire is left out: all are except strict, which means the same on all wires.
func notStrict(name string) bool { return name != "strict" }

var knownInFunction = rawjson.NewNames("name", "description", "parameters", "arguments").Has

// appendSchema appends a JSON Schema without white space and without `"required":[]`, which draft 4 forbids and some servers refuse. Values
// that are data and not schemas, and whatever is nested deeper than depth levels, are only compacted.
func appendSchema(dst wire.JSON, schema []byte, depth int) wire.JSON {
	schema = schema[rawjson.SkipSpace(schema, 0):]
	if depth <= 0 || kind(schema) != '{' && kind(schema) != '[' {
		return dst.Compact(schema)
	}
	return rawjson.AppendEach(dst, schema, func(dst, key, value []byte) []byte {
		if rawjson.EqualKey(key, "required") && wire.EmptyArray(value) {
			return dst
		}
		switch string(key) {
		case `"enum"`, `"const"`, `"default"`, `"examples"`, `"example"`:
			return rawjson.AppendCompact(dst, value)
		case `"properties"`, `"patternProperties"`, `"$defs"`, `"definitions"`, `"dependentSchemas"`, `"dependencies"`:
			if depth > 1 && kind(value) == '{' { // its names are arbitrary
				return rawjson.AppendEach(dst, value, func(dst, _, value []byte) []byte { return appendSchema(dst, value, depth-2) })
			}
		}
		return appendSchema(dst, value, depth-1)
	})
}

func appendToolChoice(dst wire.JSON, c lathe.ToolChoice) wire.JSON {
	if c.Mode != lathe.ChoiceFunction {
		return dst.Quote(c.Mode)
	}
	return dst.Raw(wire.ObjectOf("type", "function", "function", wire.ObjectOf("name", c.Name)))
}

// innerMember is the name of the member of Extra that contains the unknown members of a function object. See [lathe.ToolSpec].Extra.
const innerMember = "function"

// appendInner appends the unknown members of a function object as one member, if there are any.
func appendInner(dst, inner []lathe.Member) []lathe.Member {
	if len(inner) == 0 {
		return dst
	}
	return append(dst, lathe.Member{Name: innerMember, Value: json.RawMessage(wire.JSON("{").Members(inner, nil).Lit("}"))})
}

// appendExtraInner appends the unknown members of a function object that extra contains.
func appendExtraInner(dst wire.JSON, extra []lathe.Member, known func(string) bool) wire.JSON {
	for _, m := range extra {
		if m.Name == innerMember {
			dst = dst.Members(wire.OtherMembers(m.Value), known)
		}
	}
	return dst
}
