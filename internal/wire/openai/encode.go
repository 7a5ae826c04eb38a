package openai

import (
	"cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// reserved reports whether a name is that of a member of a request that Request.Overrides cannot replace.
var reserved = rawjson.NewNames("model", "messages", "tools", "tool_choice", "response_format", "stream").Has

// appendHead appends a request up to and including the opening bracket of messages, which are the last member, so that an encoded
// conversation grows at its end. An override replaces the member that Sampling would set. The paths of members of the tools that are not
// sent are returned.
func appendHead(dst wire.JSON, req *lathe.Request, opts *EncodeOptions) (_ wire.JSON, dropped []string) {
	taken := func(name string) bool { return wire.Named(req.Overrides, name) }
	dst = dst.Lit("{").OptStr("model", req.Model)
	if opts.Stream {
		dst = dst.Bool("stream", true).If(opts.IncludeUsage && !taken("stream_options"), `,"stream_options":{"include_usage":true}`)
	}
	dst = appendSampling(dst, &req.Sampling, opts, taken)
	if len(req.Tools)+len(req.HostedTools) > 0 {
		dst, dropped = appendTools(dst.Key("tools"), req, opts)
		if req.ToolChoice.Mode != "" {
			dst = appendToolChoice(dst.Key("tool_choice"), req.ToolChoice)
		}
		dst = dst.FieldsExcept(taken, "parallel_tool_calls", req.ParallelToolCalls)
	}
	return dst.FieldsExcept(taken, "user", wire.Optional(req.User)).Extra(req.Overrides, reserved).Arr("messages"), dropped
}

func appendSampling(dst wire.JSON, s *lathe.Sampling, opts *EncodeOptions, taken func(string) bool) wire.JSON {
	var topK *int
	if opts.TopK {
		topK = s.TopK
	}
	limit := "max_tokens"
	if opts.MaxCompletionTokens {
		limit = "max_completion_tokens"
	}
	dst = dst.FieldsExcept(taken, "temperature", s.Temperature, "top_p", s.TopP, "top_k", topK, "presence_penalty", s.PresencePenalty,
		"frequency_penalty", s.FrequencyPenalty, limit, s.MaxTokens, "seed", s.Seed, "stop", s.Stop, "reasoning_effort", wire.Optional(s.ReasoningEffort))
	if len(s.ResponseFormat) > 0 {
		dst = dst.Key("response_format").Compact(s.ResponseFormat)
	}
	return dst
}

// AppendMessages appends messages, separated by commas. dst must be empty or end with a head or a message. Messages without a role are
// omitted. opts may be nil.
//
// Tool calls are sent unchanged, with two exceptions: arguments that are not a JSON object are replaced (see [wire.SentArguments]), and
// characters of a name that the wire does not allow are replaced. The wire has no members for the name, code and error mark of a result.
// Parts and members of messages from another wire for which this wire has no form are not sent.
func AppendMessages(dst wire.JSON, msgs []lathe.Message, opts *EncodeOptions) wire.JSON {
	if opts == nil {
		opts = &EncodeOptions{}
	}
	for i := range msgs {
		if msgs[i].Role == "" {
			continue // not sent; see [wire.Fit] and [destination.Conversation]
		}
		if n := len(dst); n > 0 && dst[n-1] == '}' {
			dst = dst.Lit(",")
		}
		dst = appendMessage(dst, &msgs[i], opts, toServer)
	}
	return dst
}

// knownInMessage reports whether a name is that of a member of a message that has a field or a part in the internal form.
var knownInMessage = rawjson.NewNames("role", "content", "name", "refusal", "tool_calls", "tool_call_id", "function_call").Has

// A recipient is for whom a message is encoded.
type recipient uint8

const (
	toServer recipient = iota // a message of a request
	toClient                  // the message of an answer
)

// appendMessage appends a message.
func appendMessage(dst wire.JSON, m *lathe.Message, opts *EncodeOptions, to recipient) wire.JSON {
	alien := foreign(m.Wire)
	extra := m.Extra
	if alien {
		extra = nil
	}
	known := knownInMessage
	if to == toServer && ofOther(m, opts) {
		known = knownOrProtected
	}
	dst = dst.Lit(`{"role":`).Quote(string(m.Role)).OptStr("name", m.Name)
	if r, ok := toolResult(m); ok {
		dst = dst.Str("tool_call_id", r.CallID)
		if len(r.Blobs) == 0 && len(r.Extra) == 0 {
			dst = dst.Str("content", r.Content)
		} else {
			dst = appendContent(dst.Key("content"), resultParts(r, alien), alien)
		}
		return dst.Members(extra, known).Lit("}")
	}
	has := shape(m)
	dst = appendContent(dst.Key("content"), m.Parts, alien)
	if has.refusal {
		dst = dst.Key("refusal")
		dst = appendJoined(dst, m.Parts, func(p lathe.Part) (string, bool) { r, ok := p.(lathe.Refusal); return r.Text, ok })
	}
	written := ""
	if has.reasoning && opts.ReasoningField != "" {
		dst, written = appendReasoning(dst, m, opts, to)
	}
	if has.calls {
		dst = dst.Arr("tool_calls")
		for _, p := range m.Parts {
			if c, ok := p.(lathe.ToolCall); ok {
				if alien {
					c.Extra = nil
				}
				dst = appendCall(dst.Next(), &c, to)
			}
		}
		dst = dst.Lit("]")
	}
	return dst.Members(extra, func(name string) bool { return known(name) || name == written }).Lit("}")
}

type parts struct{ refusal, reasoning, calls bool }

// shape returns which kinds of parts a message has.
func shape(m *lathe.Message) parts {
	var has parts
	for _, p := range m.Parts {
		switch p.(type) {
		case lathe.Refusal:
			has.refusal = true
		case lathe.Reasoning:
			has.reasoning = true
		case lathe.ToolCall:
			has.calls = true
		case lathe.Text, lathe.Blob, lathe.Opaque: // content
		case lathe.ToolResult: // a separate message
		}
	}
	return has
}

func toolResult(m *lathe.Message) (lathe.ToolResult, bool) {
	for _, p := range m.Parts {
		if r, ok := p.(lathe.ToolResult); ok {
			return r, true
		}
	}
	return lathe.ToolResult{}, false
}

func resultParts(r lathe.ToolResult, alien bool) []lathe.Part {
	ps := []lathe.Part{lathe.Text{Text: r.Content, Extra: r.Extra}}
	for i := range r.Blobs {
		ps = append(ps, r.Blobs[i])
		if alien && !sendsBlob(&r.Blobs[i]) {
			ps = append(ps, lathe.Text{Text: "\n" + wire.BlobNote(&r.Blobs[i])})
		}
	}
	return ps
}

// appendReasoning appends the reasoning of a message as one member, and returns the name of that member. In a request, only reasoning that
// sendsReasoning accepts is included.
func appendReasoning(dst wire.JSON, m *lathe.Message, opts *EncodeOptions, to recipient) (wire.JSON, string) {
	sent := func(p lathe.Part) (lathe.Reasoning, bool) {
		r, ok := p.(lathe.Reasoning)
		return r, ok && (to == toClient || sendsReasoning(m, &r, opts))
	}
	field, found := "", false // field is the member in which the reasoning was received
	for _, p := range m.Parts {
		if r, ok := sent(p); ok {
			field, found = cmp.Or(field, r.Field), true
		}
	}
	switch {
	case !found:
		return dst, ""
	case opts.ReasoningField != ReasoningSame:
		field = opts.ReasoningField
	case foreign(m.Wire) && !ownField(field):
		field = defaultReasoningField // the field of the other wire is not valid here
	case field == "" || knownInMessage(field):
		return dst, ""
	}
	dst = dst.Key(field)
	return appendJoined(dst, m.Parts, func(p lathe.Part) (string, bool) { r, ok := sent(p); return r.Text, ok }), field
}

// appendJoined appends one string with the texts that pick returns.
func appendJoined(dst wire.JSON, ps []lathe.Part, pick func(lathe.Part) (string, bool)) wire.JSON {
	dst = dst.Lit(`"`)
	for _, p := range ps {
		if s, ok := pick(p); ok {
			start := len(dst) - 1
			last := dst[start]
			dst = dst[:start].Quote(s) // the opening quote overwrites the last byte, which is then restored
			dst[start] = last
			dst = dst[:len(dst)-1]
		}
	}
	return dst.Lit(`"`)
}

func appendCall(dst wire.JSON, c *lathe.ToolCall, to recipient) wire.JSON {
	dst = dst.Lit(`{"id":`).Quote(c.ID).Lit(`,"type":"function","function":{"name":`).Quote(callName(c.Name)).Lit(`,"arguments":`)
	if to == toClient && (c.Arguments != "" || c.Incomplete) {
		dst = dst.Quote(c.Arguments)
	} else {
		dst = dst.Quote(wire.SentText(c.Arguments)) // {} for empty arguments, which clients could not parse
	}
	return appendExtraInner(dst, c.Extra, knownInFunction).Lit("}").Members(c.Extra, knownInCall).Lit("}")
}

// Sendable reports whether servers accept the arguments of a call unchanged.
func Sendable(args string) bool { return wire.Sendable([]byte(args)) }

// knownInCall reports whether a name is that of a member of a call that has a field in the internal form, or that has no meaning in a request.
var knownInCall = rawjson.NewNames("id", "type", "function", "index").Has
