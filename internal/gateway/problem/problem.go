package problem

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
)

// A Problem is an error response: in the format of the client's wire under /v1 and /v1beta, and as RFC 9457 problem details elsewhere.
type Problem struct {
	Status     int
	Code       string // for programs
	Message    string // for people; it may quote the client's own request
	Param      string // path of the member of the request that is not valid
	Details    string // additional JSON object in the vendor's form, on wires that support one; "": none
	RetryAfter time.Duration
	// NoRetry is set if clients should not repeat the request automatically, because it has had effects.
	NoRetry bool
	// OfUpstream is set if the model server failed or refused the request: Code is a [lathe.UpstreamKind], or the model server's own.
	OfUpstream bool
	// NewestEvent is the id of the newest event, if the client named a later one.
	NewestEvent int64
	// Decision is the decision that was already made about a call, if the request contains another one.
	Decision *Decision
}

// New returns a problem with a status, a code and a message for people.
func New(status int, code, format string, args ...any) *Problem {
	return &Problem{Status: status, Code: code, Message: fmt.Sprintf(format, args...)}
}

// Overloaded returns the problem of a request that is refused because the server has reached a limit. after is the Retry-After.
func Overloaded(after time.Duration, format string, args ...any) *Problem {
	p := New(http.StatusServiceUnavailable, "overloaded", format, args...)
	p.RetryAfter = after
	return p
}

// RateLimited returns the problem of a caller that has reached a limit of its own. after is the Retry-After.
func RateLimited(after time.Duration, format string, args ...any) *Problem {
	p := New(http.StatusTooManyRequests, "rate_limit_exceeded", format, args...)
	p.RetryAfter = after
	return p
}

// WithParam sets the path of the member of the request that is not valid, and returns p.
func (p *Problem) WithParam(param string) *Problem {
	p.Param = param
	return p
}

// WithCode sets the code, and returns p.
func (p *Problem) WithCode(code string) *Problem {
	p.Code = code
	return p
}

// A Decision is the decision about a call, with its author and time.
type Decision struct {
	Decision, By string
	At           time.Time
}

// Error returns the status and the code. It omits the message, which may quote the request.
func (p *Problem) Error() string { return strconv.Itoa(p.Status) + " " + p.Code }

// kind returns the member `type` of the error on OpenAI's wires.
func (p *Problem) kind() string {
	switch {
	case p.Code == string(lathe.CodeBudgetExhausted):
		return "insufficient_quota" // OpenAI's type for an account without credit
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

// problemInstance followed by a request id is the URI of one problem. It identifies a line of the request log, and cannot be fetched.
const problemInstance = "urn:lathe:request:"

// inWords converts a code to words.
var inWords = strings.NewReplacer("_", " ", "api", "API", "csrf", "CSRF", "json", "JSON", "url", "URL")

// typeOf returns the URI of the problem's type and its title, both of which are the same for all problems of the type. All failures of
// model servers have one type, because not all of their codes are known.
func (p *Problem) typeOf() (uri, title string) {
	if p.OfUpstream {
		return problemTypes + "kinds-of-upstream-failure", "Failure of the model server"
	}
	title = inWords.Replace(p.Code)
	first := min(1, len(title))
	return problemTypes + p.Code, strings.ToUpper(title[:first]) + title[first:]
}

// Absent reports whether p means that the run does not exist for the caller, or no longer does. Other problems do not concern the existence
// of the run.
func (p *Problem) Absent() bool {
	return p != nil && (p.Status == http.StatusNotFound || p.Status == http.StatusGone)
}
