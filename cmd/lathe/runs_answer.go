package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/daemon"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/loop"
)

// givenAnswer is an approver that returns the user's answer for the named calls; other calls keep waiting.
type givenAnswer struct {
	answer lathe.Approval

	// Before the run is resumed, give sets one of these for the call: the digest of its approval or, if the client executes it, its result.
	digests map[string]bool
	results map[string]lathe.Output

	wrong error // error of edited arguments, set by Approve: then no call was answered
}

// Approve returns the answer for calls whose digest is in digests, else [lathe.ErrPending].
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

// storedRunFlags are the flags of a command that continues a stored run: in this process, or through a gateway that has the run.
type storedRunFlags struct {
	runFlags
	server serverFlags
}

// with adds the flags to a command.
func (f *storedRunFlags) with(cmd *cobra.Command) *cobra.Command {
	return f.server.beside(f.runFlags.with(cmd))
}

// storeOrDaemon calls local for a run in a store, or remote for a run of a gateway. For a gateway, which has its own configuration, it refuses
// the flags that configure how this process continues a run.
func (f *storedRunFlags) storeOrDaemon(cmd *cobra.Command, local func() error, remote func(*daemonClient) error) error {
	f.server.KeyFile, f.server.KeyEnv = f.KeyFile, f.KeyEnv
	return f.server.storeOrDaemon(cmd, f.Store, local, func(c *daemonClient) error {
		if err := refuseFlags(cmd, "--%s goes with --store: the gateway resumes the run with its own configuration",
			"model", "base-url", "wire", "dialect", "client-timeout", "metrics-file", "script", "replay"); err != nil {
			return err
		}
		return remote(c)
	})
}

// A runAnswer is a command that answers one pending call of a run, in a store or on a gateway.
type runAnswer struct {
	storedRunFlags
	answerFlags
	edit, reason, result string
	answer               lathe.Approval
}

type answerFlags struct {
	By     string `flag:"by" usage:"*name* of who decides, for the log of a store (default \"command line\")"`
	NoWait bool   `flag:"no-wait" usage:"with a gateway: do not wait for the run"`
}

func runsAnswerCommand(verb, short string, answer lathe.Approval) *cobra.Command {
	a := &runAnswer{answer: answer}
	cmd := a.with(&cobra.Command{
		Use: verb + " RUN [CALL]", Short: short, Args: oneRun(1),
		Long: short + `. CALL may be left out where one call waits.

With a store the run goes on in this process. Where a gateway has the runs, it decides and goes on, and this
command shows the run until it waits or has ended; the log names the key.`,
		RunE: a.run,
	})
	fl := withFlags(cmd, &a.answerFlags).Flags()
	switch verb {
	case "approve":
		fl.StringVar(&a.edit, "edit", "", "`JSON` object that takes the place of the arguments")
	case "deny":
		fl.StringVar(&a.reason, "reason", "", "`code` of the reason, for the log and the model")
	default:
		fl.StringVar(&a.result, "result", "", "`text` or JSON that is the result of the call, whose tool is not called")
	}
	return cmd
}

func (a *runAnswer) run(cmd *cobra.Command, args []string) error {
	if a.edit != "" {
		a.answer.Arguments = json.RawMessage(a.edit)
		if err := checkEdited(nil, a.answer.Arguments); err != nil {
			return usageError("--edit: %w; nothing was approved", err)
		}
	}
	if a.answer.ReasonCode == reasonAnswered {
		if a.result == "" {
			return usageError("want --result: what is the result of the call")
		}
		a.answer.Result = asResult(a.result)
	}
	if a.reason != "" {
		a.answer.ReasonCode = a.reason
	}
	call := strings.Join(args[1:], "") // at most one
	return a.storeOrDaemon(cmd, func() error { return a.answerInStore(cmd, args[0], call) },
		func(c *daemonClient) error { return a.answerOnDaemon(cmd, c, args[0], call) })
}

const reasonAnswered = "answered_by_user"

// answerInStore answers a call of a run in the store and resumes the run in this process.
func (a *runAnswer) answerInStore(cmd *cobra.Command, runID, call string) error {
	a.answer.By = cmp.Or(a.By, "command line")
	given := &givenAnswer{answer: a.answer}
	err := a.resumeFromStore(cmd, runID, func(state *loop.State) (lathe.Approver, error) {
		return given, a.give(given, state, call)
	}, func(e *engine.Engine, l *loop.Loop) (*event.Result, error) {
		return e.Resume(cmd.Context(), l, runID, given.results)
	})
	if given.wrong != nil {
		return usageError("--edit: %w; nothing was approved, the call waits on", given.wrong)
	}
	return err
}

// give chooses the call of the run that given answers, and sets its digest or its result in given.
func (a *runAnswer) give(given *givenAnswer, state *loop.State, call string) error {
	var open []openCallView
	for i := range state.Open {
		v := viewOf(&state.Open[i])
		if v.State != "awaiting_approval" && state.Paused == lathe.ReasonAwaitingToolResults {
			v.State = "awaiting_result"
		}
		open = append(open, v)
	}
	o, err := a.choose(open, call)
	if err != nil {
		return err
	}
	if o.State == "awaiting_result" {
		given.results = map[string]lathe.Output{o.ID: {Data: a.answer.Result}}
	} else {
		given.digests = map[string]bool{o.Digest: true}
	}
	return nil
}

// choose returns the call to answer: the named one, or the only one.
func (a *runAnswer) choose(open []openCallView, call string) (*openCallView, error) {
	states := []string{"awaiting_approval"}
	if a.answer.ReasonCode == reasonAnswered {
		states = append(states, "awaiting_result")
	}
	var chosen *openCallView
	var ids []string
	for i := range open {
		o := &open[i]
		if !slices.Contains(states, o.State) {
			continue
		}
		ids = append(ids, o.ID)
		if call == "" || call == o.ID {
			chosen = o
		}
	}
	switch {
	case len(ids) == 0:
		return nil, failure("no call of the run waits for an approval")
	case call == "" && len(ids) > 1:
		return nil, usageError("%d calls wait: name one of %s", len(ids), strings.Join(ids, ", "))
	case chosen == nil:
		return nil, usageError("no call %q waits: %s", call, text.Suggest(call, ids, "there is "+strings.Join(ids, ", ")))
	}
	return chosen, nil
}

// answerOnDaemon sends the answer for a call to a gateway, and shows the run until it waits or has ended.
func (a *runAnswer) answerOnDaemon(cmd *cobra.Command, c *daemonClient, runID, call string) error {
	ctx := cmd.Context()
	if a.By != "" {
		return usageError("--by goes with --store: a gateway records the name of the key")
	}
	d, err := c.show(ctx, runID)
	if err != nil {
		return err
	}
	if v := d.decided(call); v != nil {
		return failure("%s was %s before, by %s at %s; the run is %s", v.ID, v.Decision, printable(v.By), timeText(v.DecidedAt), d.Status)
	}
	if d.Status != "parked" && d.Status != "running" {
		return failure("the run has ended: %s", d.Reason)
	}
	o, err := a.choose(d.Open, call)
	if err != nil {
		return err
	}
	if err := a.send(ctx, c, runID, o); err != nil || a.NoWait {
		return err
	}
	return a.follow(cmd, c, runID, d.LastID)
}

// send sends the answer for a call to a gateway: a result if the client executes the call, else a decision.
func (a *runAnswer) send(ctx context.Context, c *daemonClient, runID string, call *openCallView) error {
	if a.answer.Arguments != nil {
		if err := c.checkEdited(ctx, call.Tool, a.answer.Arguments); err != nil {
			return err
		}
	}
	if call.State == "awaiting_result" {
		return c.call(ctx, "POST", "/api/runs/"+runID+"/tool_results",
			map[string]any{"results": []any{map[string]any{"tool_call_id": call.ID, "content": a.answer.Result}}}, nil)
	}
	return c.decide(ctx, runID, call, decisionOf(&a.answer, a.reason))
}

// decided returns the decision that was made before about a call, or about the only call if call is "". It returns nil if such a call
// waits, or if there is no decision.
func (d *runDetail) decided(call string) *decisionView {
	for _, o := range d.Open {
		if o.State == "awaiting_approval" && (call == "" || o.ID == call) {
			return nil
		}
	}
	for i, v := range d.Decisions {
		if v.ID == call || call == "" && d.Status != "parked" {
			return &d.Decisions[i]
		}
	}
	return nil
}

// decisionOf returns the body of the request with an answer. reason is the code of a denial, "": none.
func decisionOf(answer *lathe.Approval, reason string) map[string]any {
	switch {
	case answer.Result != nil:
		return map[string]any{"decision": "answer", "result": answer.Result}
	case answer.Arguments != nil:
		return map[string]any{"decision": "edit", "arguments": answer.Arguments}
	case answer.Approved:
		return map[string]any{"decision": "approve"}
	case reason != "":
		return map[string]any{"decision": "deny", "reason": reason}
	}
	return map[string]any{"decision": "deny"}
}

// follow shows the events of a run on a gateway with ids above after, until the run is suspended or has ended, and returns an error for its
// end.
func (f *runFlags) follow(cmd *cobra.Command, c *daemonClient, runID string, after int64) error {
	ctx := cmd.Context()
	log, err := daemon.NewLog(cmd.ErrOrStderr(), f.Log, f.Format)
	if err != nil {
		return err
	}
	view := commandScreen(cmd)
	view.showAnswer = !f.JSON
	view.wholeTurns = true // earlier deltas of the turn were missed
	out := f.sinks(cmd, view, log)
	err = f.showEvents(ctx, c, runID, after, out)
	var refused *daemonProblem
	if errors.As(err, &refused) && refused.Code == "run_not_found" { // an approver cannot read the events of runs of other keys
		cmd.PrintErrln("note: the call is answered; the run is of another key")
		return nil
	}
	if ctx.Err() != nil {
		cmd.PrintErrf("note: the run goes on: lathe runs show %s%s\n", runID, c.flag)
	}
	if err != nil {
		return err
	}
	d, err := c.show(ctx, runID)
	if err != nil {
		return err
	}
	if err := out.close(""); err != nil {
		return &exitError{exitFailed, err}
	}
	if d.Status == "parked" {
		cmd.PrintErrf("note: %s waits; see it: lathe runs show %s%s\n", count(len(d.Pending), "call"), runID, c.flag)
	}
	return f.ended(ctx, &event.Result{Reason: d.Reason}, fmt.Errorf("the run is %s", d.Status), nil)
}

// showEvents passes the events of a run with ids above after to the sinks, until the run is suspended or has ended.
func (f *runFlags) showEvents(ctx context.Context, c *daemonClient, runID string, after int64, out *outputs) error {
	shown := false // the text of the last turn has been shown
	return c.events(ctx, runID, after, followPause, func(e *event.Event) error {
		switch d := e.Data.(type) {
		case *event.ModelCallFinished:
			shown = d.Message != nil && d.Message.Text() != ""
		case *event.ModelCallStarted:
			shown = false
		case *event.RunFinished:
			if !shown && d.Answer != "" && !f.JSON { // the turn ended before the events were requested
				out.view.writeText(d.Answer)
			}
		default: // contains no text
		}
		out.all.Emit(ctx, *e)
		return nil
	})
}

func runsResumeCommand() *cobra.Command {
	var f storedRunFlags
	return f.with(&cobra.Command{
		Use: "resume RUN", Short: "Resume a run whose process ended", Args: oneRun(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, runID := cmd.Context(), args[0]
			return f.storeOrDaemon(cmd, func() error {
				return f.resumeFromStore(cmd, runID, nil, func(e *engine.Engine, l *loop.Loop) (*event.Result, error) {
					return e.Resume(ctx, l, runID, nil)
				})
			}, func(c *daemonClient) error {
				d, err := c.show(ctx, runID)
				if err == nil {
					err = c.call(ctx, "POST", "/api/runs/"+runID+"/resume", nil, nil)
				}
				if err != nil {
					return err
				}
				return f.follow(cmd, c, runID, d.LastID)
			})
		},
	})
}

func runsCancelCommand() *cobra.Command {
	var f storedRunFlags
	return f.with(&cobra.Command{
		Use: "cancel RUN", Short: "End a run that waits, or whose process ended; a gateway's also while it goes on", Args: oneRun(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, runID := cmd.Context(), args[0]
			cancelled := false // set by the function that storeOrDaemon calls
			cancel := func(e *engine.Engine, l *loop.Loop) (*event.Result, error) {
				res, err := e.Cancel(ctx, l, runID)
				cancelled = res != nil && res.Reason == lathe.ReasonCancelled
				return res, err
			}
			err := f.storeOrDaemon(cmd, func() error { return f.resumeFromStore(cmd, runID, nil, cancel) },
				func(c *daemonClient) error {
					var d runDetail
					err := c.call(ctx, "POST", "/api/runs/"+runID+"/cancel", nil, &d)
					cancelled = err == nil && d.Reason == lathe.ReasonCancelled
					if err == nil && !cancelled {
						cmd.PrintErrf("note: the run ends when it has done what it does now: lathe runs show %s%s\n", runID, c.flag)
					}
					return err
				})
			if cancelled && ctx.Err() == nil {
				return nil // the user has requested the cancellation
			}
			return err
		},
	})
}

// resumeFromStore opens the store, makes the loop with which the run was started, and calls do, which resumes or cancels the run. approver
// returns the approver of the resumed run for its state. If approver is nil, the user at the terminal is asked, or calls keep waiting.
func (f *runFlags) resumeFromStore(cmd *cobra.Command, runID string, approver func(*loop.State) (lathe.Approver, error),
	do func(*engine.Engine, *loop.Loop) (*event.Result, error)) (err error) {
	s, err := needStore(f.Store, readWrite)
	if err != nil {
		return err
	}
	defer joinClose(&err, s)
	state, err := engine.ReadState(cmd.Context(), s, runID)
	if err != nil {
		return storeError(err)
	}
	if state.Finished != nil {
		return failure("the run has ended: %s", state.Finished.Reason)
	}
	if f.Model == "" && f.BaseURL == "" {
		if state.Target == commandLineModel {
			return usageError("the run was started with --base-url: give --base-url and --model again")
		}
		f.Model = state.Target
	}
	ask := f.approver(cmd.InOrStdin(), s)
	if approver != nil {
		given, err := approver(state)
		if err != nil {
			return err
		}
		ask = func(*screen) lathe.Approver { return given }
	}
	return f.runSession(cmd, s, ask, func(s *app.Session, _ string) (*event.Result, error) {
		return do(s.Engine, s.Loop)
	})
}

// A pendingApprover is an approver that leaves every decision to a later command.
type pendingApprover struct{}

// Approve always returns [lathe.ErrPending].
func (pendingApprover) Approve(context.Context, *lathe.ApprovalRequest) (lathe.Approval, error) {
	return lathe.Approval{}, lathe.ErrPending
}

// decide sends a decision about the approval of a call.
func (c *daemonClient) decide(ctx context.Context, runID string, call *openCallView, body map[string]any) error {
	body["digest"] = call.Digest
	err := c.call(ctx, "POST", "/api/runs/"+url.PathEscape(runID)+"/approvals/"+url.PathEscape(call.ID), body, nil)
	var p *daemonProblem
	if errors.As(err, &p) && p.Decision != "" {
		return failure("the call was %s before, by %s at %s", p.Decision, printable(p.By), timeText(p.DecidedAt))
	}
	return err
}

// checkEdited returns an error if the tool on the gateway does not accept the arguments, because invalid arguments would end the call.
func (c *daemonClient) checkEdited(ctx context.Context, tool string, args json.RawMessage) error {
	var tools page[struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	}]
	if err := c.call(ctx, "GET", "/api/tools", nil, &tools); err != nil {
		return err
	}
	for _, t := range tools.Data {
		if t.Name != tool {
			continue
		}
		if err := checkEdited(&lathe.ToolSpec{Name: t.Name, Schema: t.Parameters}, args); err != nil {
			return usageError("--edit: %w; nothing was approved, the call waits on", err)
		}
	}
	return nil
}
