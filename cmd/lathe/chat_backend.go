package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/daemon"
	"github.com/lathe-run/lathe/internal/runinput"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/internal/wire/openai"
	"github.com/lathe-run/lathe/loop"
)

// open returns a backend: a session in this process, or a gateway if --server is given.
func (f *chatFlags) open(cmd *cobra.Command, approver func(*screen) lathe.Approver) (chatBackend, error) {
	if f.server.URL == "" {
		s, err := f.openSession(cmd, nil, approver)
		if err != nil {
			return nil, err
		}
		return &localChat{flags: f, session: s}, nil
	}
	if err := refuseFlags(cmd, "--%s goes without --server: the gateway has its own configuration", "base-url", "wire", "dialect", "client-timeout", "script", "replay"); err != nil {
		return nil, err
	}
	if over := settingOverrides(cmd); len(over) > 0 {
		return nil, usageError("%s goes without --server: the gateway has its own configuration", over[0].From)
	}
	f.server.KeyFile, f.server.KeyEnv = f.KeyFile, f.KeyEnv
	c, err := f.server.client(f.server.URL)
	if err != nil {
		return nil, err
	}
	log, err := daemon.NewLog(cmd.ErrOrStderr(), f.Log, f.Format)
	if err != nil {
		return nil, err
	}
	view := commandScreen(cmd)
	view.showAnswer = true
	d := &daemonChat{flags: f, client: c, out: f.sinks(cmd, view, log), approver: approver(view)}
	return d, d.use(cmd.Context(), f.Model)
}

// A localChat is a backend with a session in this process.
type localChat struct {
	flags   *chatFlags
	session *openSession
}

func (l *localChat) close(ctx context.Context) error { return l.session.Close(ctx) }

func (l *localChat) model() string {
	e := l.session.entry
	if e.Name == commandLineModel {
		return e.Model
	}
	return e.Name
}

func (l *localChat) models(context.Context) ([]string, error) {
	names := slices.Sorted(maps.Keys(l.session.cfg.Models))
	names = slices.DeleteFunc(names, func(name string) bool { return name == commandLineModel })
	if !slices.Contains(names, l.model()) {
		names = append(names, l.model())
	}
	return names, nil
}

// use selects another configured model, a simulated one or, with --base-url, another model of that server.
func (l *localChat) use(_ context.Context, name string) error {
	entry, err := l.flags.modelEntry(l.session.cfg, name)
	if err != nil {
		if l.flags.BaseURL == "" {
			names, _ := l.models(context.Background())
			return fmt.Errorf("no model %q: %s", printable(name), text.Suggest(name, names, "/model lists them"))
		}
		if entry, err = l.flags.modelEntry(l.session.cfg, commandLineModel); err != nil {
			return err
		}
		entry.Model = name
	}
	if err := l.session.UseModel(entry); err != nil {
		return app.Cause(err)
	}
	l.session.entry = entry
	return nil
}

func (l *localChat) tools(context.Context) (out []chatTool, err error) {
	policy, err := app.NewPolicy(l.session.cfg)
	if err != nil {
		return nil, err
	}
	for _, sp := range l.session.Tools.Specs() {
		if sp.Hidden || l.flags.prompt.Tools != nil && !slices.Contains(l.flags.prompt.Tools, sp.Name) {
			continue
		}
		out = append(out, chatTool{sp.Name, sp.Description, sp.Effect.Declared(), policy.Tool(&lathe.RunInfo{}, sp).Decision.String()})
	}
	return out, nil
}

func (l *localChat) answer(ctx context.Context, conversation []lathe.Message) ([]lathe.Message, error) {
	res, err := l.session.Run(ctx, runinput.With(&loop.Input{Messages: conversation, Allow: l.flags.prompt.Tools}, runinput.Extra{AllowAbsent: true}))
	if res == nil {
		return nil, app.Cause(err)
	}
	if res.Blank != "" && !l.flags.Quiet {
		l.session.out.view.note("the answer is blank: " + blankCause(res.Blank))
	}
	return res.History, l.flags.ended(ctx, res, err, l.session.out.view)
}

// A daemonChat is a backend that runs on a gateway.
type daemonChat struct {
	flags    *chatFlags
	client   *daemonClient
	out      *outputs
	approver lathe.Approver // nil: calls wait for another approver
	name     string
}

func (d *daemonChat) close(context.Context) error { return d.client.close() }

func (d *daemonChat) model() string { return d.name }

func (d *daemonChat) models(ctx context.Context) ([]string, error) {
	var list modelList
	err := d.client.call(ctx, "GET", "/v1/models", nil, &list)
	return list.names(), err
}

func (d *daemonChat) use(ctx context.Context, name string) error {
	names, err := d.models(ctx)
	if err != nil {
		return err
	}
	switch {
	case name == "" && len(names) == 0:
		return usageError("the gateway at %s offers no model: configure one in its lathe.yaml", d.client.base)
	case name == "":
		name = firstModel(names)
	case !slices.Contains(names, name):
		return usageError("the gateway at %s has no model %q: %s", d.client.base, printable(name), text.Suggest(name, names, "`lathe chat --server "+d.client.base+"` and /model list them"))
	}
	d.name = name
	return nil
}

// firstModel returns the first model that is not simulated, else the default simulated model.
func firstModel(names []string) string {
	for _, name := range names {
		if !isSimulated(name) {
			return name
		}
	}
	if slices.Contains(names, config.SimModel) {
		return config.SimModel
	}
	return names[0]
}

func (d *daemonChat) tools(ctx context.Context) ([]chatTool, error) {
	var list page[struct {
		chatTool
		Advertised bool `json:"advertised"`
	}]
	if err := d.client.call(ctx, "GET", "/api/tools", nil, &list); err != nil {
		return nil, err
	}
	var out []chatTool
	for _, t := range list.Data {
		if t.Advertised && (d.flags.prompt.Tools == nil || slices.Contains(d.flags.prompt.Tools, t.Name)) {
			out = append(out, t.chatTool)
		}
	}
	return out, nil
}

// cancelTimeout limits the request that cancels a run.
const cancelTimeout = 5 * time.Second

// answer starts a run and shows its events. It asks for the approvals that the run waits for.
func (d *daemonChat) answer(ctx context.Context, conversation []lathe.Message) ([]lathe.Message, error) {
	body := map[string]any{"model": d.name, "messages": json.RawMessage("[" + string(openai.AppendMessages(nil, conversation, nil)) + "]")}
	if d.flags.prompt.Tools != nil {
		body["tools"] = d.flags.prompt.Tools
	}
	var run runDetail
	if err := d.client.call(ctx, "POST", "/api/runs", body, &run); err != nil {
		return nil, err
	}
	w := &watchedRun{chat: d}
	for {
		err := d.client.events(ctx, run.RunID, w.last(), followPause, func(e *event.Event) error {
			w.show(ctx, e)
			return nil
		})
		if ctx.Err() != nil {
			err = cmp.Or(d.cancel(ctx, run.RunID), err)
		}
		if err != nil {
			return w.conversation(), err
		}
		switch {
		case w.finished != nil:
			return w.conversation(), d.flags.ended(ctx, &event.Result{Reason: w.finished.Reason}, w.failure(), d.out.view)
		case d.approver == nil: // the run is suspended, and no user can be asked
			return w.conversation(), fmt.Errorf("the run waits for an approval: lathe runs show %s%s", run.RunID, d.client.flag)
		}
		if err := d.decide(ctx, run.RunID); err != nil {
			return w.conversation(), err
		}
	}
}

// cancel cancels a run whose ctx is done.
func (d *daemonChat) cancel(ctx context.Context, runID string) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
	defer stop()
	return d.client.call(ctx, "POST", "/api/runs/"+url.PathEscape(runID)+"/cancel", nil, nil)
}

// decide asks the user about the pending approvals of a run, and sends the decisions to the gateway.
func (d *daemonChat) decide(ctx context.Context, runID string) error {
	run, err := d.client.show(ctx, runID)
	if err != nil {
		return err
	}
	var answered bool
	for _, call := range run.Open {
		if call.State != "awaiting_approval" {
			continue
		}
		if err := d.decideCall(ctx, run, &call); err != nil {
			return err
		}
		answered = true
	}
	if !answered {
		return fmt.Errorf("the run waits for %s: lathe runs show %s%s", cmp.Or(string(run.Reason), "input"), runID, d.client.flag)
	}
	return nil
}

// decideCall asks the user about one pending call of a run, and sends the decision. If the decision fails with a *daemonProblem, or if the run
// was not suspended, the error is shown and not returned: the events that follow show the outcome of the call.
func (d *daemonChat) decideCall(ctx context.Context, run *runDetail, call *openCallView) error {
	answer, err := d.approver.Approve(ctx, call.request())
	if err != nil {
		return err
	}
	if answer.Arguments != nil {
		if err := d.client.checkEdited(ctx, call.Tool, answer.Arguments); err != nil {
			return err
		}
	}
	err = d.client.decide(ctx, run.RunID, call, decisionOf(&answer, ""))
	var problem *daemonProblem
	isTolerated := errors.As(err, &problem) || run.Status != "parked"
	if err != nil && isTolerated {
		d.out.view.note(err.Error())
		return nil
	}
	return err
}

// request returns the request for the approval of a pending call.
func (v *openCallView) request() *lathe.ApprovalRequest {
	spec := &lathe.ToolSpec{Name: v.Tool, Origin: v.Origin}
	for _, effect := range []lathe.Effect{lathe.ReadOnly, lathe.Idempotent, lathe.Writes} {
		if effect.String() == v.Effect {
			spec.Effect = effect
		}
	}
	return &lathe.ApprovalRequest{CallInfo: lathe.CallInfo{Tool: spec, Args: json.RawMessage(v.exact())},
		Verdict: lathe.Verdict{Decision: lathe.Ask, Rule: v.Rule, Reason: v.Reason}, Digest: v.Digest, ExpiresAt: v.ExpiresAt}
}

// A watchedRun is a run of a gateway whose events are shown. Only show changes it.
type watchedRun struct {
	chat     *daemonChat
	events   []event.Event // stored events
	finished *event.RunFinished

	// These are of the current turn; the start of a model call resets them.
	shown  strings.Builder // text that has been shown
	deltas int64           // number of deltas received
	gap    bool            // deltas were missed
}

func (w *watchedRun) last() int64 {
	if n := len(w.events); n > 0 {
		return w.events[n-1].ID
	}
	return 0
}

// show shows an event. If deltas of a turn were missed, the rest of its text is shown at the end of the turn.
func (w *watchedRun) show(ctx context.Context, e *event.Event) {
	if e.ID == 0 { // a delta
		w.deltas++
		w.gap = w.gap || e.N != w.deltas
		if w.gap {
			return
		}
	} else {
		w.events = append(w.events, *e)
	}
	switch d := e.Data.(type) {
	case *event.TextDelta:
		w.shown.WriteString(d.Text)
	case *event.ModelCallStarted:
		w.shown.Reset()
		w.deltas, w.gap = 0, false
	case *event.ModelCallFinished:
		if d.Message != nil {
			if rest, ok := strings.CutPrefix(d.Message.Text(), w.shown.String()); ok {
				w.chat.out.view.writeText(rest)
			}
		}
	case *event.RunFinished:
		w.finished = d
	default: // other events change no state
	}
	w.chat.out.all.Emit(ctx, *e)
}

// conversation returns the messages of the run for the next one, or nil if they are incomplete.
func (w *watchedRun) conversation() []lathe.Message {
	state, err := loop.Fold(w.events)
	if err != nil || len(state.Open) > 0 {
		return nil
	}
	return state.Messages
}

// failure describes why the run failed, as far as its events contain it.
func (w *watchedRun) failure() error {
	for _, e := range slices.Backward(w.events) {
		if d, ok := e.Data.(*event.ModelCallFinished); ok && d.Status == "error" {
			return errors.New(attemptText(d))
		}
	}
	return fmt.Errorf("the run ended %s", w.finished.Reason)
}
