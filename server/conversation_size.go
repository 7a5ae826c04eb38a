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

// checkSize refuses a conversation with more messages, parts or tool calls than the limits allow, so
// that the work before a run is bounded by more than the size of the body, and reserves the memory of the conversation. It is called
// for the conversation of the body, and for the one that the model receives.
func (co *core) checkSize(ctx context.Context, c *caller, messages []lathe.Message) *problem {
	if p := gone(ctx); p != nil {
		return p
	}
	parts, calls := 0, 0
	for i := range messages {
		for _, part := range messages[i].Parts {
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
			return problems.New(http.StatusRequestEntityTooLarge, "request_too_large", "The request has %d %s; this server takes %d at most (%s). Send a shorter conversation, or raise the limit.", n.have, n.what, n.most, n.setting).WithParam("messages")
		}
	}
	return c.reserved.Converse(memory.SizeOf(messages))
}

// statusClientGone is what the log says of a request whose client closed the connection before it was
// answered. No client reads it.
const statusClientGone = 499

// gone ends the work on a request whose client has left.
func gone(ctx context.Context) *problem {
	if ctx.Err() == nil {
		return nil
	}
	return problems.New(statusClientGone, "client_gone", "The client closed the connection.")
}

// checkElements refuses a body with more tools, or more elements in its conversation, than the limits allow. It counts them in
// the text of the body, before that is parsed, and stops at the first one too many: what follows costs time and memory in
// proportion to the limits, and not to the size of the body. conversation and tools are the members that have them. The body
// may be anything.
func (co *core) checkElements(body []byte, conversation, tools string) *problem {
	l := &co.opts.Limits
	most := l.MaxMessages + l.MaxParts + l.MaxCalls                                     // each element becomes at least one of them
	few := func(v []byte, most int) bool { return bytes.Count(v, []byte{'{'}) <= most } // each tool and each element is an object
	if few(body, min(most, l.MaxTools)) {
		return nil
	}
	for key, v := range rawjson.Members(body[rawjson.SkipSpace(body, 0):]) {
		switch {
		case rawjson.EqualKey(key, tools):
			if !few(v, l.MaxTools) && !atMost(v, l.MaxTools, "functionDeclarations", "function_declarations", "tools") {
				return tooLarge(tools, "more than %d tools (serve.max_tools)", l.MaxTools)
			}
		case rawjson.EqualKey(key, conversation):
			if !few(v, most) && !atMost(v, most, "content", "parts", "tool_calls") {
				return tooLarge(conversation, "more than %d messages, parts and tool calls together (the sum of serve.max_messages, serve.max_parts and serve.max_calls)", most)
			}
		}
	}
	return nil
}

func tooLarge(param, format string, args ...any) *problem {
	return problems.New(http.StatusRequestEntityTooLarge, "request_too_large", "The request has "+format+". Send fewer, or raise the limit.", args...).WithParam(param)
}

// atMost reports whether an array has no more than most elements. An element with arrays in the members inner counts as many as
// they have, and at least one. The content of a tool's result counts as one.
func atMost(array []byte, most int, inner ...string) bool {
	n := 0
	for el := range rawjson.Elements(array) {
		before := n
		role, _ := rawjson.Get(el, "role")
		for key, v := range rawjson.Members(el) {
			if rawjson.EqualKey(role, "tool") || !slices.ContainsFunc(inner, func(name string) bool { return rawjson.EqualKey(key, name) }) {
				continue
			}
			for range rawjson.Elements(v) {
				if n++; n > most {
					return false
				}
			}
		}
		if n = max(n, before+1); n > most {
			return false
		}
	}
	return true
}
