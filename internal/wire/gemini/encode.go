package gemini

import (
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// reserved reports whether a name is that of a member that Request.Overrides cannot replace.
var reserved = rawjson.NewNames("contents", "systemInstruction", "system_instruction", "tools", "cachedContent", "cached_content", "model").Has

// An encoder encodes one request.
type encoder struct {
	req  *lathe.Request
	opts *wire.EncodeOptions
	d    dropped
}

// AppendRequest implements [wire.Upstream]. The contents are the last member, so that the encoded beginning of a growing conversation stays
// the same. Overrides named generationConfig and toolConfig replace single members of these objects, not the whole objects.
func (Codec) AppendRequest(to []byte, req *lathe.Request, opts *wire.EncodeOptions) ([]byte, []string) {
	if opts == nil {
		opts = &wire.EncodeOptions{}
	}
	e := &encoder{req: req, opts: opts}
	dst := wire.JSON(to).Lit("{")
	n := leading(req.Messages)
	if n > 0 {
		dst = e.appendSystem(dst, req.Messages[:n])
	}
	dst = e.appendTools(dst)
	dst = e.appendToolConfig(dst)
	dst = e.appendConfig(dst)
	dst = dst.Members(req.Overrides, func(name string) bool {
		return reserved(name) || name == "generationConfig" || name == "toolConfig"
	})
	if req.User != "" {
		e.d.add("user")
	}
	dst = dst.Arr("contents")
	dst = e.appendContents(dst, n)
	return dst.Lit("]}"), e.d.paths
}

// leading returns the number of system messages before all others. It returns 0 if there are no other messages, because a request must have
// contents.
func leading(msgs []lathe.Message) int {
	for i := range msgs {
		if !wire.IsSystem(&msgs[i]) && msgs[i].Role != "" {
			return i
		}
	}
	return 0
}

func (e *encoder) appendSystem(dst wire.JSON, msgs []lathe.Message) wire.JSON {
	start := len(dst)
	dst = dst.Key("systemInstruction").Lit(`{"parts":[`)
	open := len(dst)
	for i := range msgs {
		m := &msgs[i]
		if m.Role == "" {
			continue // the message is not sent
		}
		at := wire.Element("messages", i)
		e.noteMessage(m, at)
		dst = e.appendTexts(dst, m, at, "", "")
	}
	if len(dst) == open {
		return dst[:start]
	}
	return dst.Lit("]}")
}

// noteMessage records the members of a message that a content cannot have as dropped.
func (e *encoder) noteMessage(m *lathe.Message, at string) {
	if m.Name != "" {
		e.d.add(at + ".name")
	}
	if m.Wire != lathe.WireGemini {
		e.noteExtra(m.Extra, at)
	}
}

// noteExtra records members of another wire as dropped.
func (e *encoder) noteExtra(members []lathe.Member, at string) {
	for _, m := range members {
		if m.Name == "function" && rawjson.Kind(m.Value) == '{' {
			for key := range rawjson.Members(m.Value) {
				e.d.add(wire.Join(at, rawjson.Text(key)))
			}
			continue
		}
		e.d.add(wire.Join(at, m.Name))
	}
}

func (e *encoder) appendTools(dst wire.JSON) wire.JSON {
	if len(e.req.Tools) == 0 && len(e.req.HostedTools) == 0 {
		return dst
	}
	dst = dst.Arr("tools")
	if len(e.req.Tools) > 0 {
		dst = dst.Lit(`{"functionDeclarations":[`)
		var dropped []string
		dst, dropped = e.opts.Definitions.Append(dst, e.opts.Shared, e.req.Tools, wire.Form{Reduced: has(e.opts.Without, featureJSONSchema)}, e.definition)
		for _, path := range dropped {
			e.d.add(path)
		}
		dst = dst.Lit("]}")
	}
	for _, t := range e.req.HostedTools {
		dst = dst.Next().Raw(t)
	}
	return dst.Lit("]")
}

// definition is a [wire.EncodeDefinition]. It encodes one function declaration.
func (e *encoder) definition(dst []byte, t *lathe.ToolSpec) (_ []byte, dropped []string) {
	const at = "tool"
	earlier := e.d.paths // the paths of this tool are collected apart from them
	e.d.paths = nil
	dst = e.appendTool(dst, t, at)
	dropped, e.d.paths = e.d.paths, earlier
	for i, path := range dropped {
		dropped[i] = strings.TrimPrefix(path, at)
	}
	return dst, dropped
}

func (e *encoder) appendTool(dst wire.JSON, t *lathe.ToolSpec, at string) wire.JSON {
	dst = dst.Lit(`{"name":`).Quote(t.Name).OptStr("description", t.Description)
	if rawjson.SkipSpace(t.Schema, 0) < len(t.Schema) {
		switch {
		case has(e.opts.Without, featureJSONSchema):
			dst = appendSchema(dst.Key("parameters"), t.Schema, at+".schema", openAPISchema, &e.d)
		case t.Wire == lathe.WireGemini: // the schema as the client wrote it for this wire
			dst = dst.Key("parametersJsonSchema").Compact(t.Schema)
		default:
			dst = appendSchema(dst.Key("parametersJsonSchema"), t.Schema, at+".schema", jsonSchema, &e.d)
		}
	}
	if t.Wire == lathe.WireGemini {
		dst = dst.Members(t.Extra, knownInTool)
	} else {
		e.noteExtra(t.Extra, at)
	}
	return dst.Lit("}")
}

var knownInTool = rawjson.NewNames("name", "description", "parameters", "parametersJsonSchema").Has

// override returns the last override named name if it is an object, else nil.
func (e *encoder) override(name string) []byte {
	for _, m := range slices.Backward(e.req.Overrides) {
		if m.Name == name && rawjson.Kind(m.Value) == '{' {
			return m.Value
		}
	}
	return nil
}

func (e *encoder) appendToolConfig(dst wire.JSON) wire.JSON {
	if e.req.ParallelToolCalls != nil && !*e.req.ParallelToolCalls && len(e.req.Tools) > 0 {
		e.d.add("parallel_tool_calls")
	}
	override := e.override("toolConfig")
	choice, allowed := e.req.ToolChoice, wire.Allowed(e.req.Tools)
	if len(e.req.Tools) == 0 || get(override, "functionCallingConfig") != nil {
		choice.Mode = ""
	}
	mayCallOthers := choice.Mode == "" || choice.Mode == lathe.ChoiceAuto
	if allowed != nil && mayCallOthers {
		e.d.add(wire.AllowedPath)
	}
	if choice.Mode == "" && override == nil {
		return dst
	}
	dst = dst.Obj("toolConfig")
	if choice.Mode != "" {
		dst = appendChoice(dst, choice, allowed)
	}
	for key, v := range rawjson.Members(override) {
		dst = dst.Pair(key, v)
	}
	return dst.Lit("}")
}

// appendChoice appends the member functionCallingConfig. allowed are the functions that the model may call; nil: all. The wire can express
// that restriction only if a call is required.
func appendChoice(dst wire.JSON, c lathe.ToolChoice, allowed []string) wire.JSON {
	mode, names := "AUTO", []string(nil)
	switch c.Mode {
	case lathe.ChoiceNone:
		mode = "NONE"
	case lathe.ChoiceRequired:
		mode, names = "ANY", allowed
	case lathe.ChoiceFunction:
		mode, names = "ANY", []string{c.Name}
	}
	return dst.Val("functionCallingConfig", wire.ObjectOf("mode", mode, "allowedFunctionNames", names))
}

func (e *encoder) appendConfig(dst wire.JSON) wire.JSON {
	override := e.override("generationConfig")
	given := func(name string) bool { return get(override, name) != nil }
	start := len(dst)
	dst = dst.Obj("generationConfig")
	open := len(dst)
	s := e.req.Sampling
	if s.Seed != nil && *s.Seed != int64(int32(*s.Seed)) && !given("seed") {
		s.Seed = nil
		e.d.add("sampling.seed")
	}
	dst = dst.FieldsExcept(given, "temperature", s.Temperature, "topP", s.TopP, "presencePenalty", s.PresencePenalty, "frequencyPenalty", s.FrequencyPenalty,
		"topK", s.TopK, "maxOutputTokens", s.MaxTokens, "seed", s.Seed, "stopSequences", s.Stop)
	if len(s.ResponseFormat) > 0 && !given("responseMimeType") {
		dst = e.appendFormat(dst, s.ResponseFormat)
	}
	if !given("thinkingConfig") {
		if t, ok := thinkingOf(e.req, e.opts, &e.d); ok {
			dst = dst.Obj("thinkingConfig").If(t.include, `"includeThoughts":true`).Fields("thinkingBudget", t.budget, "thinkingLevel", wire.Optional(t.level)).Lit("}")
		}
	}
	for key, v := range rawjson.Members(override) {
		dst = dst.Pair(key, v)
	}
	if len(dst) == open {
		return dst[:start]
	}
	return dst.Lit("}")
}

// appendFormat appends the members that define the response format.
func (e *encoder) appendFormat(dst wire.JSON, format []byte) wire.JSON {
	const at = "sampling.response_format"
	const json = `"application/json"`
	switch rawjson.TextAt(format, "type") {
	case "", "text":
		return dst
	case "json_object":
		return dst.Key("responseMimeType").Lit(json)
	case "json_schema":
		inner := rawjson.At(format, "json_schema")
		if get(inner, "description") != nil {
			e.d.add(at + ".json_schema.description")
		}
		dst = dst.Key("responseMimeType").Lit(json)
		schema := rawjson.At(inner, "schema")
		if rawjson.Kind(schema) != '{' {
			return dst
		}
		if has(e.opts.Without, featureJSONSchema) {
			return appendSchema(dst.Key("responseSchema"), schema, at+".json_schema.schema", openAPISchema, &e.d)
		}
		return appendSchema(dst.Key("responseJsonSchema"), schema, at+".json_schema.schema", jsonSchema, &e.d)
	}
	e.d.add(at)
	return dst
}
