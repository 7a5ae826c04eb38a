package openai

import (
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// reserved are the members of a request that Request.Overrides cannot replace.
func reserved(name string) bool {
	switch name {
	case "model", "messages", "tools", "tool_choice", "response_format", "stream":
		return true
	}
	return false
}

// AppendRequest appends the body of a request. opts may be nil.
func AppendRequest(dst []byte, req *lathe.Request, opts *EncodeOptions) []byte {
	dst = AppendHead(dst, req, opts)
	dst = AppendMessages(dst, req.Messages, opts)
	return AppendTail(dst)
}

// AppendHead appends a request up to and with the bracket that opens messages, which come last: a
// conversation grows by appending. An override replaces the member that Sampling would send.
func AppendHead(dst []byte, req *lathe.Request, opts *EncodeOptions) []byte {
	dst, _ = appendHead(dst, req, opts)
	return dst
}

// appendHead is AppendHead. It also returns the paths of what is not sent of the tools.
func appendHead(dst []byte, req *lathe.Request, opts *EncodeOptions) (_ []byte, dropped []string) {
	if opts == nil {
		opts = &EncodeOptions{}
	}
	free := func(name string) bool { return !wire.Named(req.Overrides, name) }
	dst = append(dst, '{')
	if req.Model != "" {
		dst = wire.AppendText(dst, "model", req.Model)
	}
	if opts.Stream {
		dst = append(wire.AppendKey(dst, "stream"), "true"...)
		if opts.IncludeUsage && free("stream_options") {
			dst = append(dst, `,"stream_options":{"include_usage":true}`...)
		}
	}
	dst = appendSampling(dst, &req.Sampling, opts, free)
	if len(req.Tools)+len(req.HostedTools) > 0 {
		dst, dropped = appendTools(wire.AppendKey(dst, "tools"), req, opts)
		if req.ToolChoice.Mode != "" {
			dst = appendToolChoice(wire.AppendKey(dst, "tool_choice"), req.ToolChoice)
		}
		if req.ParallelToolCalls != nil && free("parallel_tool_calls") {
			dst = strconv.AppendBool(wire.AppendKey(dst, "parallel_tool_calls"), *req.ParallelToolCalls)
		}
	}
	if req.User != "" && free("user") {
		dst = wire.AppendText(dst, "user", req.User)
	}
	dst = wire.AppendExtra(dst, req.Overrides, reserved)
	return append(wire.AppendKey(dst, "messages"), '['), dropped
}

func appendSampling(dst []byte, s *lathe.Sampling, opts *EncodeOptions, free func(string) bool) []byte {
	if s.Temperature != nil && free("temperature") {
		dst = wire.AppendFloat(wire.AppendKey(dst, "temperature"), *s.Temperature)
	}
	if s.TopP != nil && free("top_p") {
		dst = wire.AppendFloat(wire.AppendKey(dst, "top_p"), *s.TopP)
	}
	if s.TopK != nil && opts.TopK && free("top_k") {
		dst = strconv.AppendInt(wire.AppendKey(dst, "top_k"), int64(*s.TopK), 10)
	}
	if s.PresencePenalty != nil && free("presence_penalty") {
		dst = wire.AppendFloat(wire.AppendKey(dst, "presence_penalty"), *s.PresencePenalty)
	}
	if s.FrequencyPenalty != nil && free("frequency_penalty") {
		dst = wire.AppendFloat(wire.AppendKey(dst, "frequency_penalty"), *s.FrequencyPenalty)
	}
	if s.MaxTokens != nil {
		name := "max_tokens"
		if opts.MaxCompletionTokens {
			name = "max_completion_tokens"
		}
		if free(name) {
			dst = strconv.AppendInt(wire.AppendKey(dst, name), int64(*s.MaxTokens), 10)
		}
	}
	if s.Seed != nil && free("seed") {
		dst = strconv.AppendInt(wire.AppendKey(dst, "seed"), *s.Seed, 10)
	}
	if len(s.Stop) > 0 && free("stop") {
		dst = append(wire.AppendKey(dst, "stop"), '[')
		for i, stop := range s.Stop {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = rawjson.AppendQuote(dst, stop)
		}
		dst = append(dst, ']')
	}
	if s.ReasoningEffort != "" && free("reasoning_effort") {
		dst = wire.AppendText(dst, "reasoning_effort", s.ReasoningEffort)
	}
	if len(s.ResponseFormat) > 0 {
		dst = rawjson.AppendCompact(wire.AppendKey(dst, "response_format"), s.ResponseFormat)
	}
	return dst
}

// AppendTail appends what closes a request.
func AppendTail(dst []byte) []byte { return append(dst, "]}"...) }

// AppendMessages appends messages to dst, which is empty or ends with a head or a message, with the commas between them. It omits
// messages without a role. opts may be nil.
//
// A tool call is sent as it is, with two exceptions: arguments that are not a JSON object are replaced
// (see [wire.SentArguments]), and a name that the wire does not allow is sent with the offending characters
// replaced. The result's name, code and error mark have no place on the wire. Of messages that were read from another
// wire, what this wire has no form for is not sent.
func AppendMessages(dst []byte, msgs []lathe.Message, opts *EncodeOptions) []byte {
	if opts == nil {
		opts = &EncodeOptions{}
	}
	for i := range msgs {
		if msgs[i].Role == "" {
			continue // see [wire.Fit] and [destination.Conversation]
		}
		if n := len(dst); n > 0 && dst[n-1] == '}' {
			dst = append(dst, ',')
		}
		dst = appendMessage(dst, &msgs[i], opts, false)
	}
	return dst
}

// knownInMessage are the members of a message that its fields and parts stand for.
func knownInMessage(name string) bool {
	switch name {
	case "role", "content", "name", "refusal", "tool_calls", "tool_call_id", "function_call":
		return true
	}
	return false
}

// appendMessage appends a message of a request, or that of an answer.
func appendMessage(dst []byte, m *lathe.Message, opts *EncodeOptions, answer bool) []byte {
	alien := foreign(m.Wire)
	extra := m.Extra
	if alien {
		extra = nil
	}
	known := knownInMessage
	if !answer && ofOther(m, opts) {
		known = knownOrProtected
	}
	dst = append(dst, `{"role":`...)
	dst = rawjson.AppendQuote(dst, string(m.Role))
	if m.Name != "" {
		dst = wire.AppendText(dst, "name", m.Name)
	}
	if r, ok := toolResult(m); ok {
		dst = wire.AppendText(dst, "tool_call_id", r.CallID)
		if len(r.Blobs) == 0 && len(r.Extra) == 0 {
			dst = wire.AppendText(dst, "content", r.Content)
		} else {
			dst = appendContent(wire.AppendKey(dst, "content"), resultParts(r, alien), false, alien)
		}
		dst = wire.AppendMembers(dst, extra, known)
		return append(dst, '}')
	}
	has := shape(m)
	dst = appendContent(wire.AppendKey(dst, "content"), m.Parts, has.calls || has.refusal, alien)
	if has.refusal {
		dst = wire.AppendKey(dst, "refusal")
		dst = appendJoined(dst, m.Parts, func(p lathe.Part) (string, bool) { r, ok := p.(lathe.Refusal); return r.Text, ok })
	}
	written := ""
	if has.reasoning && opts.ReasoningField != "" {
		dst, written = appendReasoning(dst, m, opts, answer)
	}
	if has.calls {
		dst = append(wire.AppendKey(dst, "tool_calls"), '[')
		for _, p := range m.Parts {
			if c, ok := p.(lathe.ToolCall); ok {
				if alien {
					c.Extra = nil
				}
				dst = appendCall(appendComma(dst, '['), &c, answer)
			}
		}
		dst = append(dst, ']')
	}
	dst = wire.AppendMembers(dst, extra, func(name string) bool { return known(name) || name == written })
	return append(dst, '}')
}

type parts struct{ refusal, reasoning, calls bool }

// shape says which kinds of part a message has.
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
		case lathe.ToolResult: // a message of its own
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

// appendReasoning appends the reasoning of a message under one member and returns the member's name. Of a request, only
// the reasoning that may be sent back counts.
func appendReasoning(dst []byte, m *lathe.Message, opts *EncodeOptions, answer bool) ([]byte, string) {
	sends := func(p lathe.Part) (lathe.Reasoning, bool) {
		r, ok := p.(lathe.Reasoning)
		return r, ok && (answer || sendsReasoning(m, &r, opts))
	}
	field, found := "", false
	for _, p := range m.Parts {
		if r, ok := sends(p); ok {
			found = true
			if field == "" {
				field = r.Field
			}
		}
	}
	if opts.ReasoningField != ReasoningSame {
		field = opts.ReasoningField
	} else if found && foreign(m.Wire) && !ownField(field) {
		field = defaultReasoningField // that of its wire has no meaning here
	}
	if !found || field == "" || opts.ReasoningField == ReasoningSame && knownInMessage(field) {
		return dst, ""
	}
	dst = wire.AppendKey(dst, field)
	return appendJoined(dst, m.Parts, func(p lathe.Part) (string, bool) { r, ok := sends(p); return r.Text, ok }), field
}

// appendJoined appends one string of the texts that pick finds.
func appendJoined(dst []byte, ps []lathe.Part, pick func(lathe.Part) (string, bool)) []byte {
	dst = append(dst, '"')
	for _, p := range ps {
		if s, ok := pick(p); ok {
			start := len(dst) - 1
			last := dst[start]
			dst = rawjson.AppendQuote(dst[:start], s) // its opening quote goes where the last byte was
			dst[start] = last
			dst = dst[:len(dst)-1]
		}
	}
	return append(dst, '"')
}

func appendCall(dst []byte, c *lathe.ToolCall, answer bool) []byte {
	dst = append(dst, `{"id":`...)
	dst = rawjson.AppendQuote(dst, c.ID)
	dst = append(dst, `,"type":"function","function":{"name":`...)
	dst = rawjson.AppendQuote(dst, callName(c.Name))
	dst = append(dst, `,"arguments":`...)
	if answer && (c.Arguments != "" || c.Incomplete) {
		dst = rawjson.AppendQuote(dst, c.Arguments)
	} else {
		dst = rawjson.AppendQuote(dst, wire.SentText(c.Arguments)) // {} where the model wrote nothing, which clients could not parse
	}
	dst = append(appendExtraInner(dst, c.Extra, knownInFunction), '}')
	dst = wire.AppendMembers(dst, c.Extra, knownInCall)
	return append(dst, '}')
}

// Sendable reports whether servers take the arguments of a call as they are.
func Sendable(args string) bool { return wire.Sendable([]byte(args)) }

// knownInCall are the members of a call that its fields stand for, and those that mean nothing in a request.
func knownInCall(name string) bool {
	switch name {
	case "id", "type", "function", "index":
		return true
	}
	return false
}
