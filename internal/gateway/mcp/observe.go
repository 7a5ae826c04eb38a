package mcp

import (
	"context"
	"errors"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe/event"
)

// observed returns the middleware that reports each request to the observers, when it starts and when it ends.
func (t *tenant) observed(observers []event.MCPObserver) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			op := t.operation(ctx, method, req)
			for _, o := range observers {
				ctx = o.MCPStarted(ctx, op)
			}
			res, err := next(ctx, method, req)
			op.Ended = t.s.opts.Now()
			op.Code, op.Failure = outcomeOf(res, err)
			if r, ok := res.(*mcp.InitializeResult); ok && r != nil {
				op.Protocol = r.ProtocolVersion
			}
			for _, o := range observers {
				o.MCPEnded(ctx, op)
			}
			return res, err
		}
	}
}

// operation describes a request for the observers. The name of a tool that the caller cannot see is replaced by "unknown", since clients
// can send any text as a name.
func (t *tenant) operation(ctx context.Context, method string, req mcp.Request) *event.MCPOperation {
	op := &event.MCPOperation{Server: true, Method: method, Transport: "tcp", Began: t.s.opts.Now()}
	if isStdio(ctx) {
		op.Transport = "pipe"
	}
	if session := req.GetSession(); session != nil {
		op.Session = session.ID()
	}
	var meta mcp.Meta
	if call, ok := req.(*mcp.CallToolRequest); ok && call.Params != nil {
		op.Tool, meta = "unknown", call.Params.Meta
		if t.offer(call.Params.Name) != nil {
			op.Tool = call.Params.Name
		}
		op.Protocol = protocolOf(call.ProtocolVersion(), meta)
	}
	op.Parent.Parent, _ = meta["traceparent"].(string)
	op.Parent.State, _ = meta["tracestate"].(string)
	op.Parent.Baggage, _ = meta["baggage"].(string)
	return op
}

func outcomeOf(res mcp.Result, err error) (code int, failure string) {
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return int(e.Code), strconv.FormatInt(e.Code, 10)
	}
	if err != nil {
		return 0, event.MCPFailure(err)
	}
	if r, ok := res.(*mcp.CallToolResult); ok && r != nil && r.IsError {
		return 0, "tool_error"
	}
	return 0, ""
}
