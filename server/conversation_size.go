package server

import (
	"bytes"
	"context"
	"net/http"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gateway/memory"
	problems "github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// checkSize returns a problem if a conversation has more messages, parts or tool calls than the limits allow, which bounds
// the work before a run more tightly than the size of the body does. It also reserves the memory of the conversation. It is
// called for the conversation in the body, and for the one that the model gets.
func (co *core) checkSize(ctx context.Context, c *caller, messages []lathe.Message) *problem {
	if p := gone(ctx); p != nil {
		return p
	}
	parts, calls := 0, 0
	for _, m := range messages {
		for _, part := range m.Parts {
			if _, ok := part.(lathe.ToolCall); ok {
				calls++
			} else {
				parts++
			}
		}
	}
	l := &co.opts.Limits
	for _, n := range []struct {
		what, setting string
		have, most    int
	}{
		{"messages", "serve.max_messages", len(messages), l.MaxMessages},
		{"message parts", "serve.max_parts", parts, l.MaxParts},
		{"tool calls", "serve.max_calls", calls, l.MaxCalls},
	} {
		if n.have > n.most {
			return problems.New(http.StatusRequestEntityTooLarge, "request_too_large", "The request has %d %s; this gateway takes %d at most (%s). Send a shorter conversation, or raise the limit.", n.have, n.what, n.most, n.setting).WithParam("messages")
		}
	}
	return c.reserved.Converse(memory.SizeOf(messages))
}

// statusClientGone is the status that is logged for a request whose client closed the connection before the response.
const statusClientGone = 499

// gone returns a problem if the client has left, which ends the work on its request.
func gone(ctx context.Context) *problem {
	if ctx.Err() == nil {
		return nil
	}
	return problems.New(statusClientGone, "client_gone", "The client closed the connection.")
}

// checkElements returns a problem if the body has more tools, or more elements in its conversation, than the limits allow.
// It counts elements in the text of the body before it is parsed, and stops at the first one too many: so parsing costs
// time and memory in proportion to the limits, not to the size of the body. conversation and tools are the names of the
// members to count in. The body may be invalid JSON.
func checkElements(l *Limits, body []byte, conversation, tools string) *problem {
	most := l.MaxMessages + l.MaxParts + l.MaxCalls // each element becomes at least one message, part or call
	if !hasMoreObjects(body, min(most, l.MaxTools)) {
		return nil
	}
	for key, v := range rawjson.Members(body) {
		switch {
		case rawjson.EqualKey(key, tools):
			if hasMoreElements(v, l.MaxTools, "functionDeclarations", "function_declarations", "tools") {
				return tooLarge(tools, "more than %d tools (serve.max_tools)", l.MaxTools)
			}
		case rawjson.EqualKey(key, conversation):
			if hasMoreElements(v, most, "content", "parts", "tool_calls") {
				return tooLarge(conversation, "more than %d messages, parts and tool calls together (the sum of serve.max_messages, serve.max_parts and serve.max_calls)", most)
			}
		}
	}
	return nil
}

// hasMoreObjects reports whether a JSON text may contain more than most objects: whether it has more braces.
func hasMoreObjects(text []byte, most int) bool { return bytes.Count(text, []byte{'{'}) > most }

// tooLarge returns the problem of a body with too many elements; format completes "The request has".
func tooLarge(param, format string, args ...any) *problem {
	return problems.New(http.StatusRequestEntityTooLarge, "request_too_large", "The request has "+format+". Send fewer, or raise the limit.", args...).WithParam(param)
}

// hasMoreElements reports whether an array of objects has more than most elements. An element that has arrays in the members
// inner counts as the number of their elements, but at least one. A message with the role tool counts as one.
func hasMoreElements(array []byte, most int, inner ...string) bool {
	if !hasMoreObjects(array, most) {
		return false
	}
	n := 0
	for el := range rawjson.Elements(array) {
		before := n
		isResult := rawjson.TextAt(el, "role") == "tool"
		for key, v := range rawjson.Members(el) {
			if isResult || !slices.ContainsFunc(inner, func(name string) bool { return rawjson.EqualKey(key, name) }) {
				continue
			}
			for range rawjson.Elements(v) {
				if n++; n > most {
					return true
				}
			}
		}
		if n = max(n, before+1); n > most {
			return true
		}
	}
	return false
}
