package event

import (
	"context"
	"errors"
	"time"
)

// An MCPOperation describes one request of the Model Context Protocol, as its client or its server sees it. It contains neither the
// arguments nor the result of the request. Ended, Code and Failure are set only when [MCPObserver].MCPEnded is called.
type MCPOperation struct {
	// Server says that this process is the server of the request; false: it is the client.
	Server bool
	Method string // such as tools/call
	// Tool is the registered name of the tool that the request is about, or "unknown"; "": the request is not about a tool.
	Tool      string
	Protocol  string // version of the protocol; "": not known
	Session   string // id of the MCP session; "": the request has none
	RequestID string // id of the request, as JSON text; "": not known
	Transport string // "pipe" for stdio, "tcp" for HTTP: the names of OpenTelemetry
	Address   string // host and port of the server; "": this process is the server, or the transport is a pipe
	// Parent is the span in which the client made the request, from the member _meta of the request. It is set if this process is the
	// server.
	Parent       TraceContext
	Began, Ended time.Time
	// Code is the JSON-RPC error code in the response; 0: the response is not an error.
	Code int
	// Failure is "" for a request that succeeded. Otherwise it is the error code in decimal, or "tool_error" (a tool result that is an
	// error), "timeout", "cancelled" or "other".
	Failure string
}

// An MCPObserver observes requests of the Model Context Protocol. A [Sink] may implement it. Its methods may be called by several
// goroutines at once.
type MCPObserver interface {
	// MCPStarted is called before the request is sent (by a client) or executed (by a server). It returns the context with which that is
	// done. Ended, Code and Failure of op are not set yet.
	MCPStarted(ctx context.Context, op *MCPOperation) context.Context
	// MCPEnded is called once for each MCPStarted, with the same op and with a context that is derived from the one that MCPStarted
	// returned.
	MCPEnded(ctx context.Context, op *MCPOperation)
}

// MCPObservers returns the sinks that implement [MCPObserver], in order; nil: none.
func MCPObservers(sinks []Sink) []MCPObserver {
	var out []MCPObserver
	for _, s := range sinks {
		if o, ok := s.(MCPObserver); ok {
			out = append(out, o)
		}
	}
	return out
}

// MCPFailure returns the value of [MCPOperation].Failure for a request that ended with the error err and without a response: "timeout" if
// err wraps [context.DeadlineExceeded], "cancelled" if it wraps [context.Canceled], and "other" otherwise.
func MCPFailure(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	}
	return "other"
}
