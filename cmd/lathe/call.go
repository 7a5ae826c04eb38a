package main

import (
	"context"
	"fmt"
	"io"
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
			call, source := lathe.ToolCall{Name: args[0]}, "ARGUMENTS"
			if len(args) == 2 {
				if args[1] == "-" {
					source = "the arguments on standard input"
				}
				var err error
				if call.Arguments, err = argumentText(cmd, args[1]); err != nil {
					return err
				}
			}
			return f.call(cmd, call, source)
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

// call starts the tools, executes the call and prints the result. source is the name of the arguments in errors.
func (f *callFlags) call(cmd *cobra.Command, call lathe.ToolCall, source string) error {
	cfg, set, err := configuredTools(cmd)
	if err != nil {
		return err
	}
	log, err := daemon.NewLog(cmd.ErrOrStderr(), "", "")
	if err != nil {
		return err
	}
	view := commandScreen(cmd)
	running, err := startServers(cmd, cfg, set, &app.ServerOptions{Only: app.ServersOf(cfg, []string{call.Name}), Log: log}, showProgress)
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
	trail, err := app.OpenAudit(cfg, log)
	if err != nil {
		return err
	}
	var sinks observe.Sinks
	if trail != nil {
		defer func() { _ = trail.Close() }() // each line was synced when it was written
		sinks = append(sinks, trail)
	}
	approver := f.approver(cmd, view)
	withAsker(cmd, approver)
	runner, err := app.NewRunner(cfg, set, &app.CallOptions{Approver: approver, Audit: trail, Log: log})
	if err != nil {
		return err
	}
	result, err := f.execute(cmd, runner, &call, view, sinks)
	if err != nil {
		return err
	}
	if !f.JSON {
		if err := printResult(cmd.OutOrStdout(), result.Content); err != nil {
			return err
		}
	}
	switch result.Code {
	case lathe.CodePolicyDenied, lathe.CodeApprovalDenied, lathe.CodeApprovalExpired:
		return exit(exitPolicy, "policy did not allow the call: --yes approves what policy asks about, policy.tools in lathe.yaml decides by name")
	case lathe.CodeCancelled:
		return errInterrupted
	}
	if result.IsError {
		return &exitError{exitFailed, callProblem(result, call, source, set)}
	}
	return nil
}

// approver returns the approver of the call; nil: calls that need an approval are denied.
func (f *callFlags) approver(cmd *cobra.Command, view *screen) lathe.Approver {
	if f.Yes {
		return yesApprover{}
	}
	if in := cmd.InOrStdin(); isTerminal(in) && view.errTerm {
		return newTerminalApprover(in, view)
	}
	return nil
}

// execute executes the call, shows it on the screen, and passes its events to the sinks and, with --json, to stdout.
func (f *callFlags) execute(cmd *cobra.Command, runner *tool.Runner, call *lathe.ToolCall, view *screen, sinks observe.Sinks) (*lathe.ToolResult, error) {
	var lines *observe.JSONLines
	if f.JSON {
		lines = observe.NewJSONLines(jsonOut(cmd.OutOrStdout()), &observe.JSONLinesOptions{Content: true})
		sinks = append(sinks, lines)
	}
	run := &lathe.RunInfo{RunID: "command-line", RequestID: "command-line"}
	msg := lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{*call}}
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
		return nil, failure("writing events: %w", lines.Err())
	}
	result, ok := outcome.Result()
	if !ok {
		return nil, failure("the call has no result")
	}
	return &result, nil
}

// printResult prints the text that a model would receive.
func printResult(out io.Writer, text string) error {
	if isTerminal(out) {
		text = printable(text)
	}
	if _, err := fmt.Fprintln(out, text); err != nil {
		return failure("writing the result: %w", err)
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
