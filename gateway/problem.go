package gateway

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire/openai"
)

// A problem is an error as a client is told it, in OpenAI's shape under /v1 and as RFC 9457 says elsewhere.
type problem struct {
	Status     int
	Code       string // for programs
	Message    string // for people; it may quote the client's own request
	Param      string // the member of the request that is wrong
	RetryAfter time.Duration
	// NoRetry tells clients not to send the request again by themselves: something was done for it.
	NoRetry bool
	// NewestEvent is the id of the last event that there is, where the client named a later one.
	NewestEvent int64
	// Decision is the decision about a call that was made before, where the request brings another one.
	Decision *callDecision
}

// Error describes the problem without its message.
func (p *problem) Error() string { return strconv.Itoa(p.Status) + " " + p.Code }

// kind is the `type` of OpenAI's errors.
func (p *problem) kind() string {
	switch {
	case p.Status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case p.Status == http.StatusUnauthorized:
		return "authentication_error"
	case p.Status == http.StatusForbidden:
		return "permission_error"
	case p.Status >= 500:
		return "server_error"
	}
	return "invalid_request_error"
}

func (p *problem) wire() *openai.APIError {
	return &openai.APIError{Status: p.Status, Type: p.kind(), Code: p.Code, Message: p.Message, Param: p.Param}
}

// A problemBody is the form of RFC 9457, with members of ours.
type problemBody struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail"`
	Instance  string `json:"instance,omitempty"`
	Code      string `json:"code"`
	Param     string `json:"param,omitempty"`
	RequestID string `json:"request_id,omitempty"`
	Newest    int64  `json:"newest_event_id,omitempty"`
	// Of the decision that was made before.
	Decision  string     `json:"decision,omitempty"`
	By        string     `json:"by,omitempty"`
	DecidedAt *time.Time `json:"decided_at,omitempty"`
	Error     string     `json:"error,omitempty"` // the member that Ollama's clients read
}

// fail answers the request with p.
func (c *caller) fail(w http.ResponseWriter, p *problem) {
	h := w.Header()
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(p.RetryAfter.Seconds()))))
	}
	if p.NoRetry {
		h.Set("X-Should-Retry", "false")
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	h.Set("Cache-Control", "no-store")
	c.code = p.Code
	if c.openAI {
		h.Set("Content-Type", "application/json")
		w.WriteHeader(p.Status)
		_, _ = w.Write(openai.AppendError(nil, p.wire())) // the client left: nobody to tell
		return
	}
	if c.rpc {
		h.Set("Content-Type", "application/json")
		w.WriteHeader(p.Status)
		_, _ = w.Write(p.rpcError(c.requestID)) // the client left: nobody to tell
		return
	}
	h.Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	form := &problemBody{Type: "about:blank", Title: http.StatusText(p.Status), Status: p.Status, Detail: p.Message,
		Code: p.Code, Param: p.Param, RequestID: c.requestID, Newest: p.NewestEvent}
	if d := p.Decision; d != nil {
		form.Decision, form.By, form.DecidedAt = d.Decision, d.By, &d.DecidedAt
	}
	if c.ollama {
		form.Error = p.Message
	}
	body, _ := json.Marshal(form)      // strings, a number and a time
	_, _ = w.Write(append(body, '\n')) // nobody to tell
}

// ended says how a client is told that its run failed; nil where it did not.
func ended(res *lathe.Result) *problem {
	p := failure(res)
	if p != nil && res.ToolCalls > 0 {
		p.NoRetry = true // tools were called: the client must not make that happen twice unasked
	}
	return p
}

func failure(res *lathe.Result) *problem {
	code := lathe.CodeOf(res.Err)
	switch res.Reason {
	case lathe.ReasonAnswered, lathe.ReasonClientToolCalls, lathe.ReasonAwaitingApproval, lathe.ReasonAwaitingToolResults,
		lathe.ReasonMaxIterations, lathe.ReasonMaxToolCalls, lathe.ReasonToolLoop, lathe.ReasonRunTimeout, lathe.ReasonBudgetExceeded,
		lathe.ReasonContentFilter, lathe.ReasonLength:
		return nil
	case lathe.ReasonUpstreamError:
		return upstream(res.Err)
	case lathe.ReasonNoToolCalls:
		return &problem{Status: http.StatusUnprocessableEntity, Code: string(res.Reason), Message: "The run had to call a tool and called none."}
	case lathe.ReasonToolError:
		return &problem{Status: http.StatusUnprocessableEntity, Code: string(res.Reason), Message: "A tool failed that the run had to succeed with."}
	case lathe.ReasonUnknownTool:
		return &problem{Status: http.StatusUnprocessableEntity, Code: string(res.Reason), Message: "The model asked for a tool that there is not."}
	case lathe.ReasonCancelled:
		return &problem{Status: http.StatusConflict, Code: string(res.Reason), Message: "The run was cancelled.", NoRetry: true}
	case lathe.ReasonInterrupted:
		if code == lathe.CodeUnavailable {
			return notNow(res.Err)
		}
		return &problem{Status: http.StatusServiceUnavailable, Code: string(res.Reason), Message: "The server stops; try again.", RetryAfter: time.Second}
	case lathe.ReasonGuestFault, lathe.ReasonInternal:
	}
	if p := storeProblem(res.Err); p != nil {
		return p
	}
	switch code {
	case lathe.CodeUnavailable: // the store is full, or does not answer
		return &problem{Status: http.StatusServiceUnavailable, Code: "overloaded", RetryAfter: drainRetry, Message: "The server keeps no more runs now."}
	case lathe.CodeInvalidRequest:
		return &problem{Status: http.StatusBadRequest, Code: "invalid_request", Message: "The request cannot be run: " + cause(res.Err) + "."}
	default:
	}
	return &problem{Status: http.StatusInternalServerError, Code: "internal_error", Message: "The run failed within the server.", NoRetry: true}
}

// cause returns the text of what lies under a [lathe.Error].
func cause(err error) string {
	var e *lathe.Error
	for errors.As(err, &e) && e.Err != nil {
		err = e.Err
	}
	return err.Error()
}
