package problem

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
)

// A Problem is an error response: in the format of the client's wire under /v1 and /v1beta, as RFC 9457 problem details elsewhere.
type Problem struct {
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
	Decision *Decision
}

// New returns the problem of a status and a code, with a message for people.
func New(status int, code, format string, args ...any) *Problem {
	return &Problem{Status: status, Code: code, Message: fmt.Sprintf(format, args...)}
}

// Overloaded returns the problem of a server that is at a limit, for all clients, until the time after.
func Overloaded(after time.Duration, format string, args ...any) *Problem {
	p := New(http.StatusServiceUnavailable, "overloaded", format, args...)
	p.RetryAfter = after
	return p
}

// RateLimited returns the problem of a caller who is at a limit of its own until the time after.
func RateLimited(after time.Duration, format string, args ...any) *Problem {
	p := New(http.StatusTooManyRequests, "rate_limit_exceeded", format, args...)
	p.RetryAfter = after
	return p
}

// WithParam names the member of the request that is wrong.
func (p *Problem) WithParam(param string) *Problem {
	p.Param = param
	return p
}

// WithCode gives the problem another code.
func (p *Problem) WithCode(code string) *Problem {
	p.Code = code
	return p
}

// A Decision is the decision about a call, with its author and time.
type Decision struct {
	Decision, By string
	At           time.Time
}

// Error describes the problem without its message.
func (p *Problem) Error() string { return strconv.Itoa(p.Status) + " " + p.Code }

// kind is the `type` of OpenAI's errors.
func (p *Problem) kind() string {
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
func (p *Problem) typeOf() (uri, title string) {
	if p.OfUpstream {
		return problemTypes + "kinds-of-upstream-failure", "Failure of the model server"
	}
	title = inWords.Replace(p.Code)
	first := min(1, len(title))
	return problemTypes + p.Code, strings.ToUpper(title[:first]) + title[first:]
}

// Absent reports whether there is no such run for the caller, or not any more. Other problems say nothing about the run.
func (p *Problem) Absent() bool {
	return p != nil && (p.Status == http.StatusNotFound || p.Status == http.StatusGone)
}
