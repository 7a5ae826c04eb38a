package eval

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
)

// A Class says why a run failed. The empty class is that of a run that passed.
type Class string

// The classes. A server's other 4xx answers are HTTP_ and the number.
const (
	// Of the model.
	ClassAssertionFailed Class = "ASSERTION_FAILED"
	ClassNoToolCalls     Class = "NO_TOOL_CALLS"
	ClassToolError       Class = "TOOL_ERROR" // a tool's last call failed, under the failure policy
	ClassEmptyText       Class = "EMPTY_ASSISTANT_TEXT"
	ClassTimeout         Class = "TIMEOUT" // of the model only when it had answered before
	ClassNoToolEndpoint  Class = "NO_TOOL_USE_ENDPOINT"
	// Of the server or the way to it.
	ClassAuth            Class = "AUTH"
	ClassPaymentRequired Class = "PAYMENT_REQUIRED"
	ClassForbidden       Class = "FORBIDDEN"
	ClassNotFound        Class = "NOT_FOUND"
	ClassConflict        Class = "CONFLICT"
	ClassTooLarge        Class = "REQUEST_TOO_LARGE"
	ClassUnprocessable   Class = "UNPROCESSABLE"
	ClassRateLimit       Class = "RATE_LIMIT"
	ClassUpstream5xx     Class = "UPSTREAM_5XX"
	ClassConnection      Class = "CONNECTION_ERROR"
	ClassDecode          Class = "DECODE_ERROR"
	ClassReplay          Class = "REPLAY_MISS" // a recording does not hold the request
	ClassException       Class = "EXCEPTION"
)

// modelClasses are what a model can be blamed for.
var modelClasses = map[Class]bool{ClassAssertionFailed: true, ClassNoToolCalls: true, ClassToolError: true, ClassEmptyText: true,
	ClassTimeout: true, ClassNoToolEndpoint: true}

// judge gives the run its class, from how it ended and what was checked. Where Lathe is measured,
// only checks and the server can fail it.
func (r *Run) judge(res *lathe.Result, toolsOn, lathesOwn bool) {
	defer func() {
		r.OK = r.Class == ""
		r.Scored = r.OK || modelClasses[r.Class]
		if r.Class == ClassTimeout && !answered(res) {
			r.Scored = false // nothing shows that there is a model at all
		}
	}()
	if res.Err != nil {
		r.Error = res.Err.Error() // holds no content: see lathe.Error
		var up *lathe.UpstreamError
		if errors.As(res.Err, &up) {
			r.Hint = up.Message
		}
	}
	called := len(calls(res.History)) > 0
	reason := res.Reason
	if lathesOwn && !slices.Contains([]lathe.Reason{lathe.ReasonUpstreamError, lathe.ReasonCancelled, lathe.ReasonInterrupted, lathe.ReasonInternal}, reason) {
		reason, toolsOn = lathe.ReasonAnswered, false
	}
	switch reason {
	case lathe.ReasonNoToolCalls:
		r.Class, r.Error = ClassNoToolCalls, "the model called no tool"
		return
	case lathe.ReasonToolError:
		r.Class = ClassToolError
		r.Error = "the last call failed of " + strings.Join(res.FailedTools, ", ")
		r.preferAssertions(res)
		return
	case lathe.ReasonRunTimeout:
		r.Class, r.Error = ClassTimeout, "the run's time is up"
		return
	case lathe.ReasonUpstreamError:
		r.Class = upstreamClass(res.Err)
		return
	case lathe.ReasonCancelled, lathe.ReasonInterrupted, lathe.ReasonInternal, lathe.ReasonGuestFault:
		r.Class = ClassException
		return
	case lathe.ReasonAnswered:
	default:
		r.Class, r.Error = ClassAssertionFailed, "the run ended "+string(res.Reason)
	}
	failed := r.failedChecks()
	if len(failed) > 0 {
		r.Class = ClassAssertionFailed
		if r.Error != "" {
			failed = append([]string{r.Error}, failed...)
		}
		r.Error = strings.Join(failed, "; ")
	}
	switch {
	case r.Class == "":
	case toolsOn && !called:
		r.Class = ClassNoToolCalls
	case !lathesOwn && reason == lathe.ReasonAnswered && strings.TrimSpace(res.Answer) == "":
		r.Class = ClassEmptyText
	}
}

// preferAssertions makes a tool error an assertion that failed, where the only tool that failed is
// one that must not be asked for at all: that is what went wrong.
func (r *Run) preferAssertions(res *lathe.Result) {
	for _, c := range calls(res.History) {
		if c.failed && c.code != lathe.CodeUnknownTool && slices.Contains(res.FailedTools, c.name) {
			return
		}
	}
	if failed := r.failedChecks(); len(failed) > 0 {
		r.Class, r.Error = ClassAssertionFailed, strings.Join(failed, "; ")
	}
}

func (r *Run) failedChecks() []string {
	var out []string
	for _, c := range r.Checks {
		if c.OK {
			continue
		}
		out = append(out, strings.TrimSuffix(c.Assert+", got "+c.Got, ", got "))
	}
	return out
}

// answered reports whether the model said anything that reached the history.
func answered(res *lathe.Result) bool {
	for i := range res.History {
		if res.History[i].Role == lathe.RoleAssistant {
			return true
		}
	}
	return false
}

var statusClasses = map[int]Class{401: ClassAuth, 402: ClassPaymentRequired, 403: ClassForbidden, 404: ClassNotFound, 408: ClassTimeout,
	409: ClassConflict, 413: ClassTooLarge, 422: ClassUnprocessable, 429: ClassRateLimit}

// upstreamClass says what the server or the way to it did.
func upstreamClass(err error) Class {
	var up *lathe.UpstreamError
	if errors.Is(err, ErrReplay) {
		return ClassReplay
	}
	if !errors.As(err, &up) {
		return ClassException
	}
	switch {
	case strings.Contains(strings.ToLower(up.Message), "no endpoints found that support tool use"):
		return ClassNoToolEndpoint
	case statusClasses[up.Status] != "":
		return statusClasses[up.Status]
	case up.Status >= 500:
		return ClassUpstream5xx
	case up.Status >= 400:
		return Class(fmt.Sprintf("HTTP_%d", up.Status))
	case up.Kind == lathe.UpstreamRateLimited:
		return ClassRateLimit
	case up.Connect:
		return ClassConnection
	case up.Kind == lathe.UpstreamTimeout:
		return ClassTimeout
	case up.Kind == lathe.UpstreamBadProtocol:
		return ClassDecode
	default:
		return ClassConnection
	}
}
