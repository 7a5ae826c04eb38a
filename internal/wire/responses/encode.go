package responses

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// An encoder encodes one request.
type encoder struct {
	req     *lathe.Request
	opts    *wire.EncodeOptions
	custom  map[string]bool // tools whose input is text
	texts   map[string]bool // ids of calls of these tools
	dropped []string
	mcp     bool // the server executes MCP tools for this request
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
	dst = e.include(dst.FieldsExcept(e.taken, "store", false))
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

// has reports whether the feature may be used, because the server has not refused it.
func (e *encoder) has(feature string) bool { return !slices.Contains(e.opts.Without, feature) }

func (e *encoder) include(dst wire.JSON) wire.JSON {
	given := wire.MemberValue(e.req.Overrides, "include")
	list, found := wire.JSON("["), false
	for el := range rawjson.Elements(given) {
		if rawjson.EqualKey(el, includeEncrypted) {
			if found = true; !e.has(featureEncrypted) {
				continue
			}
		}
		list = list.Next().Raw(el)
	}
	if !found && e.has(featureEncrypted) {
		list = list.Next().Quote(includeEncrypted)
	}
	if len(list) == 1 {
		return dst
	}
	return dst.Val("include", list).Lit("]")
}

func (e *encoder) sampling(dst wire.JSON) wire.JSON {
	s := &e.req.Sampling
	dst = dst.FieldsExcept(e.taken, "temperature", s.Temperature, "top_p", s.TopP, "presence_penalty", s.PresencePenalty,
		"frequency_penalty", s.FrequencyPenalty, "max_output_tokens", s.MaxTokens)
	for _, m := range [...]struct {
		path string
		set  bool
	}{{"sampling.seed", s.Seed != nil}, {"sampling.stop", len(s.Stop) > 0}, {"sampling.top_k", s.TopK != nil}, {"sampling.reasoning_budget", s.ReasoningBudget != nil}} {
		if m.set {
			e.drop(m.path)
		}
	}
	reasoning := wire.JSON("{").Fields("effort", wire.Optional(s.ReasoningEffort), "summary", wire.Optional(s.ReasoningSummary))
	return e.text(e.appendObject(dst, "reasoning", reasoning))
}

// appendObject appends a member whose value is an object with the members of own, followed by those of the override of that name. An empty
// object is omitted.
func (e *encoder) appendObject(dst wire.JSON, name string, own wire.JSON) wire.JSON {
	first := slices.Clip(own).Lit("}")
	own = own.Members(members(wire.MemberValue(e.req.Overrides, name)), func(name string) bool { return rawjson.At(first, name) != nil })
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
			e.speaker(&messages[0], "messages[0]")
			dst, first = dst.Str("instructions", t.Text), 1
		}
	}
	dst = dst.Arr("input")
	for i := first; i < len(messages); i++ {
		if messages[i].Role == "" {
			continue // not sent, or part of another message: see [wire.Fit] and [destination.Conversation]
		}
		dst = e.message(dst, &messages[i], "messages["+strconv.Itoa(i)+"]")
	}
	return dst.Lit("]")
}

func (e *encoder) speaker(m *lathe.Message, at string) {
	if m.Name != "" {
		e.drop(at + ".name")
	}
}

// own reports whether a message, and raw JSON in it, is from this wire.
func own(m *lathe.Message) bool { return m.Wire == lathe.WireResponses }

func (e *encoder) message(dst wire.JSON, m *lathe.Message, at string) wire.JSON {
	switch m.Role {
	case lathe.RoleAssistant:
		return e.answer(dst, m, at)
	case lathe.RoleTool:
		return e.result(dst, m, at)
	case lathe.RoleSystem, lathe.RoleDeveloper, lathe.RoleUser:
	}
	e.speaker(m, at)
	dst = dst.Next().Lit("{").Fields("type", "message", "role", string(m.Role)).Key("content")
	if t, ok := plain(m.Parts); ok {
		dst = dst.Quote(t)
	} else {
		dst = e.parts(append(dst, '['), m.Parts, own(m), at+".parts").Lit("]")
	}
	if own(m) {
		dst = dst.Members(m.Extra, knownInItem)
	} else {
		e.members(m.Extra, at)
	}
	return dst.Lit("}")
}

// members records members of another wire as dropped.
func (e *encoder) members(extra []lathe.Member, at string) {
	for _, m := range extra {
		e.drop(at + "." + m.Name)
	}
}

var knownInItem = rawjson.NewNames("type", "role", "content", "id", "status", "call_id", "name", "namespace", "arguments", "input", "output",
	wire.ItemMember).Has

// plain returns the text of content that can be encoded as one string; false if it cannot.
func plain(parts []lathe.Part) (string, bool) {
	if len(parts) == 0 {
		return "", true
	}
	t, ok := parts[0].(lathe.Text)
	return t.Text, ok && len(parts) == 1 && len(t.Extra) == 0
}

// parts appends the content parts of an input message. own is set if the message is from this wire.
func (e *encoder) parts(dst wire.JSON, parts []lathe.Part, own bool, at string) wire.JSON {
	for i, p := range parts {
		ok := true
		switch p := p.(type) {
		case lathe.Text:
			if p.Text == "" && len(p.Extra) == 0 {
				continue
			}
			dst = dst.Next().Lit("{").Fields("type", "input_text", "text", p.Text)
			dst = e.textExtra(dst, p.Extra, own, at, i).Lit("}")
		case lathe.Refusal:
			dst = dst.Next().Raw(wire.ObjectOf("type", "input_text", "text", p.Text))
		case lathe.Blob:
			dst, ok = appendBlob(dst, &p, own)
		case lathe.Opaque:
			if ok = own; ok {
				dst = dst.Next().Raw(p.JSON)
			}
		case lathe.Reasoning, lathe.ToolCall, lathe.ToolResult:
			ok = false
		}
		if !ok {
			e.drop(wire.Element(at, i))
		}
	}
	return dst
}

// textExtra appends the unknown members of part i, a text, or records them as dropped if they are from another wire.
func (e *encoder) textExtra(dst wire.JSON, extra []lathe.Member, own bool, at string, i int) wire.JSON {
	if own {
		return dst.Members(extra, func(name string) bool { return name == "type" || name == "text" || name == "phase" })
	}
	e.members(extra, at+"["+strconv.Itoa(i)+"]")
	return dst
}

// result appends the items for the results in a tool message.
func (e *encoder) result(dst wire.JSON, m *lathe.Message, at string) wire.JSON {
	for i, p := range m.Parts {
		r, ok := p.(lathe.ToolResult)
		if !ok {
			e.drop(wire.Element(at+".parts", i))
			continue
		}
		id, typ := CallID(r.CallID), "function_call_output"
		if item := sentAsItem(own(m), m.Extra, id); item != nil {
			dst = dst.Next().Raw(item)
			continue
		}
		if e.texts[r.CallID] {
			typ = "custom_tool_call_output"
		}
		dst = dst.Next().Lit("{").Fields("type", typ, "call_id", id).Key("output")
		if len(r.Blobs) == 0 && (len(r.Extra) == 0 || !own(m)) {
			dst = dst.Quote(r.Content)
			e.members(r.Extra, at+".parts["+strconv.Itoa(i)+"]")
		} else {
			parts := make([]lathe.Part, 0, 1+len(r.Blobs))
			parts = append(parts, lathe.Text{Text: r.Content, Extra: r.Extra})
			for i := range r.Blobs {
				parts = append(parts, r.Blobs[i])
				if !sendsBlob(&r.Blobs[i], own(m)) {
					parts = append(parts, lathe.Text{Text: wire.BlobNote(&r.Blobs[i])})
				}
			}
			dst = e.parts(append(dst, '['), parts, own(m), at+".parts["+strconv.Itoa(i)+"].content").Lit("]")
		}
		if own(m) {
			dst = dst.Members(m.Extra, knownInItem)
		} else {
			e.members(m.Extra, at)
		}
		dst = dst.Lit("}")
	}
	return dst
}
