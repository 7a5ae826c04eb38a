package eval

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// A Class is the reason for which a run failed. The empty class is that of a run that passed.
type Class string

// The classes. A server's other 4xx answers are HTTP_ and the number.
const (
	// Outcomes of a run.
	ClassAssertionFailed Class = "ASSERTION_FAILED"
	ClassNoToolCalls     Class = "NO_TOOL_CALLS"
	ClassToolError       Class = "TOOL_ERROR" // a tool's last call failed, under the failure policy
	ClassEmptyText       Class = "EMPTY_ASSISTANT_TEXT"
	ClassTimeout         Class = "TIMEOUT"
	ClassNoToolEndpoint  Class = "NO_TOOL_USE_ENDPOINT"
	classConflict        Class = "CONFLICT"
	classUnprocessable   Class = "UNPROCESSABLE"
	ClassUpstream5xx     Class = "UPSTREAM_5XX"
	classConnectionLost  Class = "CONNECTION_LOST" // after the server had been reached
	ClassDecode          Class = "DECODE_ERROR"
	// The server refused the request, whatever the model. They count in the rate, and are listed apart.
	ClassAuth            Class = "AUTH"
	ClassPaymentRequired Class = "PAYMENT_REQUIRED"
	ClassForbidden       Class = "FORBIDDEN"
	ClassNotFound        Class = "NOT_FOUND" // the server does not have the model, or not at this path
	classTooLarge        Class = "REQUEST_TOO_LARGE"
	ClassRateLimit       Class = "RATE_LIMIT"
	// Nothing was measured: no score.
	ClassConnection  Class = "CONNECTION_ERROR" // no connection was made
	ClassReplay      Class = "REPLAY_MISS"      // a recording does not hold the request
	classException   Class = "EXCEPTION"        // of the harness
	ClassUserModel   Class = "USER_MODEL_ERROR" // of the model that plays the user
	ClassNotProvoked Class = "NOT_PROVOKED"     // the model made no mistake where the scenario looks at how it recovers from one
)

// Scored reports whether a run of the class counts in the rates. Only a run that reached no server, that the harness
// broke, or whose scenario did not apply does not.
func (c Class) Scored() bool {
	return c != ClassConnection && c != ClassReplay && c != classException && c != ClassNotProvoked && c != ClassUserModel
}

// Refused reports whether the server refused the request for a reason that lies with the account, the key, the model's
// name, or the size of the request.
func (c Class) Refused() bool {
	switch c {
	case ClassAuth, ClassPaymentRequired, ClassForbidden, ClassNotFound, classTooLarge, ClassRateLimit:
		return true
	default:
		return false
	}
}

// judge gives the run its class, from how it ended, what was received and what was checked. Where Lathe is measured,
// only checks and the server can fail it.
func (r *Run) judge(res *event.Result, got *seen, toolsOn, lathesOwn bool) {
	defer r.close(res, got)
	if r.Class != "" { // of the user
		return
	}
	r.setServerMessage(res)
	called := len(calls(res.History)) > 0
	reason := answeredIfEmpty(res.Reason)
	if lathesOwn && !slices.Contains([]lathe.Reason{lathe.ReasonUpstreamError, lathe.ReasonCancelled, lathe.ReasonInterrupted, lathe.ReasonInternal}, reason) {
		reason, toolsOn = lathe.ReasonAnswered, false
	}
	switch reason {
	case lathe.ReasonNoToolCalls:
		r.Class, r.Error = ClassNoToolCalls, "the model called no tool"
		return
	case lathe.ReasonToolError:
		r.Class = ClassToolError
		r.Error = "the last call failed of " + strings.Join(failedNames(res), ", ")
		r.preferAssertions(res)
		return
	case lathe.ReasonRunTimeout:
		r.Class, r.Error, r.Unfinished = ClassTimeout, "the time of the run (--timeout) ended", true
		return
	case lathe.ReasonUpstreamError:
		r.Class, r.Unfinished = upstreamClass(res.Err), true
		return
	case lathe.ReasonCancelled, lathe.ReasonInterrupted, lathe.ReasonInternal, lathe.ReasonGuestFault, lathe.ReasonBudgetExhausted:
		r.Class = classException
		return
	case lathe.ReasonAnswered:
	default:
		r.Class, r.Error, r.Unfinished = ClassAssertionFailed, "the run ended "+string(res.Reason), true
	}
	failed := r.failedChecks()
	if len(failed) > 0 {
		if r.Class == "" && r.notProvoked() {
			r.Class, r.Error = ClassNotProvoked, "the scenario tests how a model recovers from a mistake, and the model made none"
			return
		}
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
	if n := ignored(res); n > 0 && r.Class != "" {
		r.Error += fmt.Sprintf("; the model made %d calls where tools are off", n)
	}
}

// answeredIfEmpty returns the reason, and answered for a run with a blank answer, whose checks decide.
func answeredIfEmpty(reason lathe.Reason) lathe.Reason {
	if reason == lathe.ReasonEmptyAnswer {
		return lathe.ReasonAnswered
	}
	return reason
}

// classOfUser is the class of a run that the user ended with an error.
func classOfUser(err error) Class {
	switch {
	case errors.Is(err, errUserTurns):
		return ClassAssertionFailed
	case errors.Is(err, ErrReplay):
		return ClassReplay
	default:
		return ClassUserModel
	}
}

// setServerMessage takes the error of the run, and the server's own words. A server that sent no answer has none.
func (r *Run) setServerMessage(res *event.Result) {
	if res.Err == nil || res.Reason == lathe.ReasonEmptyAnswer {
		return
	}
	r.Error = res.Err.Error() // holds no content: see lathe.Error
	var up *lathe.UpstreamError
	switch {
	case !errors.As(res.Err, &up) || up.Message == "":
	case (up.Status != 0 || up.InBand) && up.Kind != lathe.UpstreamBadProtocol:
		r.ServerMessage = up.Message
	case !strings.Contains(r.Error, up.Message): // words of Lathe or of the transport
		r.Error += ": " + up.Message
	}
}

// close says whether the run passed and whether it counts. A run counts once its server was reached.
func (r *Run) close(res *event.Result, got *seen) {
	if r.Class == ClassConnection && (got.any || answered(res)) {
		r.Class = classConnectionLost // an earlier turn of the run was answered
	}
	r.Calls = got.calls
	if got.prompt != "" {
		r.Prompt, r.Sampling = got.prompt, got.sampling
	}
	r.OK = r.Class == ""
	r.Scored = r.Class.Scored()
	if !r.OK && got.bytes > 0 && got.partial != "" {
		r.Partial, r.PartialBytes = got.partial, got.bytes
	}
}

// notProvoked reports whether the only checks that failed are those that need a mistake of the model first.
func (r *Run) notProvoked() bool {
	for _, c := range r.Checks {
		if !c.OK && !c.Provoked {
			return false
		}
	}
	return true
}

// ignored counts the calls that the model made where tools are off.
func ignored(res *event.Result) (n int) {
	for i := range res.Trace {
		n += res.Trace[i].IgnoredToolCalls
	}
	return n
}

// failedNames are the tools of a run that ended tool_error, with the names that the model made up in place of unknown.
func failedNames(res *event.Result) []string {
	var names []string
	for _, name := range res.FailedTools {
		if name != "unknown" {
			names = append(names, name)
			continue
		}
		for _, c := range calls(res.History) {
			if c.code == lathe.CodeUnknownTool && !slices.Contains(names, c.name) {
				names = append(names, c.name)
			}
		}
	}
	return names
}

// preferAssertions makes a tool error an assertion that failed, where the only tool that failed is
// one that must not be asked for at all: that is what went wrong.
func (r *Run) preferAssertions(res *event.Result) {
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
func answered(res *event.Result) bool {
	for i := range res.History {
		if res.History[i].Role == lathe.RoleAssistant {
			return true
		}
	}
	return false
}

var statusClasses = map[int]Class{401: ClassAuth, 402: ClassPaymentRequired, 403: ClassForbidden, 404: ClassNotFound, 408: ClassTimeout,
	409: classConflict, 413: classTooLarge, 422: classUnprocessable, 429: ClassRateLimit}

// upstreamClass says what the server or the way to it did.
func upstreamClass(err error) Class {
	var up *lathe.UpstreamError
	if errors.Is(err, ErrReplay) {
		return ClassReplay
	}
	if !errors.As(err, &up) {
		return classException
	}
	switch {
	case up.RefusesTools():
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
	case up.Kind == lathe.Upstream5xx:
		return ClassUpstream5xx
	case up.Kind == lathe.Upstream4xx:
		return "HTTP_4XX" // of an error within a response of status 200
	default:
		return classConnectionLost
	}
}
