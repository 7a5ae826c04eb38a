package eval

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/builtin"
)

// A Strategy selects how much Lathe corrects mistakes of a model during a measurement, and which model of a [Target] is used. Settings are
// applied in this order, and later ones take precedence: strategy, settings of every evaluation ([Suite.Required]), [Options].Settings,
// fallback, scenario.
type Strategy string

// The strategies of an evaluation.
const (
	// Raw turns off corrections of the model's mistakes: fix_empty_final and repair.
	Raw Strategy = "raw"
	// Baseline uses the defaults of Lathe.
	Baseline Strategy = "baseline"
	// Production is Baseline with the settings of the suite.
	Production Strategy = "production"
)

// Strategies lists all strategies. It must not be changed.
var Strategies = []Strategy{Raw, Baseline, Production}

func (s Strategy) settings(suite *Suite) []Setting {
	switch s {
	case Raw:
		return []Setting{{Key: "fix_empty_final", Value: "false"}, {Key: "repair", Value: "off"}}
	case Production:
		return suite.Settings
	default:
		return nil
	}
}

// Required returns the settings that apply to every evaluation of the suite: tool_use_mode enforced (relaxed if MeasuresLathe),
// tool_failure_policy fatal and parallel_tool_calls false. They take precedence over those of the strategy; [Options].Settings and the
// settings of scenarios take precedence over them.
func (s *Suite) Required() []Setting {
	mode := lathe.ModeEnforced
	if s.MeasuresLathe {
		mode = lathe.ModeRelaxed // a model that calls nothing must not fail
	}
	return []Setting{{Key: "tool_use_mode", Value: string(mode)}, {Key: "tool_failure_policy", Value: "fatal"}, {Key: "parallel_tool_calls", Value: "false"}}
}

// A Target is a model to measure.
type Target struct {
	Name     string      // its name in reports
	Identity string      // what else results depend on, such as URL and dialect; runs store a hash of it
	Model    lathe.Model // required unless ModelFor is set
	// Under contains the model to use in place of Model for some strategies, for example one with fewer transforms.
	Under map[Strategy]lathe.Model
	// ModelFor, if not nil, returns the model for each scenario, in place of Model and Under.
	ModelFor func(*Scenario) lathe.Model
	// Overrides are further members of each model request.
	Overrides []lathe.Member
	// About says what is measured, for readers: server, model, overrides. It must not contain a key, and must not be changed.
	About map[string]string
}

func (t *Target) model(sc *Scenario, s Strategy) lathe.Model {
	if t.ModelFor != nil {
		return t.ModelFor(sc)
	}
	if m := t.Under[s]; m != nil {
		return m
	}
	return t.Model
}

// A Run is one run of one scenario. Its JSON is the content of the file of the run. New versions of Lathe add members and rename none.
type Run struct {
	Model    string   `json:"model"`
	Scenario string   `json:"scenario"`
	Category string   `json:"category,omitempty"`
	Trial    int      `json:"trial"` // from 1
	Strategy Strategy `json:"strategy"`
	Fallback bool     `json:"fallback"` // as in [Options].Fallbacks

	OK bool `json:"ok"` // the run passed
	// Scored is false for a run that does not count in the rates: it reached no server, the harness failed, or the scenario did not apply.
	Scored bool `json:"scored"`
	// Control says that the scenario turns tools off. Such runs are counted separately.
	Control bool `json:"control,omitempty"`
	// Provokes says that the scenario provokes a mistake, to test how the model recovers. Such runs are counted separately.
	Provokes bool `json:"provokes,omitempty"`
	// Unfinished says that the server or a limit ended the run before an answer. The run then does not count in StateRate, TraceRate and
	// TextRate of a [Row].
	Unfinished    bool      `json:"unfinished,omitempty"`
	Class         Class     `json:"error_class,omitempty"` // "" if OK
	Error         string    `json:"error_message,omitempty"`
	ServerMessage string    `json:"error_hint,omitempty"` // error text of the server, with a limited size and without keys
	Started       time.Time `json:"started"`
	ElapsedMS     int64     `json:"elapsed_ms"` // milliseconds
	// Attempts is the number of attempts of the run. All but the last ended without a score.
	Attempts int `json:"attempts"`

	Mode   lathe.ToolUseMode `json:"mode"`
	Config []Setting         `json:"config"` // settings that differ from the defaults; later entries override earlier ones
	Reason lathe.Reason      `json:"reason"`
	Text   string            `json:"text"`  // the model's last text
	Draft  json.RawMessage   `json:"draft"` // the draft of the workspace at the end
	Checks []Check           `json:"checks"`
	Usage  lathe.Usage       `json:"usage"`
	// Cost is in US dollars: by the price of the model, else as reported by the server.
	Cost float64 `json:"cost,omitempty"`
	// Calls are the model calls, in order.
	Calls []ModelCall `json:"model_calls"`
	// Prompt is the SHA-256 of the messages and tools of the first model call. Sampling contains the sampling parameters of that call, and
	// Limits the limits of the run.
	Prompt   string         `json:"prompt_sha256,omitempty"`
	Sampling lathe.Sampling `json:"sampling"`
	Limits   RunLimits      `json:"limits"`
	// Partial is the beginning of the streamed text of a model call that did not finish. PartialBytes is the size of that text in bytes.
	Partial      string `json:"partial,omitempty"`
	PartialBytes int    `json:"partial_bytes,omitempty"`
	// Executed counts, by tool, the calls that were executed.
	Executed map[string]int `json:"executed,omitempty"`
	// Unguarded says that the run had no policy.
	Unguarded bool `json:"unguarded,omitempty"`

	// UserTurns is the number of messages of a simulated user. UserModel is the model that played it, and UserUsage the usage of that
	// model, which Usage does not include.
	UserTurns int         `json:"user_turns,omitempty"`
	UserModel string      `json:"user_model,omitempty"`
	UserUsage lathe.Usage `json:"user_usage,omitzero"`

	// About describes what was measured: the server of the model, the name of the model there, its protocol, limits, and the version of
	// Lathe.
	About map[string]string `json:"about,omitempty"`

	History []lathe.Message   `json:"history"`
	Trace   []event.TurnTrace `json:"trace"`
	// Fingerprint is the hash of all that the run depends on: a stored run is reused only if its fingerprint is equal.
	Fingerprint string `json:"fingerprint"`
}

// RunLimits are the limits of a run, under their configuration keys.
type RunLimits struct {
	RunTimeoutMS     int64 `json:"run_timeout_ms"`
	MaxIterations    int   `json:"max_iterations"`
	MaxToolCalls     int   `json:"max_total_tool_calls"`
	MaxRepeatedCalls int   `json:"max_repeated_calls"`
	MaxToolArgsBytes int   `json:"max_tool_args_bytes"`
	MaxOutputBytes   int   `json:"max_tool_output_bytes"`
}

func limitsOf(l lathe.Limits) RunLimits {
	l = l.WithDefaults()
	return RunLimits{l.RunTimeout.Milliseconds(), l.MaxIterations, l.MaxToolCalls, l.MaxRepeatedCalls, l.MaxToolArgsBytes, l.MaxOutputBytes}
}

// group reports whether the run has checks of the group, and whether all of them passed.
func (r *Run) group(name string) (ok, checked bool) {
	ok = true
	for _, c := range r.Checks {
		if c.Group == name {
			checked = true
			ok = ok && c.OK
		}
	}
	return ok, checked
}

// variant returns strategy and fallback in the form for file names and reports, "" for Production without fallback.
func variant(s Strategy, fallback bool) string {
	var words []string
	if s != Production {
		words = append(words, string(s))
	}
	if fallback {
		words = append(words, "fallback_on")
	}
	return strings.Join(words, "__")
}

// unguardedCalls replaces the limits on calls in a run without guards.
const unguardedCalls = 128

// A job is a run that is to be made.
type job struct {
	run      Run
	target   *Target
	scenario *Scenario
	settings lathe.Settings
	limits   lathe.Limits
	name     string     // name of the file of the run without extension
	lathe    bool       // the suite measures Lathe
	user     *UserModel // plays the user; nil: the user follows the script
}

// newJob returns the run of a scenario with a target, with its settings, name and fingerprint.
func newJob(suite *Suite, t *Target, sc *Scenario, trial int, s Strategy, fallback bool, o *Options) (*job, error) {
	sc = sc.sampled(o.Sampling)
	j := &job{target: t, scenario: sc, lathe: suite.MeasuresLathe, run: Run{Model: t.Name, Scenario: sc.ID, Category: sc.Category, Trial: trial, Strategy: s, Fallback: fallback, Unguarded: o.Unguarded,
		Control: sc.control(), Provokes: slices.ContainsFunc(sc.Asserts, func(a assert) bool { return a.Provoked }), About: t.About, Attempts: 1, Sampling: sc.Sampling}}
	if u := o.UserModel; u != nil && sc.Simulator != nil && sc.Simulator.Instructions != "" {
		j.user, j.run.UserModel = u, u.Name
	}
	list := slices.Concat(s.settings(suite), suite.Required(), o.Settings) // later ones take precedence
	if fallback {
		list = append(list, Setting{Key: "fallback_retry_count", Value: "1"}, Setting{Key: "tool_use_mode", Value: string(lathe.ModeRelaxed)})
	}
	j.run.Config = slices.Concat(list, sc.Ask.settings(), sc.conversational(), sc.Settings)
	err := j.configure(o)
	if err == nil {
		err = j.setFingerprint()
	}
	if err != nil {
		return nil, fmt.Errorf("scenario %s: %w", sc.ID, err)
	}
	parts := []string{t.Name, sc.ID}
	if v := variant(s, fallback); v != "" {
		parts = append(parts, v)
	}
	j.name = fileName(strings.Join(append(parts, fmt.Sprintf("trial_%02d", trial)), "__"))
	return j, nil
}

// configure sets the settings and limits that result from the run's Config.
func (j *job) configure(o *Options) (err error) {
	if j.settings, j.limits, err = apply(j.run.Config); err != nil {
		return err
	}
	j.limits.RunTimeout = o.Timeout
	if o.Unguarded {
		j.limits.MaxRepeatedCalls, j.limits.MaxToolCalls, j.limits.MaxIterations = unguardedCalls, unguardedCalls, unguardedCalls
	}
	j.run.Mode, j.run.Limits = j.settings.ToolUseMode, limitsOf(j.limits)
	return nil
}

// setFingerprint sets the fingerprint of a configured run. A new member must be omitted if it is empty, so that stored runs keep theirs.
func (j *job) setFingerprint() error {
	played := ""
	if j.user != nil {
		played = j.user.Name + "\x00" + j.user.Identity
	}
	raw, err := json.Marshal(struct {
		Target           [2]string
		Scenario         *Scenario
		Config           []Setting
		Trial            int
		Timeout          time.Duration
		Lathe, Unguarded bool   `json:",omitempty"`
		User             string `json:",omitempty"`
	}{[2]string{j.target.Name, j.target.Identity}, j.scenario, j.run.Config, j.run.Trial, j.limits.RunTimeout, j.lathe, j.run.Unguarded, played})
	j.run.Fingerprint = fmt.Sprintf("%x", sha256.Sum256(raw))
	return err
}

// workspaceID returns the same id for the same scenario and trial, so that requests are reproducible.
func (j *job) workspaceID() string {
	h := fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", j.scenario.ID, j.run.Trial)))
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-8" + h[17:20] + "-" + h[20:32]
}

// do makes the run. It returns an error only if the harness fails.
func (j *job) do(ctx context.Context, t *tape, now func() time.Time, log *slog.Logger) (*Run, error) {
	got := &seen{now: now}
	model := lathe.Model(&watch{t.model(), got})
	if j.scenario.Ask != nil {
		return j.ask(ctx, model, got, now, log)
	}
	r := j.run
	ws, err := j.workspace()
	if err != nil {
		return nil, err
	}
	if t.state, err = ws.Snapshot(); err != nil {
		return nil, err
	}
	o := &outcome{reported: map[string]bool{}, state: func(p string) (json.RawMessage, error) { return t.stateAt(ws, p) }}
	if texts := j.scenario.untold(); len(texts) > 0 {
		model = &witness{Model: model, texts: texts, reported: o.reported}
	}
	tools, mocks := j.tools(t, ws)
	opts := tool.Options{Policy: policy.AllowAll(), Log: log} // the tools of a scenario have no effect outside of it
	if j.scenario.Guard != nil && !r.Unguarded {
		j.scenario.Guard.set(&opts)
	}
	l, err := j.loop(model, tools, opts)
	if err != nil {
		return nil, err
	}
	r.Started = now()
	res, said, err := j.talk(ctx, l, ws.ID(), t, now, &r)
	if err != nil {
		return nil, err
	}
	r.ended(res, now())
	o.calls, o.text, o.said = calls(res.History), res.Answer, said
	r.addExecuted(o, mocks)
	if r.Draft, err = o.state(draft); err != nil {
		return nil, err
	}
	if r.Checks, err = j.scenario.check(o, r.Draft); err != nil {
		return nil, err
	}
	r.judge(res, got, j.expectation())
	if err := t.missed(); err != nil { // whatever the run did then, it has no score
		r.OK, r.Scored, r.Class, r.Error = false, false, ClassReplay, err.Error()
	}
	return &r, nil
}

// expectation returns what the run must do besides its checks.
func (j *job) expectation() expectation {
	switch {
	case j.lathe:
		return anyEnd
	case j.settings.ToolUseMode == lathe.ModeDisabled, j.scenario.Gold != nil && !j.scenario.goldCalls():
		return anAnswer
	default:
		return aCall
	}
}

// workspace returns the workspace of the run in its initial state.
func (j *job) workspace() (*builtin.Workspace, error) {
	sc := j.scenario
	initial := sc.State.Draft
	if sc.Gold != nil {
		initial = sc.Database
	}
	return builtin.NewWorkspace(&builtin.WorkspaceOptions{ID: j.workspaceID(), Facts: sc.State.Facts, Draft: initial, UIState: sc.State.UI})
}

// check evaluates what the scenario requires of a run with that outcome and that draft at its end.
func (sc *Scenario) check(o *outcome, draft json.RawMessage) (checks []Check, err error) {
	if sc.Gold != nil {
		want, err := sc.goldDatabase()
		if err != nil {
			return nil, err
		}
		called := assert{Kind: assertCalled, Tool: anyTool, AtLeast: 1}
		if !sc.goldCalls() {
			called.AtLeast, called.AtMost = 0, new(int)
		}
		checks = append(checks, checkGold(want, draft), called.check(o))
	}
	for i := range sc.Asserts {
		checks = append(checks, sc.Asserts[i].check(o))
	}
	return checks, nil
}

// loop returns the loop of the run, with these tools. opts are the options of its runner; loop sets those that all runs have.
func (j *job) loop(model lathe.Model, tools []lathe.Tool, opts tool.Options) (*loop.Loop, error) {
	set, err := tool.NewSetWithin(j.limits, tools...)
	if err != nil {
		return nil, err
	}
	made := 0
	opts.Settings, opts.Limits = j.settings, j.limits
	opts.NewID = func(prefix string) string { made++; return fmt.Sprintf("%s%d", prefix, made) }
	runner, err := tool.NewRunner(set, &opts)
	if err != nil {
		return nil, err
	}
	return loop.New(model, runner, &loop.Options{Settings: j.settings, Limits: j.limits, Sampling: j.scenario.Sampling, Overrides: j.target.Overrides})
}

// ended records the result of the conversation, which ended at this time.
func (r *Run) ended(res *event.Result, at time.Time) {
	r.ElapsedMS = at.Sub(r.Started).Milliseconds()
	r.Reason, r.Text, r.Usage, r.Cost, r.History, r.Trace = res.Reason, res.Answer, res.Usage, res.Cost, res.History, res.Trace
}

// addExecuted records the calls that reached the mocks.
func (r *Run) addExecuted(o *outcome, mocks []counted) {
	r.Executed = map[string]int{}
	for _, m := range mocks {
		name := m.Spec().Name
		for _, args := range m.Calls() {
			o.executed = append(o.executed, executed{name, args})
			r.Executed[name]++
		}
	}
}

// tools returns the tools of the run: those of the workspace, and the mocks.
func (j *job) tools(t *tape, ws *builtin.Workspace) (tools []lathe.Tool, mocks []counted) {
	sc := j.scenario
	if sc.usesState() {
		for _, one := range ws.Tools() {
			tools = append(tools, t.tool(one, ws))
		}
	}
	db := &database{ws: ws}
	for _, scripted := range sc.Tools {
		if j.run.Unguarded {
			scripted.Hidden, scripted.Show = false, nil
		}
		var of *builtin.Workspace // set for tools that change the workspace
		if len(scripted.Steps) > 0 {
			of = ws
		}
		m := t.tool(scripted.build(db), of).(counted)
		mocks = append(mocks, m)
		tools = append(tools, m)
	}
	return tools, mocks
}

// talk carries out the conversation of a run: the model answers and the user replies, until one of them ends it. It returns the result of
// the whole conversation, and all texts of the model for the user. It returns an error only if the harness fails.
func (j *job) talk(ctx context.Context, l *loop.Loop, workspace string, t *tape, now func() time.Time, r *Run) (*event.Result, []string, error) {
	user, err := newConversation(j.scenario, j.user, t)
	if err != nil {
		return nil, nil, err
	}
	fill := strings.NewReplacer("{workspace_id}", workspace)
	messages := []lathe.Message{lathe.User(fill.Replace(j.scenario.User))}
	if j.scenario.System != "" {
		messages = slices.Insert(messages, 0, lathe.System(fill.Replace(j.scenario.System)))
	}
	var said []string
	whole := event.Result{History: slices.Clone(messages)}
	for {
		limits := j.limits
		limits.RunTimeout = max(j.limits.RunTimeout-now().Sub(r.Started), time.Millisecond)
		res, _ := l.Do(ctx, &loop.Input{Run: lathe.RunInfo{RunID: j.name}, Messages: messages, Limits: &limits}) // res contains the error
		added := res.History[min(len(messages), len(res.History)):]
		said = append(said, texts(added)...)
		whole = continued(&whole, res, added)
		if answeredIfEmpty(res.Reason) != lathe.ReasonAnswered || ctx.Err() != nil {
			break
		}
		timed, cancel := context.WithTimeout(ctx, limits.RunTimeout)
		reply, ok, err := user.reply(timed, res.Answer)
		cancel()
		if err != nil {
			r.Class, r.Error = classOfUser(err), err.Error()
		}
		if err != nil || !ok {
			break
		}
		whole.History = append(whole.History, lathe.User(reply))
		messages = append(loop.SessionHistory(res.History, &loop.Retention{Mode: loop.RawEphemeral, StoreRaw: true}), lathe.User(reply))
	}
	if j.scenario.Simulator != nil {
		r.UserTurns, r.UserUsage = user.turns, user.usage
	}
	return &whole, said, nil
}

// continued returns the result of a conversation that res continues with the messages added. before was its result until then.
func continued(before, res *event.Result, added []lathe.Message) event.Result {
	whole := *res
	whole.Usage.Add(before.Usage)
	whole.Cost += before.Cost
	whole.Trace, whole.History = append(before.Trace, res.Trace...), append(before.History, added...)
	return whole
}

// texts returns the texts of the model in these messages.
func texts(messages []lathe.Message) (said []string) {
	for i := range messages {
		if text := messages[i].Text(); messages[i].Role == lathe.RoleAssistant && text != "" {
			said = append(said, text)
		}
	}
	return said
}
