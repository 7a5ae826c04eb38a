package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/loop"
)

func runsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "List, show, answer and go on with the runs of a store",
		Long: `Works on the runs that a store keeps: those of ` + "`lathe run --store sqlite:PATH`" + ` and of the daemon.

A run that waits for an approval goes on with approve or deny. One whose process ended goes on with resume:
what was done is not done again, and a call to a tool that writes, of which nobody knows what became, is
answered interrupted.`,
	}
	cmd.AddCommand(runsListCommand(), runsShowCommand(), runsEventsCommand(), runsExportCommand(), runsCallsCommand(),
		runsAnswerCommand("approve", "Approve a call that waits, and go on", lathe.Approval{Approved: true, ReasonCode: "approved_by_user"}),
		runsAnswerCommand("deny", "Deny a call that waits, and go on", lathe.Approval{ReasonCode: "denied_by_user"}),
		runsResumeCommand(), runsCancelCommand(), runsDeleteCommand(), runsImportCommand(), runsCopyCommand(), runsReplayCommand())
	return cmd
}

// oneRun wants the id of a run, and as many further words as more says.
func oneRun(more int) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < 1 || len(args) > 1+more {
			return usageError("want the id of one run; `lathe runs list` shows them")
		}
		return nil
	}
}

func runsListCommand() *cobra.Command {
	var name, after string
	var f lathe.RunFilter
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List runs, the newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := needStore(name, true)
			if err != nil {
				return err
			}
			defer func() { _ = s.Close() }() // it was only read
			f.After = after
			rows, next, err := s.Runs(cmd.Context(), &f)
			if err != nil {
				return storeError(err)
			}
			if asJSON {
				enc := json.NewEncoder(cmd.OutOrStdout())
				for i := range rows {
					if err := enc.Encode(&rows[i]); err != nil {
						return err
					}
				}
			} else if err := printRuns(cmd.OutOrStdout(), rows); err != nil {
				return err
			}
			if next != "" {
				fmt.Fprintf(cmd.ErrOrStderr(), "note: there are more: --after %s\n", next)
			}
			return nil
		},
	}
	storeFlag(cmd, &name)
	fl := cmd.Flags()
	fl.StringVar(&f.Status, "status", "", "only `those` that are running, parked, completed, limited, cancelled or failed")
	fl.StringVar(&f.SessionID, "session", "", "only those of a session's `id`")
	fl.StringVar(&f.Principal, "principal", "", "only those made for a principal's `name`")
	fl.IntVar(&f.Limit, "limit", 50, "at most this `many`")
	fl.StringVar(&after, "after", "", "`cursor` of the list before, for what follows it")
	fl.BoolVar(&asJSON, "json", false, "one JSON line for each")
	return cmd
}

func printRuns(out io.Writer, rows []lathe.RunSummary) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RUN\tSTATUS\tREASON\tMODEL\tTURNS\tCALLS\tTOKENS\tSTARTED")
	for i := range rows {
		r := &rows[i]
		reason := string(r.Reason)
		if reason == "" {
			reason = "-"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\n", r.RunID, r.Status, reason, printable(r.Model), r.Turns, r.ToolCalls, r.Usage.TotalTokens,
			r.Started.Local().Format(time.DateTime))
	}
	return w.Flush()
}

// runDetail is what `runs show --json` prints.
type runDetail struct {
	lathe.RunSummary
	Answer string         `json:"answer,omitempty"`
	Open   []openCallView `json:"open,omitempty"`
}

type openCallView struct {
	ID        string    `json:"tool_call_id"`
	Tool      string    `json:"tool"`
	Arguments string    `json:"arguments"`
	State     string    `json:"state"` // awaiting_approval, begun, planned or proposed
	Digest    string    `json:"args_digest,omitempty"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	Effect    string    `json:"effect,omitempty"` // as the configuration says it now
	Origin    string    `json:"origin,omitempty"`
	Rule      string    `json:"rule,omitempty"` // that asks
}

func viewOf(o *loop.OpenCall) openCallView {
	v := openCallView{ID: o.ID, Tool: o.Name, Arguments: o.Arguments, State: "proposed"}
	switch {
	case o.Asked:
		v.State, v.Digest, v.ExpiresAt = "awaiting_approval", o.Digest, o.ExpiresAt
	case o.Begun:
		v.State = "begun"
	case o.Planned:
		v.State = "planned"
	}
	return v
}

func runsShowCommand() *cobra.Command {
	var name string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show RUN", Short: "Show what a run has come to, and what it waits for", Args: oneRun(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := needStore(name, true)
			if err != nil {
				return err
			}
			defer func() { _ = s.Close() }() // it was only read
			rows, _, err := s.Runs(cmd.Context(), &lathe.RunFilter{RunID: args[0]})
			if err != nil {
				return storeError(err)
			}
			state, err := engine.New(&engine.Options{Store: s}).State(cmd.Context(), args[0])
			if err != nil {
				return storeError(err)
			}
			if len(rows) != 1 {
				return storeError(lathe.ErrNotFound)
			}
			d := runDetail{RunSummary: rows[0]}
			if state.Finished != nil {
				d.Answer = state.Finished.Answer
			}
			for i := range state.Open {
				d.Open = append(d.Open, viewOf(&state.Open[i]))
			}
			if err := describeOpen(cmd, s, args[0], d.Open); err != nil {
				return err
			}
			if asJSON {
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetEscapeHTML(false)
				return enc.Encode(&d)
			}
			return printRun(cmd.OutOrStdout(), &d)
		},
	}
	storeFlag(cmd, &name)
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	return cmd
}

func printRun(out io.Writer, d *runDetail) error {
	if err := printRuns(out, []lathe.RunSummary{d.RunSummary}); err != nil {
		return err
	}
	for _, o := range d.Open {
		fmt.Fprintf(out, "\n%s  %s  %s\n", o.ID, printable(o.Tool), strings.ReplaceAll(o.State, "_", " "))
		if o.Effect != "" {
			fmt.Fprintf(out, "  effect %s, from %s\n", o.Effect, printable(o.Origin))
		}
		if o.Rule != "" {
			fmt.Fprintf(out, "  rule %s asks: %s\n", printable(o.Rule), ruleHint(o.Rule, o.Tool))
		}
		fmt.Fprintf(out, "  the model wrote these arguments:\n    %s\n", strings.ReplaceAll(clipArgs(visible(o.Arguments)), "\n", "\n    "))
		if o.State == "awaiting_approval" {
			fmt.Fprintf(out, "  until %s: lathe runs approve %s %s\n", o.ExpiresAt.Local().Format(time.DateTime), d.RunID, o.ID)
		}
	}
	if d.Status == "running" {
		fmt.Fprintf(out, "\nno process has said how it ended: if none carries it, lathe runs resume %s\n", d.RunID)
	}
	if d.Answer != "" {
		fmt.Fprintf(out, "\n%s\n", printable(d.Answer))
	}
	return nil
}

func runsEventsCommand() *cobra.Command {
	var name string
	var after int64
	var noContent bool
	cmd := &cobra.Command{
		Use: "events RUN", Short: "Print the events of a run, one JSON line each", Args: oneRun(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return printEvents(cmd, name, args[0], after, !noContent)
		},
	}
	storeFlag(cmd, &name)
	cmd.Flags().Int64Var(&after, "after", 0, "only those after this event `id`")
	cmd.Flags().BoolVar(&noContent, "no-content", false, "leave out message, argument and output text")
	return cmd
}

func runsExportCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use: "export RUN", Short: "Print the whole log of a run, as JSON lines", Args: oneRun(0),
		RunE: func(cmd *cobra.Command, args []string) error { return printEvents(cmd, name, args[0], 0, true) },
	}
	storeFlag(cmd, &name)
	return cmd
}

func printEvents(cmd *cobra.Command, name, runID string, after int64, content bool) error {
	s, err := needStore(name, true)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }() // it was only read
	for e, err := range s.Read(cmd.Context(), runID, after) {
		if err != nil {
			return storeError(err)
		}
		line, err := e.MarshalJSON()
		if !content {
			line, err = e.MarshalData()
		}
		if err != nil {
			return err
		}
		if _, err := cmd.OutOrStdout().Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return nil
}

func runsCallsCommand() *cobra.Command {
	var name string
	var f lathe.RunFilter
	cmd := &cobra.Command{
		Use: "calls [RUN]", Short: "List model calls, the newest first, one JSON line each", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := needStore(name, true)
			if err != nil {
				return err
			}
			defer func() { _ = s.Close() }() // it was only read
			if len(args) == 1 {
				f.RunID = args[0]
			}
			rows, next, err := s.ModelCalls(cmd.Context(), &f)
			if err != nil {
				return storeError(err)
			}
			enc := json.NewEncoder(cmd.OutOrStdout())
			for i := range rows {
				if err := enc.Encode(&rows[i]); err != nil {
					return err
				}
			}
			if next != "" {
				fmt.Fprintf(cmd.ErrOrStderr(), "note: there are more: --after %s\n", next)
			}
			return nil
		},
	}
	storeFlag(cmd, &name)
	cmd.Flags().StringVar(&f.SessionID, "session", "", "only those of a session's `id`")
	cmd.Flags().IntVar(&f.Limit, "limit", 50, "at most this `many`")
	cmd.Flags().StringVar(&f.After, "after", "", "`cursor` of the list before, for what follows it")
	return cmd
}

// givenAnswer answers the approvals of the calls that a person has named; the others wait on.
type givenAnswer struct {
	digests map[string]bool
	answer  lathe.Approval
	wrong   error // with the arguments in answer: nothing was answered
}

// Approve answers what was asked about, and nothing else.
func (g *givenAnswer) Approve(_ context.Context, req *lathe.ApprovalRequest) (lathe.Approval, error) {
	if !g.digests[req.Digest] {
		return lathe.Approval{}, lathe.ErrPending
	}
	if g.answer.Arguments != nil {
		if g.wrong = checkEdited(req.Tool, g.answer.Arguments); g.wrong != nil {
			return lathe.Approval{}, lathe.ErrPending
		}
	}
	delete(g.digests, req.Digest)
	return g.answer, nil
}

func runsAnswerCommand(verb, short string, answer lathe.Approval) *cobra.Command {
	var f runFlags
	var by, edit, reason string
	cmd := &cobra.Command{
		Use: verb + " RUN [CALL]", Short: short, Args: oneRun(1),
		Long: short + ". CALL may be left out where one call waits.",
		RunE: func(cmd *cobra.Command, args []string) error {
			answer := answer
			answer.By = by
			if reason != "" {
				answer.ReasonCode = reason
			}
			if edit != "" {
				answer.Arguments = json.RawMessage(edit)
				if err := checkEdited(nil, answer.Arguments); err != nil {
					return usageError("--edit: %w; nothing was approved", err)
				}
			}
			given := &givenAnswer{answer: answer}
			err := f.goOn(cmd, args[0], func(state *loop.State) (_ lathe.Approver, err error) {
				given.digests, err = waiting(state, args[1:])
				return given, err
			}, (*engine.Engine).Resume)
			if given.wrong != nil {
				return usageError("--edit: %w; nothing was approved, the call waits on", given.wrong)
			}
			return err
		},
	}
	f.modelFlags(cmd)
	cmd.Flags().StringVar(&by, "by", "command line", "`name` of who decides, for the log")
	if answer.Approved {
		cmd.Flags().StringVar(&edit, "edit", "", "`JSON` object that takes the place of the arguments")
	} else {
		cmd.Flags().StringVar(&reason, "reason", "", "`code` of the reason, for the log and the model")
	}
	return cmd
}

// waiting returns the digests of the approvals that the words name, or of the only one.
func waiting(state *loop.State, calls []string) (map[string]bool, error) {
	digests := map[string]bool{}
	var ids []string
	for i := range state.Open {
		o := &state.Open[i]
		if !o.Asked {
			continue
		}
		ids = append(ids, o.ID)
		if len(calls) == 0 || calls[0] == o.ID {
			digests[o.Digest] = true
		}
	}
	switch {
	case len(ids) == 0:
		return nil, &exitError{exitFailed, errors.New("no call of the run waits for an approval")}
	case len(calls) == 0 && len(ids) > 1:
		return nil, usageError("%d calls wait: name one of %s", len(ids), strings.Join(ids, ", "))
	case len(digests) == 0:
		return nil, usageError("no call %q waits: %s", calls[0], didYouMean(calls[0], ids, "there is "+strings.Join(ids, ", ")))
	}
	return digests, nil
}

func runsResumeCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use: "resume RUN", Short: "Go on with a run whose process ended", Args: oneRun(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.goOn(cmd, args[0], nil, (*engine.Engine).Resume)
		},
	}
	f.modelFlags(cmd)
	return cmd
}

func runsCancelCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use: "cancel RUN", Short: "End a run that waits, or whose process ended", Args: oneRun(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			cancel := func(e *engine.Engine, ctx context.Context, l *loop.Loop, id string, _ map[string]lathe.Output, sinks ...lathe.Sink) (*lathe.Result, error) {
				return e.Cancel(ctx, l, id, sinks...)
			}
			return f.goOn(cmd, args[0], nil, cancel)
		},
	}
	f.modelFlags(cmd)
	return cmd
}

// goOn opens the store, makes the loop that the run was started with, and goes on with it.
func (f *runFlags) goOn(cmd *cobra.Command, runID string, approver func(*loop.State) (lathe.Approver, error),
	do func(*engine.Engine, context.Context, *loop.Loop, string, map[string]lathe.Output, ...lathe.Sink) (*lathe.Result, error)) (err error) {
	s, err := needStore(f.store, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	state, err := engine.New(&engine.Options{Store: s}).State(cmd.Context(), runID)
	if err != nil {
		return storeError(err)
	}
	if state.Finished != nil {
		return &exitError{exitFailed, fmt.Errorf("the run has ended: %s", state.Finished.Reason)}
	}
	if f.model == "" && f.baseURL == "" {
		if state.Target == commandLineModel {
			return usageError("the run was started with --base-url: give --base-url and --model again")
		}
		f.model = state.Target
	}
	ask := f.approver(cmd, false, s)
	if approver != nil {
		given, err := approver(state)
		if err != nil {
			return err
		}
		ask = func(*screen) lathe.Approver { return given }
	}
	return f.carry(cmd, s, ask, func(e *engine.Engine, l *loop.Loop, _ string) (*lathe.Result, error) {
		return do(e, cmd.Context(), l, runID, nil)
	})
}

// parking lets every approval wait for a later command.
type parking struct{}

// Approve says that nobody has answered yet.
func (parking) Approve(context.Context, *lathe.ApprovalRequest) (lathe.Approval, error) {
	return lathe.Approval{}, lathe.ErrPending
}

func storeError(err error) error {
	if lathe.CodeOf(err) == lathe.CodeNotFound {
		err = errors.New("there is no such run; `lathe runs list` shows them")
	}
	return &exitError{exitFailed, causeOf(err)}
}
