package server

import (
	"net/http"
	"strings"

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

// callWithdrawn ends a stream in which a call was begun that the run does not contain.
func callWithdrawn() *problem {
	return &problem{Status: http.StatusBadGateway, Code: "tool_call_withdrawn",
		Message: "The model began a call to a tool of the client, and the call could not be read or was refused. Do not execute it. Send the request again."}
}

// otherRun ends a stream whose run was not the first to record that it answers the request.
func otherRun() *problem {
	return &problem{Status: http.StatusServiceUnavailable, Code: "retry_run_active",
		Message: "Another run answers an equal request. Send the request again to get its answer, or with " + newRunHeader + ": true to have a run of its own."}
}
