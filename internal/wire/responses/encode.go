package responses

import (
	"encoding/json"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// An encoder encodes one request.
type encoder struct {
	req     *lathe.Request
	opts    *wire.EncodeOptions
	mcp     bool            // the server executes MCP tools for this request
	custom  map[string]bool // tools whose input is text; set by tools, which therefore precedes input
	texts   map[string]bool // ids of calls of these tools; set by the calls in the input, for their results
	dropped []string        // paths of the members that are not sent
}

// reserved reports whether a name is that of a member that Request.Overrides cannot replace. Overrides named text, reasoning and include are
// merged with the members of the request.
var reserved = rawjson.NewNames("model", "input", "instructions", "tools", "tool_choice", "stream", "previous_response_id", "background", "conversation",
	"prompt", "text", "reasoning", "include").Has

// AppendRequest implements [wire.Upstream]. The input is the last member, so that the encoded beginning of a growing conversation stays the
// same. The request has "store": false, unless an override replaces it, and requests reasoning as opaque data. Overrides named `text`,
// `reasoning` and `include` are merged with the members of the request.
func (Codec) AppendRequest(to []byte, req *lathe.Request, opts *wire.EncodeOptions) (body []byte, dropped []string) {
	if opts == nil {
		opts = &wire.EncodeOptions{}
	}
	e := &encoder{req: req, opts: opts, mcp: slices.ContainsFunc(req.HostedTools, func(t json.RawMessage) bool { return text(t, "type") == "mcp" })}
	dst := wire.JSON(to).Lit("{").OptStr("model", req.Model)
	if opts.Stream {
		dst = dst.Bool("stream", true)
	}
	dst = dst.FieldsExcept(e.taken, "store", false)
	if list := e.include(nil, includeEncrypted); len(list) > len("[]") {
		dst = dst.Val("include", list)
	}
	dst = e.sampling(dst)
	dst = e.tools(dst)
	dst = dst.FieldsExcept(e.taken, "user", wire.Optional(req.User))
	dst = dst.Members(req.Overrides, reserved)
	dst = e.input(dst).Lit("}")
	return dst, e.dropped
}

// drop records the path of a member that the wire cannot express.
func (e *encoder) drop(path string) {
	if len(e.dropped) < wire.MaxDropped {
		e.dropped = append(e.dropped, path)
	}
}

// taken reports whether an override replaces or extends the member.
func (e *encoder) taken(name string) bool { return wire.Named(e.req.Overrides, name) }

// include returns the value of include: the elements of given, those of the override, and the wanted ones that are in neither. It leaves out
// includeEncrypted if the server has refused it.
func (e *encoder) include(given []byte, wanted ...string) wire.JSON {
	list := wire.JSON("[")
	elements := slices.AppendSeq(slices.Collect(rawjson.Elements(given)), rawjson.Elements(wire.MemberValue(e.req.Overrides, "include")))
	for _, name := range wanted {
		if !slices.ContainsFunc(elements, func(el []byte) bool { return rawjson.EqualKey(el, name) }) {
			elements = append(elements, wire.Quoted(name))
		}
	}
	for _, el := range elements {
		if !e.opts.Omits(featureEncrypted) || !rawjson.EqualKey(el, includeEncrypted) {
			list = list.Next().Raw(el)
		}
	}
	return list.Lit("]")
}

func (e *encoder) sampling(dst wire.JSON) wire.JSON {
	s := &e.req.Sampling
	dst = dst.FieldsExcept(e.taken, "temperature", s.Temperature, "top_p", s.TopP, "presence_penalty", s.PresencePenalty,
		"frequency_penalty", s.FrequencyPenalty, "max_output_tokens", s.MaxTokens)
	if s.Seed != nil {
		e.drop("sampling.seed")
	}
	if len(s.Stop) > 0 {
		e.drop("sampling.stop")
	}
	if s.TopK != nil {
		e.drop("sampling.top_k")
	}
	if s.ReasoningBudget != nil {
		e.drop("sampling.reasoning_budget")
	}
	reasoning := wire.JSON("{").Fields("effort", wire.Optional(s.ReasoningEffort), "summary", wire.Optional(s.ReasoningSummary))
	return e.text(e.appendObject(dst, "reasoning", reasoning))
}

// appendObject appends a member whose value is an object with the members of own, followed by those of the override of that name. An empty
// object is omitted.
func (e *encoder) appendObject(dst wire.JSON, name string, own wire.JSON) wire.JSON {
	object := slices.Clip(own).Lit("}")
	own = own.Members(members(wire.MemberValue(e.req.Overrides, name)), func(name string) bool { return rawjson.At(object, name) != nil })
	if len(own) == 1 {
		return dst
	}
	return dst.Val(name, own).Lit("}")
}

// text appends the member text with the response format. On this wire a json_schema is flat, where chat completions has a nested object.
func (e *encoder) text(dst wire.JSON) wire.JSON {
	own := wire.JSON("{")
	switch format := e.req.Sampling.ResponseFormat; text(format, "type") {
	case "":
		if len(format) > 0 {
			e.drop("sampling.response_format")
		}
	case "json_schema":
		inner := get(format, "json_schema")
		own = own.Lit(`"format":{"type":"json_schema"`)
		if get(inner, "name") == nil {
			own = own.Str("name", "answer")
		}
		own = own.Members(members(inner, "type"), nil).Lit("}")
	default:
		own = own.Lit(`"format":`).Compact(format)
	}
	return e.appendObject(dst, "text", own)
}

// input appends instructions and input. If the first message is a system message with one text, it becomes the instructions, unless the
// input would then be empty.
func (e *encoder) input(dst wire.JSON) wire.JSON {
	messages := e.req.Messages
	first := 0
	if len(messages) > 1 && messages[0].Role == lathe.RoleSystem && len(messages[0].Parts) == 1 && len(messages[0].Extra) == 0 {
		if t, ok := messages[0].Parts[0].(lathe.Text); ok && len(t.Extra) == 0 && t.Text != "" {
			e.dropName(&messages[0], "messages[0]")
			dst, first = dst.Str("instructions", t.Text), 1
		}
	}
	dst = dst.Arr("input")
	for i := first; i < len(messages); i++ {
		if messages[i].Role == "" {
			continue // not sent, or part of another message: see [wire.Fit] and [destination.Conversation]
		}
		dst = e.message(dst, &messages[i], wire.Element("messages", i))
	}
	return dst.Lit("]")
}

// dropName records the name of the author of a message as dropped.
func (e *encoder) dropName(m *lathe.Message, at string) {
	if m.Name != "" {
		e.drop(at + ".name")
	}
}

// own reports whether a message, and raw JSON in it, is from this wire.
func own(from lathe.Wire) bool { return from == lathe.WireResponses }

func (e *encoder) message(dst wire.JSON, m *lathe.Message, at string) wire.JSON {
	switch m.Role {
	case lathe.RoleAssistant:
		return e.answer(dst, m, at)
	case lathe.RoleTool:
		return e.result(dst, m, at)
	case lathe.RoleSystem, lathe.RoleDeveloper, lathe.RoleUser:
	}
	e.dropName(m, at)
	dst = dst.Next().Lit("{").Fields("type", "message", "role", string(m.Role)).Key("content")
	if t, ok := plain(m.Parts); ok {
		dst = dst.Quote(t)
	} else {
		dst = e.parts(append(dst, '['), m.Parts, m.Wire, at+".parts").Lit("]")
	}
	return e.itemExtra(dst, m.Wire, m.Extra, at).Lit("}")
}

// itemExtra appends the unknown members of an item, or records them as dropped if they are from another wire.
func (e *encoder) itemExtra(dst wire.JSON, from lathe.Wire, extra []lathe.Member, at string) wire.JSON {
	if own(from) {
		return dst.Members(extra, knownInItem)
	}
	e.dropMembers(extra, at)
	return dst
}

// dropMembers records members of the object at a path as dropped.
func (e *encoder) dropMembers(extra []lathe.Member, at string) {
	for _, m := range extra {
		e.drop(at + "." + m.Name)
	}
}

var knownInItem = rawjson.NewNames("type", "role", "content", "id", "status", "call_id", "name", "namespace", "arguments", "input", "output",
	wire.ItemMember).Has

var knownInText = rawjson.NewNames("type", "text", "phase").Has

// plain returns the text of content that can be encoded as one string; false if it cannot.
func plain(parts []lathe.Part) (string, bool) {
	if len(parts) == 0 {
		return "", true
	}
	t, ok := parts[0].(lathe.Text)
	return t.Text, ok && len(parts) == 1 && len(t.Extra) == 0
}

// parts appends the content parts of an input message, which is from the wire from. list is the path of the parts.
func (e *encoder) parts(dst wire.JSON, parts []lathe.Part, from lathe.Wire, list string) wire.JSON {
	for i, p := range parts {
		ok := true
		switch p := p.(type) {
		case lathe.Text:
			if p.Text == "" && len(p.Extra) == 0 {
				continue
			}
			dst = dst.Next().Lit("{").Fields("type", "input_text", "text", p.Text)
			dst = e.textExtra(dst, p.Extra, from, list, i).Lit("}")
		case lathe.Refusal:
			dst = dst.Next().Raw(wire.ObjectOf("type", "input_text", "text", p.Text))
		case lathe.Blob:
			dst, ok = appendBlob(dst, &p, from)
		case lathe.Opaque:
			if ok = own(from); ok {
				dst = dst.Next().Raw(p.JSON)
			}
		case lathe.Reasoning, lathe.ToolCall, lathe.ToolResult:
			ok = false
		}
		if !ok {
			e.drop(wire.Element(list, i))
		}
	}
	return dst
}

// textExtra appends the unknown members of a text, which is element i of a list, or records them as dropped if they are from another wire.
func (e *encoder) textExtra(dst wire.JSON, extra []lathe.Member, from lathe.Wire, list string, i int) wire.JSON {
	if own(from) {
		return dst.Members(extra, knownInText)
	}
	e.dropMembers(extra, wire.Element(list, i))
	return dst
}

// result appends the items for the results in a tool message.
func (e *encoder) result(dst wire.JSON, m *lathe.Message, at string) wire.JSON {
	for i, p := range m.Parts {
		path := wire.Element(at+".parts", i)
		r, ok := p.(lathe.ToolResult)
		if !ok {
			e.drop(path)
			continue
		}
		id, typ := CallID(r.CallID), "function_call_output"
		if item := sentAsItem(m.Wire, m.Extra, id); item != nil {
			dst = dst.Next().Raw(item)
			continue
		}
		if e.texts[r.CallID] {
			typ = "custom_tool_call_output"
		}
		dst = dst.Next().Lit("{").Fields("type", typ, "call_id", id).Key("output")
		dst = appendOutput(dst, e, &r, m.Wire, path)
		dst = e.itemExtra(dst, m.Wire, m.Extra, at).Lit("}")
	}
	return dst
}

// appendOutput appends the content of a result: a string if it is only text, otherwise content parts. A blob that is not sent is followed by a
// text that mentions it.
func appendOutput(dst wire.JSON, e *encoder, r *lathe.ToolResult, from lathe.Wire, at string) wire.JSON {
	if len(r.Blobs) == 0 && (len(r.Extra) == 0 || !own(from)) {
		e.dropMembers(r.Extra, at)
		return dst.Quote(r.Content)
	}
	parts := []lathe.Part{lathe.Text{Text: r.Content, Extra: r.Extra}}
	for i := range r.Blobs {
		blob := &r.Blobs[i]
		parts = append(parts, *blob)
		if !sendsBlob(blob, from) {
			parts = append(parts, lathe.Text{Text: wire.BlobNote(blob)})
		}
	}
	return e.parts(dst.Lit("["), parts, from, at+".content").Lit("]")
}
