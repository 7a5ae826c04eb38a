package event

import (
	"context"
	"errors"
	"time"
)

// An MCPOperation is one request of the Model Context Protocol, as its client or its server sees it. It has no arguments
// and no results.
type MCPOperation struct {
	// Server says that this process is the server of the request; else it is the client.
	Server bool
	Method string // such as tools/call
	// Tool is the registered name of the tool, or "unknown"; "": the request is about no tool.
	Tool      string
	Protocol  string // version of the protocol; "": not known
	Session   string // "": the request has none
	RequestID string // JSON text; "": not known
	Transport string // "pipe" or "tcp"
	Address   string // host and port of the server, if this process is its client over HTTP
	// Parent names the span of the client, for a server: the members of the request's _meta.
	Parent       TraceContext
	Began, Ended time.Time
	// Code is the JSON-RPC error code of the answer; 0: none. Failure is empty for a request that succeeded. Else it is the
	// code, tool_error for a result that is an error, timeout, cancelled, or "other".
	Code    int
	Failure string
}

// An MCPObserver observes requests of the Model Context Protocol. It is an optional second interface of a [Sink]. Its
// methods may be called by several goroutines at once.
type MCPObserver interface {
	// MCPStarted returns the context for the work of op. Ended, Code and Failure are not set yet.
	MCPStarted(ctx context.Context, op *MCPOperation) context.Context
	// MCPEnded is called once after MCPStarted, with a context that is made of what MCPStarted returned.
	MCPEnded(ctx context.Context, op *MCPOperation)
}

// MCPObservers are those among sinks.
func MCPObservers(sinks []Sink) []MCPObserver {
	var out []MCPObserver
	for _, s := range sinks {
		if o, ok := s.(MCPObserver); ok {
			out = append(out, o)
		}
	}
	return out
}

// MCPFailure returns what [MCPOperation].Failure is for an error of a context, and "other" for each other error.
func MCPFailure(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	}
	return "other"
}
