package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/report"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

func runsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "List, show, answer and resume the runs of a store or a gateway",
		Long: `Works on the runs that a store keeps: those of ` + "`lathe run --store sqlite:PATH`" + `, and of a gateway, whatever its store.
A gateway is named by --server, or found beside the file of a store that it has open. Where nothing names a store or a
gateway, the one at ` + defaultServer + ` is asked.

A run that waits for an approval continues after approve or deny. One whose process ended continues after resume:
what was done is not done again, and a call to a tool that writes, whose outcome is not known, is
answered interrupted.`,
	}
	cmd.AddCommand(runsListCommand(), runsShowCommand(), runsEventsCommand(), runsExportCommand(), runsCallsCommand(),
		runsAnswerCommand("approve", "Approve a call that waits, and go on", lathe.Approval{Approved: true, ReasonCode: "approved_by_user"}),
		runsAnswerCommand("deny", "Deny a call that waits, and go on", lathe.Approval{ReasonCode: "denied_by_user"}),
		runsAnswerCommand("answer", "Answer a call that waits in place of its tool, and go on", lathe.Approval{Approved: true, ReasonCode: reasonAnswered}),
		runsResumeCommand(), runsCancelCommand(), runsDeleteCommand(), runsCompactCommand(), runsImportCommand(), runsCopyCommand(), runsReplayCommand())
	return cmd
}

// oneRun requires the id of a run, and accepts up to more further arguments.
func oneRun(more int) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < 1 || len(args) > 1+more {
			return usageError("want the id of one run; `lathe runs list` shows them")
		}
		return nil
	}
}

// runStatuses are the possible statuses of runs.
var runStatuses = []string{"running", "parked", "completed", "limited", "cancelled", "failed"}

func runsListCommand() *cobra.Command {
	var f runsListFlags
	return withFlags(&cobra.Command{
		Use: "list", Short: "List runs, the newest first, or the calls that wait for a person", Args: cobra.NoArgs,
		Example: `  lathe runs list --waiting
  lathe runs list --status parked --store sqlite:runs.db
  lathe runs list --tool search --since 24h --text "order 4711"
  lathe runs list --server http://10.0.3.7:8700 --key-env TEAM_KEY`,
		RunE: f.list,
	}, &f)
}

type runsListFlags struct {
	runsFlags
	Waiting   bool   `flag:"waiting" usage:"the calls that wait for an approval, in place of runs"`
	Status    string `flag:"status" usage:"only *those* that are running, parked, completed, limited, cancelled or failed"`
	Session   string `flag:"session" usage:"only those of a session's *id*"`
	Principal string `flag:"principal" usage:"only those made for a principal's *name*"`
	Tool      string `flag:"tool" usage:"only those that called a tool's *name*"`
	Model     string `flag:"model" usage:"only those of a model's *name*"`
	Reason    string `flag:"reason" usage:"only those that ended or wait for a *reason*, such as max_iterations"`
	ErrorCode string `flag:"error-code" usage:"only those that failed with a *code*"`
	Text      string `flag:"text" usage:"only those with a *text* in a message, argument, result or answer"`
	Since     string `flag:"since" usage:"only those that started at a *time* or later: RFC 3339, or how long ago, such as 15m, 6h or 7d"`
	Until     string `flag:"until" usage:"only those that started before a *time*"`
	Limit     int    `flag:"limit" default:"50" usage:"at most this *many*"`
	After     string `flag:"after" usage:"*cursor* of the list before, for what follows it"`
	JSON      bool   `flag:"json" usage:"one JSON line for each"`
}

// list prints the runs, or with --waiting the calls that wait, that the flags select.
func (f *runsListFlags) list(cmd *cobra.Command, _ []string) error {
	filter := store.RunFilter{Status: f.Status, SessionID: f.Session, Principal: f.Principal, Limit: f.Limit, After: f.After}
	query := store.RunQuery{Tool: f.Tool, Model: f.Model, Reason: lathe.Reason(f.Reason), ErrorCode: f.ErrorCode, Text: f.Text}
	if f.Waiting && (filter.Status != "" || f.Since != "" || f.Until != "" || query != store.RunQuery{}) {
		return usageError("with --waiting only --session, --principal, --limit and --after select: leave the others out")
	}
	if filter.Status != "" && !slices.Contains(runStatuses, filter.Status) {
		return usageError("--status %q: want %s", printable(filter.Status), strings.Join(runStatuses, ", "))
	}
	if err := boundTimes(&filter, f.Since, f.Until, time.Now()); err != nil {
		return err
	}
	return f.withSource(cmd, func(src runSource) (err error) {
		var next string
		if f.Waiting {
			filter.Status = "parked"
			var rows []waitingRow
			if rows, next, err = src.waiting(cmd.Context(), &filter); err == nil {
				err = printRows(cmd, rows, f.JSON, printWaiting)
			}
		} else {
			var rows []store.RunSummary
			if rows, next, err = src.list(cmd.Context(), &filter, &query); err == nil {
				err = printRows(cmd, rows, f.JSON, printRuns)
			}
		}
		if err == nil {
			noteMore(cmd, next)
		}
		return err
	})
}

// boundTimes sets the times of a filter from flags.
func boundTimes(f *store.RunFilter, since, until string, now time.Time) error {
	for _, bound := range []struct {
		flag, value string
		at          *time.Time
	}{{"--since", since, &f.Since}, {"--until", until, &f.Until}} {
		if bound.value == "" {
			continue
		}
		at, err := store.ParseTime(bound.value, now)
		if err != nil {
			return usageError("%s %q: %w", bound.flag, bound.value, err)
		}
		*bound.at = at
	}
	return nil
}

// noteMore prints how to continue a list; next is "" at the end of the list.
func noteMore(cmd *cobra.Command, next string) {
	if next != "" {
		cmd.PrintErrf("note: there are more: --after %s\n", next)
	}
}

// printRows prints rows as JSON lines, or as a table.
func printRows[T any](cmd *cobra.Command, rows []T, asJSON bool, table func(io.Writer, []T) error) error {
	if asJSON {
		return writeLines(cmd, rows...)
	}
	return table(cmd.OutOrStdout(), rows)
}

// writeLines prints each value as one line of JSON.
func writeLines[T any](cmd *cobra.Command, values ...T) error {
	enc := json.NewEncoder(jsonOut(cmd.OutOrStdout()))
	enc.SetEscapeHTML(false)
	for i := range values {
		if err := enc.Encode(&values[i]); err != nil {
			return err
		}
	}
	return nil
}

// maxListedArgs is the number of bytes of arguments in the list of pending calls.
const maxListedArgs = 60

func printWaiting(out io.Writer, rows []waitingRow) error {
	var t report.Table
	t.Row("RUN", "CALL", "TOOL", "EFFECT", "KEY", "EXPIRES", "ARGUMENTS")
	for _, r := range rows {
		t.Row(r.RunID, printable(r.ID), printable(r.Tool), r.Effect, printable(cmp.Or(r.Principal, "-")), timeText(r.ExpiresAt), approval.Visible(text.Clip(r.exact(), maxListedArgs)))
	}
	return t.Write(out)
}

func printRuns(out io.Writer, rows []store.RunSummary) error {
	var t report.Table
	t.Row("RUN", "STATUS", "REASON", "MODEL", "TURNS", "CALLS", "TOKENS", "STARTED")
	for _, r := range rows {
		t.Row(r.RunID, r.Status, cmp.Or(r.Reason, "-"), printable(r.Model), r.Turns, r.ToolCalls, r.Usage.TotalTokens, timeText(r.Started))
	}
	return t.Write(out)
}

// runDetail is the output of `runs show --json`.
type runDetail struct {
	store.RunSummary
	Answer    string         `json:"answer,omitempty"`
	Open      []openCallView `json:"open,omitempty"`
	Decisions []decisionView `json:"decisions,omitempty"` // only from a gateway

	server string // flag that names the gateway
}

// A decisionView is the decision about a call.
type decisionView struct {
	ID        string    `json:"tool_call_id"`
	Tool      string    `json:"tool"`
	Decision  string    `json:"decision"`
	By        string    `json:"by,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	DecidedAt time.Time `json:"decided_at"`
}

type openCallView struct {
	ID        string    `json:"tool_call_id"`
	Tool      string    `json:"tool"`
	Arguments string    `json:"arguments"`
	Exact     string    `json:"exact_arguments,omitempty"` // arguments for the tool, if they differ from Arguments
	State     string    `json:"state"`                     // awaiting_approval, awaiting_result (only from a gateway), begun, planned or proposed
	Digest    string    `json:"args_digest,omitempty"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	Effect    string    `json:"effect,omitempty"` // according to the current configuration
	Origin    string    `json:"origin,omitempty"`
	Rule      string    `json:"rule,omitempty"` // rule that requires the approval
	Reason    string    `json:"reason,omitempty"`
}

// exact returns the arguments that the tool receives.
func (v *openCallView) exact() string { return cmp.Or(v.Exact, v.Arguments) }

func viewOf(o *loop.OpenCall) openCallView {
	v := openCallView{ID: o.ID, Tool: o.Name, Arguments: o.Arguments, State: "proposed"}
	switch {
	case o.Asked:
		v.State, v.Digest, v.ExpiresAt = "awaiting_approval", o.Digest, o.ExpiresAt
		if o.Shown != nil && string(o.Shown) != o.Arguments {
			v.Exact = string(o.Shown)
		}
	case o.Begun:
		v.State = "begun"
	case o.Planned:
		v.State = "planned"
	}
	return v
}

func runsShowCommand() *cobra.Command {
	var f struct {
		runsFlags
		JSON bool `flag:"json" usage:"one JSON object"`
	}
	return withFlags(&cobra.Command{
		Use: "show RUN", Short: "Show what a run has come to, and what it waits for", Args: oneRun(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.withSource(cmd, func(src runSource) error {
				d, err := src.show(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				if f.JSON {
					return writeLines(cmd, d)
				}
				return printRun(cmd.OutOrStdout(), d)
			})
		},
	}, &f)
}

func printRun(out io.Writer, d *runDetail) error {
	if err := printRuns(out, []store.RunSummary{d.RunSummary}); err != nil {
		return err
	}
	for _, o := range d.Open {
		fmt.Fprintf(out, "\n%s  %s  %s\n", o.ID, printable(o.Tool), strings.ReplaceAll(o.State, "_", " "))
		if o.Effect != "" {
			fmt.Fprintf(out, "  effect %s, from %s\n", o.Effect, printable(o.Origin))
		}
		if o.Rule != "" {
			fmt.Fprintf(out, "  rule %s asks: %s\n", printable(o.Rule), ruleAdvice(o.Rule, o.Tool))
		}
		asked := o.State == "awaiting_approval"
		shown := visible(o.exact())
		if !asked { // an approver must see all of the arguments
			shown = clipArgs(shown)
		}
		fmt.Fprintf(out, "  the model wrote these arguments:\n    %s\n", strings.ReplaceAll(shown, "\n", "\n    "))
		if asked {
			fmt.Fprintf(out, "  until %s: lathe runs approve %s %s%s\n", timeText(o.ExpiresAt), d.RunID, o.ID, d.server)
		}
	}
	for _, c := range d.Decisions {
		fmt.Fprintf(out, "\n%s  %s  %s by %s at %s\n", c.ID, printable(c.Tool), c.Decision, printable(cmp.Or(c.By, "no approver")), timeText(c.DecidedAt))
	}
	if d.Status == "running" {
		fmt.Fprintf(out, "\nno process has recorded its end: if none executes it, lathe runs resume %s\n", d.RunID)
	}
	if d.Answer != "" {
		fmt.Fprintf(out, "\n%s\n", printable(d.Answer))
	}
	return nil
}

func runsEventsCommand() *cobra.Command {
	var f struct {
		runsFlags
		After     int64 `flag:"after" usage:"only those after this event *id*"`
		NoContent bool  `flag:"no-content" usage:"leave out message, argument and output text"`
	}
	return withFlags(&cobra.Command{
		Use: "events RUN", Short: "Print the events of a run, one JSON line each", Args: oneRun(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.printEvents(cmd, args[0], f.After, !f.NoContent)
		},
	}, &f)
}

func runsExportCommand() *cobra.Command {
	var f runsFlags
	return withFlags(&cobra.Command{
		Use: "export RUN", Short: "Print the whole log of a run, as JSON lines", Args: oneRun(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.printEvents(cmd, args[0], 0, true)
		},
	}, &f)
}

func (f *runsFlags) printEvents(cmd *cobra.Command, runID string, after int64, content bool) error {
	return f.withSource(cmd, func(src runSource) error {
		return src.history(cmd.Context(), runID, after, func(e *event.Event) error {
			line, err := e.MarshalJSON()
			if !content {
				line, err = e.MarshalData()
			}
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(append(line, '\n'))
			return err
		})
	})
}

func runsCallsCommand() *cobra.Command {
	var f struct {
		runsFlags
		Session string `flag:"session" usage:"only those of a session's *id*"`
		Limit   int    `flag:"limit" default:"50" usage:"at most this *many*"`
		After   string `flag:"after" usage:"*cursor* of the list before, for what follows it"`
	}
	return withFlags(&cobra.Command{
		Use: "calls [RUN]", Short: "List model calls, the newest first, one JSON line each", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter := &store.RunFilter{RunID: strings.Join(args, ""), SessionID: f.Session, Limit: f.Limit, After: f.After}
			return f.withSource(cmd, func(src runSource) error {
				rows, next, err := src.modelCalls(cmd.Context(), filter)
				if err != nil {
					return err
				}
				noteMore(cmd, next)
				return writeLines(cmd, rows...)
			})
		},
	}, &f)
}

// storeError returns the error of a store in the words of the commands, and nil for nil.
func storeError(err error) error {
	if err == nil {
		return nil
	}
	if lathe.CodeOf(err) == lathe.CodeNotFound {
		err = errors.New("there is no such run; `lathe runs list` shows them")
	}
	return exitCause(exitFailed, err)
}
