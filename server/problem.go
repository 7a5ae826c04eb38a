package server

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// A problem is an error response: in the format of the client's wire under /v1 and /v1beta, as RFC 9457 problem details elsewhere.
type problem struct {
	Status     int
	Code       string // for programs
	Message    string // for people; it may quote the client's own request
	Param      string // the member of the request that is wrong
	Details    string // a JSON object for programs, in the vendor's form, on wires that have one; "": none
	RetryAfter time.Duration
	// NoRetry makes the response tell clients not to send the request again by themselves: it has had effects.
	NoRetry bool
	// OfUpstream is set if the model server failed or refused the request: Code is a [lathe.UpstreamKind], or the model server's own.
	OfUpstream bool
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
	case p.Code == string(lathe.CodeBudgetExhausted):
		return "insufficient_quota" // OpenAI's word for an account that has no more money
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

// problemTypes is the page that describes the types of problems, each under its code.
const problemTypes = "https://github.com/lathe-run/lathe/blob/main/docs/errors.md#"

// problemInstance and the id of a request are the URI of one problem. The URI identifies a line of the request log, and cannot be
// fetched.
const problemInstance = "urn:lathe:request:"

// inWords makes words of a code.
var inWords = strings.NewReplacer("_", " ", "api", "API", "csrf", "CSRF", "json", "JSON", "url", "URL")

// typeOf returns the URI of the problem's type, and its name, which is the same for all problems of the type. All failures of
// model servers are of one type: their codes are not all known.
func (p *problem) typeOf() (uri, title string) {
	if p.OfUpstream {
		return problemTypes + "kinds-of-upstream-failure", "Failure of the model server"
	}
	title = inWords.Replace(p.Code)
	first := min(1, len(title))
	return problemTypes + p.Code, strings.ToUpper(title[:first]) + title[first:]
}

// A problemBody is the form of RFC 9457, with members of ours.
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
	if p.NoRetry || p.Status == http.StatusUnauthorized || p.Status == http.StatusForbidden { // the key stays as it is
		h.Set("X-Should-Retry", "false")
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", cmp.Or(c.challenge, "Bearer"))
	}
	h.Set("Cache-Control", "no-store")
	c.code = p.Code
	if c.form == formAnthropic { // whose errors have no code
		h.Set("X-Lathe-Error-Code", p.Code)
	}
	if codec := c.form.codec(); codec != nil {
		h.Set("Content-Type", "application/json")
		w.WriteHeader(c.form.status(p))
		_, _ = w.Write(codec.AppendError(nil, c.apiError(p))) // the client may have disconnected
		return
	}
	if c.form == formRPC {
		h.Set("Content-Type", "application/json")
		w.WriteHeader(p.Status)
		_, _ = w.Write(p.rpcError(c.requestID)) // the client may have disconnected
		return
	}
	if c.form == formText {
		if p.Status == http.StatusUnauthorized {
			h.Set("WWW-Authenticate", `Bearer realm="lathe workers"`)
		}
		http.Error(w, p.Message, p.Status)
		return
	}
	h.Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	uri, title := p.typeOf()
	form := &problemBody{Type: uri, Title: title, Status: p.Status, Detail: p.Message, Instance: problemInstance + c.requestID,
		Code: p.Code, Param: p.Param, RequestID: c.requestID, Newest: p.NewestEvent}
	if d := p.Decision; d != nil {
		form.Decision, form.By, form.DecidedAt = d.Decision, d.By, &d.DecidedAt
	}
	if c.form == formOllama {
		form.Error = p.Message
	}
	body, _ := json.Marshal(form)      // strings, a number and a time
	_, _ = w.Write(append(body, '\n')) // the client may have disconnected
}

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

// ended returns the problem that a client gets for a failed run, or nil if the run did not fail.
func ended(res *event.Result) *problem {
	p := failure(res)
	if p != nil && res.ToolCalls > 0 {
		p.NoRetry = true // tools were called: the client must not make that happen twice unasked
	}
	return p
}

// failureFor returns the problem of a run that ended for reason and has no result. It is not inlined: the results would take 500 bytes of
// the stack of each open stream (see stream).
//
//go:noinline
func failureFor(reason lathe.Reason) *problem { return failure(&event.Result{Reason: reason}) }

func failure(res *event.Result) *problem {
	code := lathe.CodeOf(res.Err)
	switch res.Reason {
	case lathe.ReasonAnswered, lathe.ReasonClientToolCalls, lathe.ReasonAwaitingApproval, lathe.ReasonAwaitingToolResults,
		lathe.ReasonMaxIterations, lathe.ReasonMaxToolCalls, lathe.ReasonToolLoop, lathe.ReasonRunTimeout, lathe.ReasonBudgetExceeded,
		lathe.ReasonContentFilter, lathe.ReasonLength, lathe.ReasonInvalidAnswer, lathe.ReasonEmptyAnswer:
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
	case lathe.ReasonBudgetExhausted:
		return overBudget(res)
	case lathe.ReasonGuestFault, lathe.ReasonInternal:
	}
	if p := storeProblem(res.Err); p != nil {
		return p
	}
	switch code {
	case lathe.CodeUnavailable: // the store is full, or does not answer
		return &problem{Status: http.StatusServiceUnavailable, Code: "overloaded", RetryAfter: drainRetry, Message: "The server keeps no more runs now."}
	case lathe.CodeTooManyTools:
		return tooManyTools(res.Err)
	case lathe.CodeInvalidRequest:
		return &problem{Status: http.StatusBadRequest, Code: "invalid_request", Message: "The request cannot be run: " + cause(res.Err) + "."}
	default:
	}
	return &problem{Status: http.StatusInternalServerError, Code: "internal_error", Message: "The run failed within the server.", NoRetry: true}
}

// tooManyTools returns the problem of a run whose definitions of tools exceed a limit.
func tooManyTools(err error) *problem {
	p := &problem{Status: http.StatusBadRequest, Code: "too_many_tools",
		Message: "The run would send its model more definitions of tools than a limit allows."}
	var exceeded interface {
		error
		ClientText() string // without the origins of tools
	}
	if errors.As(err, &exceeded) {
		p.Message = "The run would send its model more than a limit allows: " + exceeded.ClientText() + "."
	}
	p.Message += " Declare fewer tools, or name those that the run needs in lathe.tools."
	return p
}

// cause returns the text of what lies under a [lathe.Error].
func cause(err error) string {
	var e *lathe.Error
	for errors.As(err, &e) && e.Err != nil {
		err = e.Err
	}
	return err.Error()
}
