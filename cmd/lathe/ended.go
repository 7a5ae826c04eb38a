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
	name := up.Error()
	switch {
	case up.Kind == lathe.UpstreamAborted && up.Connect:
		name = "no connection"
	case up.Kind == lathe.UpstreamAborted:
		name = connectionLost
	}
	msg := "the model server failed: " + name
	if words && up.Message != "" {
		msg += ": " + strings.TrimRight(printable(up.Message), ".")
	}
	switch {
	case up.RefusesTools():
		msg += "; try --dialect auto, and `lathe doctor` says what the server can do"
	case up.Kind == lathe.UpstreamAborted && strings.Contains(up.Detail, "base URL"), strings.Contains(up.Detail, "SSL_CERT_FILE"): // the detail contains the advice
	case up.Kind == lathe.UpstreamLoading:
		msg += "; loading_timeout in lathe.yaml gives it longer"
	case up.ProviderCode == lathe.CodeContextLength:
		msg += "; shorten the conversation, or give the model a larger context"
	case up.Connect:
		msg += "; is it running, and is --base-url right?"
	case up.Status == 401 || up.Status == 403:
		msg += "; check the key: --key-file, --key-env, or models.*.key in lathe.yaml"
	case up.Status == 404:
		msg += "; check --model and the path of --base-url"
	case up.Status == 429:
		msg += "; wait, or use another key"
	case up.Kind == lathe.UpstreamTimeout:
		msg += "; see --client-timeout, and open_timeout and read_timeout in lathe.yaml"
	}
	return errors.New(msg)
}

const connectionLost = "the connection was lost"

// toolError describes a run that ended with tool_error, with the reasons for which the calls failed as far as view has them. It names the
// setting that would accept such a run only if at least one call succeeded.
func toolError(res *event.Result, view *screen) error {
	var names []string
	succeeded := false
	for _, turn := range res.Trace {
		for _, c := range turn.Calls {
			succeeded = succeeded || c.OK
		}
	}
	asked := map[string]string{}
	for _, m := range res.History {
		for _, c := range m.Calls() {
			asked[c.ID] = c.Name
		}
	}
	for _, name := range res.FailedTools {
		if name == "unknown" { // events replace the invented name of a tool by "unknown"
			name = inventedNames(res, asked)
		} else if view != nil && view.failures[name] != "" {
			name += " (" + view.failures[name] + ")"
		}
		names = append(names, name)
	}
	text := "the run ended tool_error: the last call failed of " + strings.Join(names, ", ")
	if succeeded {
		text += "; --tool-failure-policy tolerated accepts one success"
	}
	return errors.New(text)
}

// inventedNames lists the names of the unknown tools that the model called.
func inventedNames(res *event.Result, asked map[string]string) string {
	var names []string
	for _, turn := range res.Trace {
		for _, c := range turn.Calls {
			if name := asked[c.ID]; c.Code == lathe.CodeUnknownTool && name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return "unknown"
	}
	return printable(strings.Join(names, ", ")) + " (no such tool)"
}
