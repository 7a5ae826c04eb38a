package server

import (
	"context"
	"fmt"
	"net/http"

	"github.com/lathe-run/lathe"
)

// checkSize refuses a conversation with more messages, parts or tool calls than the limits allow, so
// that the work before a run is bounded by more than the size of the body.
func (co *core) checkSize(ctx context.Context, messages []lathe.Message) *problem {
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
	for _, c := range []struct {
		what, setting string
		have, most    int
	}{
		{"messages", "serve.max_messages", len(messages), l.MaxMessages},
		{"message parts", "serve.max_parts", parts, l.MaxParts},
		{"tool calls", "serve.max_calls", calls, l.MaxCalls},
	} {
		if c.have > c.most {
			return &problem{Status: http.StatusRequestEntityTooLarge, Code: "request_too_large", Param: "messages",
				Message: fmt.Sprintf("The request has %d %s; this server takes %d at most (%s).", c.have, c.what, c.most, c.setting)}
		}
	}
	return nil
}

// statusClientGone is what the log says of a request whose client closed the connection before it was
// answered. No client reads it.
const statusClientGone = 499

// gone ends the work on a request whose client has left.
func gone(ctx context.Context) *problem {
	if ctx.Err() == nil {
		return nil
	}
	return &problem{Status: statusClientGone, Code: "client_gone", Message: "The client closed the connection."}
}
