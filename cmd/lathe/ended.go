package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// ended returns an error with the exit code for the end of a run and the advice what to try next. view is the screen that showed the run;
// nil: none.
func (f *runFlags) ended(ctx context.Context, res *event.Result, err error, view *screen) error {
	if ctx.Err() != nil {
		return errInterrupted
	}
	switch res.Reason {
	case lathe.ReasonAnswered, lathe.ReasonClientToolCalls:
		return nil
	case lathe.ReasonUpstreamError:
		return &exitError{exitUpstream, upstreamAdvice(err, !f.NoContent)}
	case lathe.ReasonAwaitingApproval, lathe.ReasonAwaitingToolResults:
		return exit(exitPolicy, "the run waits: %s", res.Reason)
	case lathe.ReasonCancelled, lathe.ReasonInterrupted:
		return errInterrupted
	case lathe.ReasonToolError:
		return &exitError{exitFailed, toolError(res, view)}
	case lathe.ReasonInternal:
		return failure("the run ended internal: %w", err)
	default:
		return failure("the run ended %s%s", res.Reason, reasonAdvice[res.Reason])
	}
}

// reasonAdvice has the next step for each reason of a run that has one.
var reasonAdvice = map[lathe.Reason]string{
	lathe.ReasonMaxIterations:  ": raise --max-iterations, or ask for less",
	lathe.ReasonMaxToolCalls:   ": raise --max-total-tool-calls, or ask for less",
	lathe.ReasonToolLoop:       ": the model repeats itself; see --max-repeated-calls and --max-unknown-tools",
	lathe.ReasonRunTimeout:     ": raise --run-timeout",
	lathe.ReasonBudgetExceeded: ": raise --max-tokens-total or --max-cost",
	lathe.ReasonNoToolCalls:    ": the model called no tool, and --tool-use-mode is enforced",
	lathe.ReasonInvalidAnswer:  ": the answer does not match the JSON Schema of the request; see --max-answer-repairs",
	lathe.ReasonEmptyAnswer:    ": the model's answer is blank; `lathe doctor` tests the model and its server",
	lathe.ReasonUnknownTool:    ": the model asked for a tool that is not there, and --strict-unknown-tool is set",
	lathe.ReasonLength:         ": the answer reached a token limit: max_tokens, one of the server, or the end of the model's context",
	lathe.ReasonContentFilter:  ": the server filtered the answer",
}

// upstreamAdvice returns an error with the failure of the model server and advice. It contains the error text of the server only if words
// is true: the text may quote the request, and is shown only to the user of the command.
func upstreamAdvice(err error, words bool) error {
	var up *lathe.UpstreamError
	if !errors.As(err, &up) {
		return err
	}
	aborted, name := up.Kind == lathe.UpstreamAborted, up.Error()
	switch {
	case aborted && up.Connect:
		name = "no connection"
	case aborted:
		name = connectionLost
	}
	msg := "the model server failed: " + name
	if words && up.Message != "" {
		msg += ": " + strings.TrimRight(printable(up.Message), ".")
	}
	return errors.New(msg + upstreamNextStep(up))
}

// upstreamNextStep returns the advice to append to the text of an upstream error. It is "" if no advice exists or the text contains it.
func upstreamNextStep(up *lathe.UpstreamError) string {
	badURL := up.Kind == lathe.UpstreamAborted && strings.Contains(up.Detail, "base URL")
	switch {
	case up.RefusesTools():
		return "; try --dialect auto, and `lathe doctor` says what the server can do"
	case badURL || strings.Contains(up.Detail, "SSL_CERT_FILE"):
		return "" // the detail contains the advice
	case up.Kind == lathe.UpstreamLoading:
		return "; loading_timeout in lathe.yaml gives it longer"
	case up.ProviderCode == lathe.CodeContextLength:
		return "; shorten the conversation, or give the model a larger context"
	case up.Connect:
		return "; is it running, and is --base-url right?"
	case up.Status == 401 || up.Status == 403:
		return "; check the key: --key-file, --key-env, or models.*.key in lathe.yaml"
	case up.Status == 404:
		return "; check --model and the path of --base-url"
	case up.Status == 429:
		return "; wait, or use another key"
	case up.Kind == lathe.UpstreamTimeout:
		return "; see --client-timeout, and open_timeout and read_timeout in lathe.yaml"
	}
	return ""
}

const connectionLost = "the connection was lost"

// toolError describes a run that ended with tool_error, with the reasons for which the calls failed as far as view has them. It names the
// setting that would accept such a run only if at least one call succeeded.
func toolError(res *event.Result, view *screen) error {
	var names []string
	for _, name := range res.FailedTools {
		if name == "unknown" { // events replace the invented name of a tool by "unknown"
			name = inventedNames(res)
		} else if view != nil && view.failures[name] != "" {
			name += " (" + view.failures[name] + ")"
		}
		names = append(names, name)
	}
	text := "the run ended tool_error: the last call failed of " + strings.Join(names, ", ")
	succeeded := slices.ContainsFunc(res.Trace, func(turn event.TurnTrace) bool {
		return slices.ContainsFunc(turn.Calls, func(c event.CallTrace) bool { return c.OK })
	})
	if succeeded {
		text += "; --tool-failure-policy tolerated accepts one success"
	}
	return errors.New(text)
}

// inventedNames lists the names of the unknown tools that the model called. The trace has the outcome of a call, and the history its name.
func inventedNames(res *event.Result) string {
	called := map[string]string{} // call id → name
	for _, m := range res.History {
		for _, c := range m.Calls() {
			called[c.ID] = c.Name
		}
	}
	var names []string
	for _, turn := range res.Trace {
		for _, c := range turn.Calls {
			name := called[c.ID]
			if c.Code == lathe.CodeUnknownTool && name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return "unknown"
	}
	return printable(strings.Join(names, ", ")) + " (no such tool)"
}
