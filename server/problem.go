package server

import (
	"net/http"
	"strings"
	"time"

	problems "github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/workers"
)

// A problem is an error response.
type problem = problems.Problem

// client returns how the caller reads problems.
func (c *caller) client() *problems.Client {
	return &problems.Client{Form: c.form, RequestID: c.requestID, Challenge: c.challenge}
}

// fail answers the request with p.
func (c *caller) fail(w http.ResponseWriter, p *problem) {
	c.code = p.Code
	c.client().Fail(w, p)
}

// apiError returns p for the codec of the client's wire.
func (c *caller) apiError(p *problem) *wire.APIError { return c.client().APIError(p) }

// formOf returns the form of errors that the client of a request expects.
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

// asksAnthropic reports whether the request comes from a client of Anthropic's API.
func asksAnthropic(r *http.Request) bool { return r.Header.Get("Anthropic-Version") != "" }

// notFound returns the problem of something that there is not, for the caller.
func notFound(code, format string, args ...any) *problem {
	return problems.New(http.StatusNotFound, code, format, args...)
}

// unauthorized returns the problem of a caller who is not known.
func unauthorized(code, format string, args ...any) *problem {
	return problems.New(http.StatusUnauthorized, code, format, args...)
}

// forbidden returns the problem of a caller who may not do what the request asks for.
func forbidden(code, format string, args ...any) *problem {
	return problems.New(http.StatusForbidden, code, format, args...)
}

// conflict returns the problem of a request that does not fit the state of what it is about.
func conflict(code, format string, args ...any) *problem {
	return problems.New(http.StatusConflict, code, format, args...)
}

// badRequest returns the problem of a request whose member param is wrong; "": the body.
func badRequest(param, format string, args ...any) *problem {
	return problems.New(http.StatusBadRequest, "invalid_request", format, args...).WithParam(param)
}

// internalError returns the problem of a failure of the server, which its log explains.
func internalError(message string) *problem {
	return problems.New(http.StatusInternalServerError, "internal_error", "%s", message)
}

// unavailable returns the problem of a server that cannot do now what it can do after a time.
func unavailable(code string, after time.Duration, format string, args ...any) *problem {
	return problems.Overloaded(after, format, args...).WithCode(code)
}

// clientGone ends the work on a request whose client has left. No client reads it.
func clientGone() *problem {
	return problems.New(http.StatusRequestTimeout, "client_gone", "The client left.")
}

// draining refuses what would begin in a server that is about to stop.
func draining() *problem {
	return unavailable("draining", problems.RetryLater, "The server is about to stop; try again.")
}

// callWithdrawn ends a stream in which a call was begun that the run does not contain.
func callWithdrawn() *problem {
	return problems.New(http.StatusBadGateway, "tool_call_withdrawn", "The model began a call to a tool of the client, and the call could not be read or was refused. Do not execute it. Send the request again.")
}

// otherRun ends a stream whose run was not the first to record that it answers the request.
func otherRun() *problem {
	return problems.New(http.StatusServiceUnavailable, "retry_run_active",
		"Another run answers an equal request. Send the request again to get its answer, or with %s: true to have a run of its own.", newRunHeader)
}
