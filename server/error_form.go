package server

import (
	"net/http"
	"strings"

	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/workers"
)

// An errorForm is the format of error answers that a client expects.
type errorForm int

const (
	formProblem errorForm = iota // RFC 9457
	formOpenAI
	formAnthropic
	formGoogle
	formOllama // RFC 9457 with the additional member of Ollama
	formRPC    // JSON-RPC
	formText
)

// formOf returns the form of errors that the client of a request expects.
func formOf(r *http.Request) errorForm {
	path := r.URL.Path
	switch {
	case path == workers.Path:
		return formText
	case path == mcpPath:
		return formRPC
	case isGemini(r):
		return formGoogle
	case path == "/v1/messages", strings.HasPrefix(path, "/v1/messages/"), strings.HasPrefix(path, "/v1/models") && asksAnthropic(r):
		return formAnthropic
	case strings.HasPrefix(path, "/v1/"):
		return formOpenAI
	}
	return formProblem
}

// asksAnthropic reports whether the request comes from a client of Anthropic's API.
func asksAnthropic(r *http.Request) bool { return r.Header.Get("Anthropic-Version") != "" }

// codec returns the codec that writes errors in the form; nil for forms that do not belong to a wire.
func (f errorForm) codec() wire.Served {
	switch f {
	case formOpenAI:
		return chatCompletions.Served
	case formAnthropic:
		return messagesAPI.Served
	case formGoogle:
		return geminiAPI.Served
	default:
		return nil
	}
}

// statusOverloaded is the HTTP status with which Anthropic's API reports that it is overloaded.
const statusOverloaded = 529

// status returns the status of p for clients of the form.
func (f errorForm) status(p *problem) int {
	if f == formAnthropic && p.Status == http.StatusServiceUnavailable {
		return statusOverloaded
	}
	return p.Status
}

// apiError returns p for the codec of the client's wire, which derives the type of the error from its status.
func (c *caller) apiError(p *problem) *wire.APIError {
	e := &wire.APIError{Status: c.form.status(p), Code: p.Code, Message: p.Message, Param: p.Param, RequestID: c.requestID, RetryAfter: p.RetryAfter.Seconds(), Details: p.Details}
	if c.form == formOpenAI {
		e.Type = p.kind()
	}
	return e
}
