package responses

import (
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
	custom  map[string]bool // tools that take text
	texts   map[string]bool // ids of calls of such tools
	dropped []string
	looked  bool // for MCP tools among the hosted ones
	mcp     bool
}

// reserved reports whether Request.Overrides cannot replace the member.
func reserved(name string) bool {
	switch name {
	case "model", "input", "instructions", "tools", "tool_choice", "stream", "previous_response_id", "background", "conversation", "prompt":
		return true
	}
	return false
}

// merged reports whether an override of the member is merged with it instead of replacing it.
func merged(name string) bool { return name == "text" || name == "reasoning" || name == "include" }

// AppendRequest implements [wire.Upstream]. The input is the last member, so that a growing conversation keeps its beginning.
// The request has "store": false, unless an override replaces it, and asks for reasoning as opaque data. The overrides `text`,
// `reasoning` and `include` are merged with the members of the request.
func (Codec) AppendRequest(dst []byte, req *lathe.Request, opts *wire.EncodeOptions) (body []byte, dropped []string) {
	if opts == nil {
		opts = &wire.EncodeOptions{}
	}
	e := &encoder{req: req, opts: opts}
	dst = append(dst, '{')
	if req.Model != "" {
		dst = wire.AppendText(dst, "model", req.Model)
	}
	if opts.Stream {
		dst = append(wire.AppendKey(dst, "stream"), "true"...)
	}
	if e.free("store") {
		dst = append(wire.AppendKey(dst, "store"), "false"...)
	}
	dst = e.include(dst)
	dst = e.sampling(dst)
	dst = e.tools(dst)
	if req.User != "" && e.free("user") {
		dst = wire.AppendText(dst, "user", req.User)
	}
	dst = wire.AppendMembers(dst, req.Overrides, func(name string) bool { return reserved(name) || merged(name) })
	dst = append(e.input(dst), '}')
	return dst, e.dropped
}

// drop records the path of a member that the wire cannot express.
func (e *encoder) drop(path string) {
	if len(e.dropped) < wire.MaxDropped {
		e.dropped = append(e.dropped, path)
	}
}

func (e *encoder) free(name string) bool { return !wire.Named(e.req.Overrides, name) }

// has reports whether the server has not refused the feature.
func (e *encoder) has(feature string) bool { return !slices.Contains(e.opts.Without, feature) }

func (e *encoder) include(dst []byte) []byte {
	given := wire.MemberValue(e.req.Overrides, "include")
	list, found := []byte{'['}, false
	for el := range rawjson.Elements(given) {
		if rawjson.EqualKey(el, includeEncrypted) {
			if found = true; !e.has(FeatureEncrypted) {
				continue
			}
		}
		list = append(appendComma(list), el...)
	}
	if !found && e.has(FeatureEncrypted) {
		list = rawjson.AppendQuote(appendComma(list), includeEncrypted)
	}
	if len(list) == 1 {
		return dst
	}
	return append(append(wire.AppendKey(dst, "include"), list...), ']')
}

func (e *encoder) sampling(dst []byte) []byte {
	s := &e.req.Sampling
	for _, m := range [...]struct {
		name string
		v    *float64
	}{{"temperature", s.Temperature}, {"top_p", s.TopP}, {"presence_penalty", s.PresencePenalty}, {"frequency_penalty", s.FrequencyPenalty}} {
		if m.v != nil && e.free(m.name) {
			dst = appendFloat(dst, m.name, *m.v)
		}
	}
	if s.MaxTokens != nil && e.free("max_output_tokens") {
		dst = appendInt(dst, "max_output_tokens", int64(*s.MaxTokens))
	}
	for _, m := range [...]struct {
		path string
		set  bool
	}{{"sampling.seed", s.Seed != nil}, {"sampling.stop", len(s.Stop) > 0}, {"sampling.top_k", s.TopK != nil}, {"sampling.reasoning_budget", s.ReasoningBudget != nil}} {
		if m.set {
			e.drop(m.path)
		}
	}
	dst = e.reasoning(dst)
	return e.text(dst)
}

// appendObject appends a member whose value is an object of the members own, followed by those of an override of the same name.
func (e *encoder) appendObject(dst []byte, name string, own []byte) []byte {
	own = wire.AppendMembers(own, members(wire.MemberValue(e.req.Overrides, name)), func(name string) bool {
		_, twice := rawjson.Get(append(slices.Clip(own), '}'), name)
		return twice
	})
	if len(own) == 1 {
		return dst
	}
	return append(append(wire.AppendKey(dst, name), own...), '}')
}

func (e *encoder) reasoning(dst []byte) []byte {
	own := []byte{'{'}
	if effort := e.req.Sampling.ReasoningEffort; effort != "" {
		own = wire.AppendText(own, "effort", effort)
	}
	if summary := e.req.Sampling.ReasoningSummary; summary != "" {
		own = wire.AppendText(own, "summary", summary)
	}
	return e.appendObject(dst, "reasoning", own)
}

// text appends the response format. Its json_schema is flat on this wire, where chat completions has a nested object.
func (e *encoder) text(dst []byte) []byte {
	own := []byte{'{'}
	switch format := e.req.Sampling.ResponseFormat; text(format, "type") {
	case "":
		if len(format) > 0 {
			e.drop("sampling.response_format")
		}
	case "json_schema":
		inner := get(format, "json_schema")
		own = append(own, `"format":{"type":"json_schema"`...)
		if get(inner, "name") == nil {
			own = wire.AppendText(own, "name", "answer")
		}
		own = append(wire.AppendMembers(own, members(inner, "type"), nil), '}')
	default:
		own = rawjson.AppendCompact(append(own, `"format":`...), format)
	}
	return e.appendObject(dst, "text", own)
}

// input appends instructions and input. If the first message is a system message of one text, it becomes the instructions,
// unless the input would then be empty.
func (e *encoder) input(dst []byte) []byte {
	messages := e.req.Messages
	first := 0
	if len(messages) > 1 && messages[0].Role == lathe.RoleSystem && len(messages[0].Parts) == 1 && len(messages[0].Extra) == 0 {
		if t, ok := messages[0].Parts[0].(lathe.Text); ok && len(t.Extra) == 0 && t.Text != "" {
			e.speaker(&messages[0], "messages[0]")
			dst, first = wire.AppendText(dst, "instructions", t.Text), 1
		}
	}
	dst = append(wire.AppendKey(dst, "input"), '[')
	for i := first; i < len(messages); i++ {
		if messages[i].Role == "" {
			continue // it is part of another: see [wire.Fit] and [destination.Conversation]
		}
		dst = e.message(dst, &messages[i], "messages["+strconv.Itoa(i)+"]")
	}
	return append(dst, ']')
}

func (e *encoder) speaker(m *lathe.Message, at string) {
	if m.Name != "" {
		e.drop(at + ".name")
	}
}

// own reports whether the raw JSON in a message was received on this wire.
func own(m *lathe.Message) bool { return m.Wire == lathe.WireResponses }

func (e *encoder) message(dst []byte, m *lathe.Message, at string) []byte {
	switch m.Role {
	case lathe.RoleAssistant:
		return e.answer(dst, m, at)
	case lathe.RoleTool:
		return e.result(dst, m, at)
	case lathe.RoleSystem, lathe.RoleDeveloper, lathe.RoleUser:
	}
	e.speaker(m, at)
	dst = wire.AppendText(append(appendComma(dst), `{"type":"message"`...), "role", string(m.Role))
	dst = wire.AppendKey(dst, "content")
	if t, ok := plain(m.Parts); ok {
		dst = rawjson.AppendQuote(dst, t)
	} else {
		dst = append(e.parts(append(dst, '['), m.Parts, own(m), at+".parts"), ']')
	}
	if own(m) {
		dst = wire.AppendMembers(dst, m.Extra, knownInItem)
	} else {
		e.members(m.Extra, at)
	}
	return append(dst, '}')
}

// members records members of another wire as dropped.
func (e *encoder) members(extra []lathe.Member, at string) {
	for i := range extra {
		e.drop(at + "." + extra[i].Name)
	}
}

func knownInItem(name string) bool {
	switch name {
	case "type", "role", "content", "id", "status", "call_id", "name", "namespace", "arguments", "input", "output", wire.ItemMember:
		return true
	}
	return false
}

// plain returns the text of content that can be encoded as one string.
func plain(parts []lathe.Part) (string, bool) {
	if len(parts) == 0 {
		return "", true
	}
	t, ok := parts[0].(lathe.Text)
	return t.Text, ok && len(parts) == 1 && len(t.Extra) == 0
}

// parts appends the content of an input message.
func (e *encoder) parts(dst []byte, parts []lathe.Part, own bool, at string) []byte {
	for i, p := range parts {
		ok := true
		switch p := p.(type) {
		case lathe.Text:
			if p.Text == "" && len(p.Extra) == 0 {
				continue
			}
			dst = append(appendComma(dst), `{"type":"input_text"`...)
			dst = wire.AppendText(dst, "text", p.Text)
			dst = append(e.textExtra(dst, p.Extra, own, at, i), '}')
		case lathe.Refusal:
			dst = append(appendComma(dst), `{"type":"input_text"`...)
			dst = append(wire.AppendText(dst, "text", p.Text), '}')
		case lathe.Blob:
			dst, ok = appendBlob(dst, &p, own)
		case lathe.Opaque:
			if ok = own; ok {
				dst = append(appendComma(dst), p.JSON...)
			}
		case lathe.Reasoning, lathe.ToolCall, lathe.ToolResult:
			ok = false
		}
		if !ok {
			e.drop(at + "[" + strconv.Itoa(i) + "]")
		}
	}
	return dst
}

// textExtra appends the unknown members of a part with text, or records them as dropped if they are of another wire.
func (e *encoder) textExtra(dst []byte, extra []lathe.Member, own bool, at string, i int) []byte {
	if own {
		return wire.AppendMembers(dst, extra, func(name string) bool { return name == "type" || name == "text" || name == "phase" })
	}
	e.members(extra, at+"["+strconv.Itoa(i)+"]")
	return dst
}

// result appends the result of a call.
func (e *encoder) result(dst []byte, m *lathe.Message, at string) []byte {
	for i, p := range m.Parts {
		r, ok := p.(lathe.ToolResult)
		if !ok {
			e.drop(at + ".parts[" + strconv.Itoa(i) + "]")
			continue
		}
		id, typ := CallID(r.CallID), "function_call_output"
		if item := sentAsItem(own(m), m.Extra, id); item != nil {
			dst = append(appendComma(dst), item...)
			continue
		}
		if e.texts[r.CallID] {
			typ = "custom_tool_call_output"
		}
		dst = wire.AppendText(append(appendComma(dst), '{'), "type", typ)
		dst = wire.AppendText(dst, "call_id", id)
		dst = wire.AppendKey(dst, "output")
		if len(r.Blobs) == 0 && (len(r.Extra) == 0 || !own(m)) {
			dst = rawjson.AppendQuote(dst, r.Content)
			e.resultExtra(r.Extra, at, i)
		} else {
			parts := make([]lathe.Part, 0, 1+len(r.Blobs))
			parts = append(parts, lathe.Text{Text: r.Content, Extra: r.Extra})
			for i := range r.Blobs {
				parts = append(parts, r.Blobs[i])
				if !sendsBlob(&r.Blobs[i], own(m)) {
					parts = append(parts, lathe.Text{Text: wire.BlobNote(&r.Blobs[i])})
				}
			}
			dst = append(e.parts(append(dst, '['), parts, own(m), at+".parts["+strconv.Itoa(i)+"].content"), ']')
		}
		if own(m) {
			dst = wire.AppendMembers(dst, m.Extra, knownInItem)
		} else {
			e.members(m.Extra, at)
		}
		dst = append(dst, '}')
	}
	return dst
}

func (e *encoder) resultExtra(extra []lathe.Member, at string, i int) {
	e.members(extra, at+".parts["+strconv.Itoa(i)+"]")
}
