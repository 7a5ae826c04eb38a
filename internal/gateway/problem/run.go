package problem

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/price"
	"github.com/lathe-run/lathe/store"
)

// RetryLater is the Retry-After of a request that the server does not admit at the moment.
const RetryLater = 2 * time.Second

// Ended returns the problem that a client gets for a failed run, or nil if the run did not fail.
func Ended(res *event.Result) *Problem {
	p := Failure(res)
	if p != nil && res.ToolCalls > 0 {
		p.NoRetry = true // tools were called: the client must not repeat the request, and their effects, automatically
	}
	return p
}

// FailureFor returns the problem of a run that ended for reason and has no result. It is not inlined, because the result would occupy 500
// bytes of the stack of each open stream (see stream).
//
//go:noinline
func FailureFor(reason lathe.Reason) *Problem { return Failure(&event.Result{Reason: reason}) }

// Failure returns the problem of a run with the result res, or nil if the run did not fail.
func Failure(res *event.Result) *Problem {
	code := lathe.CodeOf(res.Err)
	switch res.Reason {
	case lathe.ReasonAnswered, lathe.ReasonClientToolCalls, lathe.ReasonAwaitingApproval, lathe.ReasonAwaitingToolResults,
		lathe.ReasonMaxIterations, lathe.ReasonMaxToolCalls, lathe.ReasonToolLoop, lathe.ReasonRunTimeout, lathe.ReasonBudgetExceeded,
		lathe.ReasonContentFilter, lathe.ReasonLength, lathe.ReasonInvalidAnswer, lathe.ReasonEmptyAnswer:
		return nil
	case lathe.ReasonUpstreamError:
		return upstream(res.Err)
	case lathe.ReasonNoToolCalls:
		return New(lathe.Code(res.Reason).HTTPStatus(), string(res.Reason), "The run had to call a tool and called none.")
	case lathe.ReasonToolError:
		return New(lathe.Code(res.Reason).HTTPStatus(), string(res.Reason), "A tool failed that the run had to succeed with.")
	case lathe.ReasonUnknownTool:
		return New(lathe.Code(res.Reason).HTTPStatus(), string(res.Reason), "The model asked for a tool that there is not.")
	case lathe.ReasonCancelled:
		return final(lathe.CodeCancelled, "The run was cancelled.")
	case lathe.ReasonInterrupted:
		if code == lathe.CodeUnavailable {
			return NotNow(res.Err)
		}
		return Overloaded(time.Second, "The gateway stops; try again.").WithCode(string(res.Reason))
	case lathe.ReasonBudgetExhausted:
		return overBudget(res)
	case lathe.ReasonGuestFault, lathe.ReasonInternal:
	}
	if p := OfStore(res.Err); p != nil {
		return p
	}
	switch code {
	case lathe.CodeUnavailable: // the store is full or does not respond
		return Overloaded(RetryLater, "The gateway keeps no more runs now.")
	case lathe.CodeTooManyTools:
		return tooManyTools(res.Err)
	case lathe.CodeInvalidRequest:
		return New(code.HTTPStatus(), "invalid_request", "The request cannot be run: %s.", Cause(res.Err))
	default:
	}
	return &Problem{Status: http.StatusInternalServerError, Code: "internal_error", Message: "The run failed within the gateway.", NoRetry: true}
}

func tooManyTools(err error) *Problem {
	p := New(lathe.CodeTooManyTools.HTTPStatus(), "too_many_tools", "The run would send its model more definitions of tools than a limit allows.")
	var exceeded interface {
		error
		ClientText() string // the message without the origins of tools
	}
	if errors.As(err, &exceeded) {
		p.Message = "The run would send its model more than a limit allows: " + exceeded.ClientText() + "."
	}
	p.Message += " Declare fewer tools, or name those that the run needs in lathe.tools."
	return p
}

// Cause returns the message of the error that the innermost [lathe.Error] in err wraps.
func Cause(err error) string {
	var e *lathe.Error
	for errors.As(err, &e) && e.Err != nil {
		err = e.Err
	}
	return err.Error()
}

// NotNow returns a problem that lets the client retry later: the supervisor has reached its limit, the database has just failed over, or
// the engine of a [server.Executor] cannot be reached.
func NotNow(err error) *Problem {
	if p := OfStore(err); p != nil {
		return p
	}
	return Overloaded(RetryLater, "The gateway cannot do this now: it executes as many runs as it may, or its database or engine cannot be reached. Try again later.")
}

// OfStore returns the problem of a store that cannot be written, or nil if err has another cause.
func OfStore(err error) *Problem {
	for _, known := range []error{lathe.ErrStoreFull, lathe.ErrStoreDisk, lathe.ErrStoreReplaced} {
		if errors.Is(err, known) {
			return Overloaded(RetryLater, "The gateway cannot store runs: %v.", known)
		}
	}
	return nil
}

// inProgressRetry is the largest Retry-After of a call that the budget would admit if the calls in progress used nothing.
const inProgressRetry = 5 * time.Second

// final returns a problem that clients must not retry automatically.
func final(code lathe.Code, message string) *Problem {
	return &Problem{Status: code.HTTPStatus(), Code: string(code), Message: message, NoRetry: true}
}

// overBudget returns the problem of a run that a budget did not admit. If calls in progress have reserved the rest of the budget, the
// client may retry soon; otherwise it must not retry automatically.
func overBudget(res *event.Result) *Problem {
	if lathe.CodeOf(res.Err) == lathe.CodePriceUnknown {
		return final(lathe.CodePriceUnknown, "This key has a budget in US dollars, and the price of this call is not known: choose another model, leave out members that change the price (such as service_tier), or have the operator set models.NAME.price.")
	}
	p := final(lathe.CodeBudgetExhausted, "The budget of this key or of its group does not admit another model call.")
	var over *store.BudgetError
	if !errors.As(res.Err, &over) {
		return p
	}
	bound, balance := &over.Bound, &over.Balance
	tokens, nanos := bound.Limit.Tokens, bound.Limit.Nanos // below 0: no limit
	used := fmt.Sprintf("of %d tokens, %d are used and %d are reserved by calls in progress, and this call could use up to %d", tokens, balance.SpentTokens, balance.ReservedTokens, over.WantTokens)
	if nanos >= 0 && balance.SpentNanos+balance.ReservedNanos+over.WantNanos > nanos {
		used = fmt.Sprintf("of %s US dollars, %s are spent and %s are reserved by calls in progress, and this call could cost up to %s",
			price.Money(nanos), price.Money(balance.SpentNanos), price.Money(balance.ReservedNanos), price.Money(over.WantNanos))
	}
	p.Message = fmt.Sprintf("The budget of the %s %s for %s (UTC) does not admit this call: %s. It begins again at %s.", bound.Kind, bound.Name, bound.Period, used, bound.Resets().Format(time.RFC3339))
	p.RetryAfter = max(over.Resets, time.Second)
	hasTokens := tokens < 0 || balance.SpentTokens+over.WantTokens <= tokens
	hasMoney := nanos < 0 || balance.SpentNanos+over.WantNanos <= nanos
	if hasTokens && hasMoney { // only the calls in progress prevent this one
		p.RetryAfter, p.NoRetry = min(p.RetryAfter, inProgressRetry), false
	}
	return p
}
