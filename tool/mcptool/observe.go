package mcptool

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/httpname"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// observed returns the middleware that reports each request of the connection to the observers.
func (x *session) observed(s *supervisor) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			op := &event.MCPOperation{Method: method, Transport: "pipe", Began: s.opts.Now()}
			if s.conf.URL != "" {
				op.Transport, op.Address = "tcp", addressOf(s.conf.URL)
			}
			r := requestOf(ctx)
			if r != nil {
				op.Tool = r.tool
			}
			for _, o := range s.opts.Observers {
				ctx = o.MCPStarted(ctx, op)
			}
			res, err := next(ctx, method, req)
			op.Ended = s.opts.Now()
			if session, ok := req.GetSession().(*mcp.ClientSession); ok && session != nil {
				op.Session = session.ID()
				if init := session.InitializeResult(); init != nil {
					op.Protocol = init.ProtocolVersion
				}
			}
			if r != nil { // the tap has read the server's answer; the protocol library gets a stub
				got := x.tap.state(r)
				op.RequestID = got.id
				op.Code, op.Failure = got.outcome()
			}
			if op.Failure == "" && err != nil {
				op.Code, op.Failure = outcomeOf(err)
			}
			if op.Failure == "cancelled" && errors.Is(context.Cause(ctx), errIdle) {
				op.Failure = "timeout"
			}
			for _, o := range s.opts.Observers {
				o.MCPEnded(ctx, op)
			}
			return res, err
		}
	}
}

// outcome returns the JSON-RPC error code of the answer and the failure, in the form of [event.MCPOperation].
func (r *request) outcome() (code int, failure string) {
	switch {
	case len(r.fault) > 0:
		n, err := strconv.Atoi(string(rawjson.At(r.fault, "code")))
		if err != nil {
			return 0, "other"
		}
		return n, strconv.Itoa(n)
	case r.err != nil:
		return 0, "other"
	case string(rawjson.At(r.result, "isError")) == "true":
		return 0, "tool_error"
	}
	return 0, ""
}

func outcomeOf(err error) (code int, failure string) {
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return int(e.Code), strconv.FormatInt(e.Code, 10)
	}
	return 0, event.MCPFailure(err)
}

// addressOf returns host:port of a URL.
func addressOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	_, server, _ := strings.Cut(httpname.Origin(u), "://")
	return server
}
