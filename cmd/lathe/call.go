package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/daemon"
	"github.com/lathe-run/lathe/observe"
	"github.com/lathe-run/lathe/tool"
)

type callFlags struct {
	Yes  bool `flag:"yes,y" usage:"answer yes where policy asks"`
	JSON bool `flag:"json" usage:"print the call's events as JSON lines instead of the result"`
}

func toolsCallCommand() *cobra.Command {
	var f callFlags
	return withFlags(&cobra.Command{
		Use:   "call NAME|FILE.wasm [ARGUMENTS]",
		Short: "Execute one call without a model, with the same checks and limits",
		Long: `Executes one call with the checks, limits and policy of a model's call, and prints what the model would
receive. ARGUMENTS is a JSON object, or - to read it from standard input; without it the call has no
arguments. FILE.wasm is a WebAssembly module with its manifest beside it.`,
		Example: `  lathe tools call calculator '{"expression":"7 + 35"}'
  lathe tools call sum.wasm '{"a":7,"b":35}'
  lathe tools call --json calculator - < arguments.json`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: first(completeTools),
		RunE: func(cmd *cobra.Command, args []string) error {
			call := lathe.ToolCall{Name: args[0]}
			if len(args) == 2 {
				text, err := argumentText(cmd, args[1])
				if err != nil {
					return err
				}
				call.Arguments = text
			}
			return f.call(cmd, call, len(args) == 2 && args[1] == "-")
		},
	}, &f)
}

// argumentText returns the argument on the command line, or standard input for "-".
func argumentText(cmd *cobra.Command, arg string) (string, error) {
	if arg != "-" {
		return arg, nil
	}
	b, err := readAtMost(stdin(cmd, "the arguments"), maxLine)
	if err != nil {
		return "", usageError("the arguments on standard input: %w", err)
	}
	return string(b), nil
}

func (f *callFlags) call(cmd *cobra.Command, call lathe.ToolCall, fromStdin bool) error {
	cfg, set, err := configuredTools(cmd)
	if err != nil {
		return err
	}
	log, err := daemon.NewLog(cmd.ErrOrStderr(), "", "")
	if err != nil {
		return err
	}
	view := commandScreen(cmd, false)
	running, err := startServers(cmd, cfg, set, &app.ServerOptions{Only: app.ServersOf(cfg, []string{call.Name}), Log: log}, false)
	if err != nil {
		return err
	}
	defer running.Close()
	modules, err := modulesOf(cmd.Context(), cfg, set, log, &call)
	if err != nil {
		return err
	}
	defer modules.Close()
	for _, text := range running.Warnings() {
		view.warn(printable(text))
	}
	var approver lathe.Approver
	switch in := cmd.InOrStdin(); {
	case f.Yes:
		approver = yesApprover{}
	case isTerminal(in) && view.errTerm:
		approver = newTerminalApprover(in, view)
	}
	trail, err := app.OpenAudit(cfg, log)
	if err != nil {
		return err
	}
	withAsker(cmd, approver)
	var sinks observe.Sinks
	if trail != nil {
		defer func() { _ = trail.Close() }() // each line was synced when it was written
		sinks = append(sinks, trail)
	}
	var lines *observe.JSONLines
	if f.JSON {
		lines = observe.NewJSONLines(jsonOut(cmd.OutOrStdout()), &observe.JSONLinesOptions{Content: true})
		sinks = append(sinks, lines)
	}
	run := &lathe.RunInfo{RunID: "command-line", RequestID: "command-line"}
	msg := lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{call}}
	runner, err := app.NewRunner(cfg, set, &app.CallOptions{Approver: approver, Audit: trail, Log: log})
	if err != nil {
		return err
	}
	work := runner.Begin(run, nil)
	work.Adopt(&msg)
	n := int64(0)
	outcome := work.Execute(cmd.Context(), 1, []tool.Call{{ToolCall: msg.Calls()[0]}}, func(d event.Data) {
		n++
		e := event.Event{ID: n, Time: time.Now(), RunID: run.RunID, RequestID: run.RequestID, Turn: 1, Data: d}
		sinks.Emit(cmd.Context(), e)
		if r, ok := d.(*event.ToolCallResult); ok && r.ErrorType == lathe.CodeUnknownTool { // events have "unknown" as its name
			shown := *r
			shown.Tool = printable(call.Name)
			e.Data = &shown
		}
		view.Emit(cmd.Context(), e)
	})
	if lines != nil && lines.Err() != nil {
		return failure("writing events: %w", lines.Err())
	}
	r, ok := outcome.Result()
	if !ok {
		return failure("the call has no result")
	}
	return printResult(cmd, &r, f.JSON, func() error { return callProblem(&r, call, fromStdin, set) })
}

// printResult prints the result that a model would receive, unless reported is true, and returns an error with the exit code of the call.
// problem returns the error text for a result that is an error.
func printResult(cmd *cobra.Command, r *lathe.ToolResult, reported bool, problem func() error) error {
	if !reported {
		text := r.Content
		if isTerminal(cmd.OutOrStdout()) {
			text = printable(text)
		}
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), text); err != nil {
			return failure("writing the result: %w", err)
		}
	}
	switch {
	case r.Code == lathe.CodePolicyDenied || r.Code == lathe.CodeApprovalDenied || r.Code == lathe.CodeApprovalExpired:
		return exit(exitPolicy, "policy did not allow the call: --yes approves what policy asks about, policy.tools in lathe.yaml decides by name")
	case r.Code == lathe.CodeCancelled:
		return errInterrupted
	case r.IsError:
		return &exitError{exitFailed, problem()}
	}
	return nil
}

// modulesOf starts the configured modules. If the call names the file of a module, it starts only that module and sets the name of the call
// to that of its tool.
func modulesOf(ctx context.Context, cfg *config.Config, set *tool.Set, log *slog.Logger, call *lathe.ToolCall) (m *app.Modules, err error) {
	if !strings.HasSuffix(call.Name, ".wasm") {
		return app.StartModules(ctx, cfg, set, log)
	}
	m, call.Name, err = app.StartModule(ctx, cfg, set, call.Name)
	return m, err
}
