package server

import (
	"net/http"
	"strings"
	"time"

	problems "github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/workers"
)

// A problem is an error response: status, code and message.
type problem = problems.Problem

func (c *caller) client() *problems.Client {
	return &problems.Client{Form: c.form, RequestID: c.requestID, Challenge: c.challenge}
}

// fail writes p as the response, and records its code for the log.
func (c *caller) fail(w http.ResponseWriter, p *problem) {
	c.code = p.Code
	c.client().Fail(w, p)
}

func (c *caller) apiError(p *problem) *wire.APIError { return c.client().APIError(p) }

func formOf(r *http.Request) problems.Form {
	path := r.URL.Path
	switch {
	case path == workers.Path:
		return problems.Text
	case path == mcpPath:
		return problems.RPC
	case isGemini(r):
		return problems.Google
	case path == "/v1/messages", strings.HasPrefix(path, "/v1/messages/"), strings.HasPrefix(path, "/v1/models") && asksAnthropic(r):
		return problems.Anthropic
	case strings.HasPrefix(path, "/v1/"):
		return problems.OpenAI
	}
	return problems.Details
}

// asksAnthropic reports whether the request comes from a client of Anthropic's API: it has the header anthropic-version.
func asksAnthropic(r *http.Request) bool { return r.Header.Get("Anthropic-Version") != "" }

// notFound returns a problem with status 404, for something that does not exist or that the caller may not see.
func notFound(code, format string, args ...any) *problem {
	return problems.New(http.StatusNotFound, code, format, args...)
}

func unauthorized(code, format string, args ...any) *problem {
	return problems.New(http.StatusUnauthorized, code, format, args...)
}

// forbidden returns a problem with status 403, for a request that the caller may not make.
func forbidden(code, format string, args ...any) *problem {
	return problems.New(http.StatusForbidden, code, format, args...)
}

// conflict returns a problem with status 409, for a request that the current state of its object does not permit.
func conflict(code, format string, args ...any) *problem {
	return problems.New(http.StatusConflict, code, format, args...)
}

// badRequest returns a problem with status 400 and code invalid_request. param is the path of the wrong member; "": the
// body.
func badRequest(param, format string, args ...any) *problem {
	return problems.New(http.StatusBadRequest, "invalid_request", format, args...).WithParam(param)
}

// internalError returns a problem with status 500. The caller logs the cause.
func internalError(message string) *problem {
	return problems.New(http.StatusInternalServerError, "internal_error", "%s", message)
}

// unavailable returns a problem with status 503. The client may try again after the given time.
func unavailable(code string, after time.Duration, format string, args ...any) *problem {
	return problems.Overloaded(after, format, args...).WithCode(code)
}

// clientGone returns the problem of a request whose client has left. It is only logged: no client reads it.
func clientGone() *problem {
	return problems.New(http.StatusRequestTimeout, "client_gone", "The client left.")
}

// draining returns the problem of a request that would begin a run while the server drains.
func draining() *problem {
	return unavailable("draining", problems.RetryLater, "The gateway is about to stop; try again.")
}

// callWithdrawn returns the problem of a stream that contains the beginning of a call which the run does not make.
func callWithdrawn() *problem {
	return problems.New(http.StatusBadGateway, "tool_call_withdrawn", "The model began a call to a tool of the client, and the call could not be read or was refused. Do not execute it. Send the request again.")
}
