package problem

import (
	"cmp"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/gemini"
	"github.com/lathe-run/lathe/internal/wire/messages"
	"github.com/lathe-run/lathe/internal/wire/openai"
)

// A Form is the format of error responses that a client expects.
type Form int

const (
	Details Form = iota // RFC 9457
	OpenAI
	Anthropic
	Google
	Ollama // RFC 9457 with the additional member of Ollama
	RPC    // JSON-RPC
	Text
)

// codec returns the codec that writes errors in the form, or nil for forms that belong to no wire.
func (f Form) codec() wire.Served {
	switch f {
	case OpenAI:
		return openai.Served{}
	case Anthropic:
		return messages.Codec{}
	case Google:
		return gemini.Codec{}
	default:
		return nil
	}
}

// statusOverloaded is the HTTP status with which Anthropic's API reports that it is overloaded.
const statusOverloaded = 529

// status returns the HTTP status of p for clients of the form.
func (f Form) status(p *Problem) int {
	if f == Anthropic && p.Status == http.StatusServiceUnavailable {
		return statusOverloaded
	}
	return p.Status
}

// A Client contains the properties of a request on which its error responses depend.
type Client struct {
	Form      Form
	RequestID string
	Challenge string // WWW-Authenticate header of a 401 response; "": Bearer
}

// APIError returns p in the form in which the codec of the client's wire writes it. The codec derives the type of the error from the
// status, except for OpenAI.
func (c *Client) APIError(p *Problem) *wire.APIError {
	e := &wire.APIError{Status: c.Form.status(p), Code: p.Code, Message: p.Message, Param: p.Param, RequestID: c.RequestID, RetryAfter: p.RetryAfter.Seconds(), Details: p.Details}
	if c.Form == OpenAI {
		e.Type = p.kind()
	}
	return e
}

// A problemBody is RFC 9457 problem details, with additional members.
type problemBody struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail"`
	Instance  string `json:"instance"`
	Code      string `json:"code"`
	Param     string `json:"param,omitempty"`
	RequestID string `json:"request_id"`
	Newest    int64  `json:"newest_event_id,omitempty"`
	// The next three are the earlier decision about the call.
	Decision  string     `json:"decision,omitempty"`
	By        string     `json:"by,omitempty"`
	DecidedAt *time.Time `json:"decided_at,omitempty"`
	Error     string     `json:"error,omitempty"` // the member that clients of Ollama read
}

// Fail writes p as the response to the request.
func (c *Client) Fail(w http.ResponseWriter, p *Problem) {
	h := w.Header()
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(p.RetryAfter.Seconds()))))
	}
	if p.NoRetry || p.Status == http.StatusUnauthorized || p.Status == http.StatusForbidden { // a retry has the same key, and fails again
		h.Set("X-Should-Retry", "false")
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", cmp.Or(c.Challenge, "Bearer"))
	}
	h.Set("Cache-Control", "no-store")
	if c.Form == Anthropic { // errors of Anthropic's API have no code
		h.Set("X-Lathe-Error-Code", p.Code)
	}
	if c.Form == Text {
		if p.Status == http.StatusUnauthorized {
			h.Set("WWW-Authenticate", `Bearer realm="lathe workers"`)
		}
		http.Error(w, p.Message, p.Status)
		return
	}
	contentType, body := "application/json", []byte(nil)
	switch codec := c.Form.codec(); {
	case codec != nil:
		body = codec.AppendError(nil, c.APIError(p))
	case c.Form == RPC:
		body = p.rpcError(c.RequestID)
	default:
		contentType, body = "application/problem+json", c.details(p)
	}
	h.Set("Content-Type", contentType)
	w.WriteHeader(c.Form.status(p))
	_, _ = w.Write(body) // the client may have disconnected
}

// details returns the problem in the form of RFC 9457.
func (c *Client) details(p *Problem) []byte {
	uri, title := p.typeOf()
	form := &problemBody{Type: uri, Title: title, Status: p.Status, Detail: p.Message, Instance: problemInstance + c.RequestID,
		Code: p.Code, Param: p.Param, RequestID: c.RequestID, Newest: p.NewestEvent}
	if d := p.Decision; d != nil {
		form.Decision, form.By, form.DecidedAt = d.Decision, d.By, &d.At
	}
	if c.Form == Ollama {
		form.Error = p.Message
	}
	body, _ := json.Marshal(form) // strings, a number and a time
	return append(body, '\n')
}

// codeRefused is the JSON-RPC error code of requests that the gateway does not admit.
const codeRefused = -32000

// rpcError returns the problem as a JSON-RPC error response, for MCP clients.
func (p *Problem) rpcError(requestID string) []byte {
	type data struct {
		Code      string `json:"code"`
		RequestID string `json:"request_id"`
	}
	body, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{
		"code": codeRefused, "message": p.Message, "data": data{p.Code, requestID}}}) // strings and numbers
	return append(body, '\n')
}
