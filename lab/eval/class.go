package eval

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// A Class says why a run failed; "": it passed.
type Class string

// The classes of failures. Any other 4xx response of a server is HTTP_ and the status, such as HTTP_418.
const (
	// The first classes are failures of the model, the tools or the server.
	ClassAssertionFailed Class = "ASSERTION_FAILED"     // an assert of the scenario failed, or a limit ended the run
	ClassNoToolCalls     Class = "NO_TOOL_CALLS"        // the model called no tool, in a scenario with tools
	ClassToolError       Class = "TOOL_ERROR"           // the last call of a tool failed, with tool_failure_policy fatal
	ClassEmptyText       Class = "EMPTY_ASSISTANT_TEXT" // the last answer is blank, and an assert failed
	ClassTimeout         Class = "TIMEOUT"              // the run or a request took too long, or HTTP 408
	ClassNoToolEndpoint  Class = "NO_TOOL_USE_ENDPOINT" // the server does not support tools for the model
	classConflict        Class = "CONFLICT"
	classUnprocessable   Class = "UNPROCESSABLE"
	ClassUpstream5xx     Class = "UPSTREAM_5XX"    // HTTP 5xx, or such an error within a response
	classConnectionLost  Class = "CONNECTION_LOST" // the connection was lost after the server had been reached
	ClassDecode          Class = "DECODE_ERROR"    // the response violates the protocol
	// From ClassAuth to ClassRateLimit, the server refused the request, whatever the model. These runs count in the rates, and are also
	// counted in [Row].Refused.
	ClassAuth            Class = "AUTH"             // HTTP 401
	ClassPaymentRequired Class = "PAYMENT_REQUIRED" // HTTP 402
	ClassForbidden       Class = "FORBIDDEN"        // HTTP 403
	ClassNotFound        Class = "NOT_FOUND"        // HTTP 404: the server does not have the model, or has it at another path
	classTooLarge        Class = "REQUEST_TOO_LARGE"
	ClassRateLimit       Class = "RATE_LIMIT" // HTTP 429
	// From ClassConnection on, nothing was measured: the run has no score.
	ClassConnection  Class = "CONNECTION_ERROR" // no connection was made
	ClassReplay      Class = "REPLAY_MISS"      // the request is not in the recording
	classException   Class = "EXCEPTION"        // error of the harness
	ClassUserModel   Class = "USER_MODEL_ERROR" // error of the model that plays the user
	ClassNotProvoked Class = "NOT_PROVOKED"     // the scenario tests recovery from a mistake, and the model made none
)

// Scored reports whether runs of the class count in the rates. A run does not count if it reached no server, if its request is not in the
// recording, if the harness or the model that plays the user failed, or if the scenario did not apply.
func (c Class) Scored() bool {
	return c != ClassConnection && c != ClassReplay && c != classException && c != ClassNotProvoked && c != ClassUserModel
}

// Refused reports whether the server refused the request because of the account, the key, the model's name, the size of the request or a
// rate limit.
func (c Class) Refused() bool {
	switch c {
	case ClassAuth, ClassPaymentRequired, ClassForbidden, ClassNotFound, classTooLarge, ClassRateLimit:
		return true
	default:
		return false
	}
}

// An expectation is what a run must do besides its checks. It decides the class of a run that fails.
type expectation uint8

const (
	aCall    expectation = iota // at least one call, and an answer
	anAnswer                    // an answer
	anyEnd                      // nothing, because the suite measures Lathe: only checks and server errors can fail the run
)

// judge sets the class of the run from its end, the response and the checks.
func (r *Run) judge(res *event.Result, got *seen, want expectation) {
	defer r.close(res, got)
	if r.Class != "" { // an error of the user has already set it
		return
	}
	r.setServerMessage(res)
	reason := answeredIfEmpty(res.Reason)
	isBroken := slices.Contains([]lathe.Reason{lathe.ReasonUpstreamError, lathe.ReasonCancelled, lathe.ReasonInterrupted, lathe.ReasonInternal}, reason)
	if want == anyEnd && !isBroken { // the checks decide alone
		reason = lathe.ReasonAnswered
	}
	switch reason {
	case lathe.ReasonNoToolCalls:
		r.Class, r.Error = ClassNoToolCalls, "the model called no tool"
	case lathe.ReasonToolError:
		r.Class = ClassToolError
		r.Error = "the last call failed of " + strings.Join(failedNames(res), ", ")
		r.preferAssertions(res)
	case lathe.ReasonRunTimeout:
		r.Class, r.Error, r.Unfinished = ClassTimeout, "the time of the run (--timeout) ended", true
	case lathe.ReasonUpstreamError:
		r.Class, r.Unfinished = upstreamClass(res.Err), true
	case lathe.ReasonCancelled, lathe.ReasonInterrupted, lathe.ReasonInternal, lathe.ReasonGuestFault, lathe.ReasonBudgetExhausted:
		r.Class = classException
	case lathe.ReasonAnswered:
		r.judgeChecks(res, want)
	default: // a limit ended the run
		r.Error, r.Unfinished = "the run ended "+string(res.Reason), true
		r.judgeChecks(res, want)
	}
}

// judgeChecks sets the class of a run that ended with an answer, or by a limit, and adds its failed checks to the error. A run that a limit
// ended has failed, whatever its checks.
func (r *Run) judgeChecks(res *event.Result, want expectation) {
	byLimit, failed := r.Unfinished, r.failedChecks()
	if !byLimit {
		onlyProvoked := !slices.ContainsFunc(r.Checks, func(c Check) bool { return !c.OK && !c.Provoked })
		switch {
		case len(failed) == 0:
			return
		case onlyProvoked:
			r.Class, r.Error = ClassNotProvoked, "the scenario tests how a model recovers from a mistake, and the model made none"
			return
		}
	}
	if r.Error != "" {
		failed = append([]string{r.Error}, failed...)
	}
	r.Error = strings.Join(failed, "; ")
	switch {
	case want == aCall && len(calls(res.History)) == 0:
		r.Class = ClassNoToolCalls
	case want != anyEnd && !byLimit && strings.TrimSpace(res.Answer) == "":
		r.Class = ClassEmptyText
	default:
		r.Class = ClassAssertionFailed
	}
	ignored := 0
	for i := range res.Trace {
		ignored += res.Trace[i].IgnoredToolCalls
	}
	if ignored > 0 {
		r.Error += fmt.Sprintf("; the model made %d calls where tools are off", ignored)
	}
}

// answeredIfEmpty returns the reason, but ReasonAnswered for a blank answer: the checks decide whether such a run passes.
func answeredIfEmpty(reason lathe.Reason) lathe.Reason {
	if reason == lathe.ReasonEmptyAnswer {
		return lathe.ReasonAnswered
	}
	return reason
}

// classOfUser returns the class of a run that ended with an error of the user's side.
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

// setServerMessage sets Error and ServerMessage from the error of the run. If the server sent no response, ServerMessage stays empty.
func (r *Run) setServerMessage(res *event.Result) {
	if res.Err == nil || res.Reason == lathe.ReasonEmptyAnswer {
		return
	}
	r.Error = res.Err.Error() // contains no content: see lathe.Error
	var up *lathe.UpstreamError
	if !errors.As(res.Err, &up) {
		return
	}
	isOfServer := (up.Status != 0 || up.InBand) && up.Kind != lathe.UpstreamBadProtocol // otherwise a text of Lathe or of the transport
	switch {
	case isOfServer:
		r.ServerMessage = up.Message
	case !strings.Contains(r.Error, up.Message):
		r.Error += ": " + up.Message
	}
}

// close sets whether the run passed and whether it counts. A run counts if its server was reached.
func (r *Run) close(res *event.Result, got *seen) {
	if r.Class == ClassConnection && (got.any || answered(res)) {
		r.Class = classConnectionLost // the server answered an earlier turn of the run
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

// failedNames returns the tools that failed in a run that ended with tool_error. "unknown" is replaced by the names that the model
// invented.
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

// preferAssertions replaces a tool error by the failed checks, if checks failed and all failed tools are unknown ones: the checks say which
// tools the model must not request.
func (r *Run) preferAssertions(res *event.Result) {
	for _, c := range calls(res.History) {
		if c.failed && c.code != lathe.CodeUnknownTool && slices.Contains(res.FailedTools, c.name) {
			return
		}
	}
	r.setFailedChecks()
}

// setFailedChecks sets the class and the error if checks failed, and reports whether they did.
func (r *Run) setFailedChecks() bool {
	failed := r.failedChecks()
	if len(failed) == 0 {
		return false
	}
	r.Class, r.Error = ClassAssertionFailed, strings.Join(failed, "; ")
	return true
}

func (r *Run) failedChecks() []string {
	var out []string
	for _, c := range r.Checks {
		if !c.OK {
			out = append(out, strings.TrimSuffix(c.Assert+", got "+c.Got, ", got "))
		}
	}
	return out
}

// answered reports whether the history contains a message of the model.
func answered(res *event.Result) bool {
	return slices.ContainsFunc(res.History, func(m lathe.Message) bool { return m.Role == lathe.RoleAssistant })
}

var statusClasses = map[int]Class{401: ClassAuth, 402: ClassPaymentRequired, 403: ClassForbidden, 404: ClassNotFound, 408: ClassTimeout,
	409: classConflict, 413: classTooLarge, 422: classUnprocessable, 429: ClassRateLimit}

// upstreamClass returns the class of an error of the server or of the connection.
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
		return "HTTP_4XX" // an error in a response with status 200
	default:
		return classConnectionLost
	}
}
