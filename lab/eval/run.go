package eval

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/builtin"
)

// A Strategy selects the corrections of Lathe that a measured model gets, and which of its [Target]'s models is asked. Four
// layers of settings apply over a strategy, each over the one before: the settings of every evaluation (tool_use_mode enforced,
// tool_failure_policy fatal, parallel_tool_calls false), the settings of [Options], the fallback, and those of the scenario.
type Strategy string

// The strategies.
const (
	// Raw turns off what mends a model's slips: fix_empty_final and repair.
	Raw Strategy = "raw"
	// Baseline is Lathe's defaults.
	Baseline Strategy = "baseline"
	// Production is Baseline with the settings of the suite.
	Production Strategy = "production"
)

// Strategies are all of them.
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

// Required returns the settings that every evaluation of the suite has, under those of flags and scenarios.
func (s *Suite) Required() []Setting {
	mode := lathe.ModeEnforced
	if s.MeasuresLathe {
		mode = lathe.ModeRelaxed // a model that calls nothing is as good as any
	}
	return []Setting{{Key: "tool_use_mode", Value: string(mode)}, {Key: "tool_failure_policy", Value: "fatal"}, {Key: "parallel_tool_calls", Value: "false"}}
}

// A Target is a model that is measured. Name is its name in reports. Identity is all else on which its results depend, such as
// its address and dialect; each run stores a hash of it.
type Target struct {
	Name     string
	Identity string
	Model    lathe.Model
	// Under, where it has the strategy, gives the model in place of Model: one with fewer transforms.
	Under map[Strategy]lathe.Model
	// ModelFor, when set, gives the model of each scenario in place of both.
	ModelFor func(*Scenario) lathe.Model
	// Overrides are further members of each request to the model.
	Overrides []lathe.Member
	// About describes the measured models for readers, by name: server, model, overrides. It holds no key. It must not change.
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

// A Run is one try of one scenario. It is what the file of a run holds: fields are added, never renamed.
type Run struct {
	Model    string   `json:"model"`
	Scenario string   `json:"scenario"`
	Category string   `json:"category,omitempty"`
	Trial    int      `json:"trial"` // from 1
	Strategy Strategy `json:"strategy"`
	Fallback bool     `json:"fallback"`

	OK bool `json:"ok"`
	// Scored is false for a run that does not count in the rates: it reached no server, the harness broke it, or its
	// scenario did not apply.
	Scored bool `json:"scored"`
	// Control says that the scenario has tools turned off: it is counted apart from those with tools.
	Control bool `json:"control,omitempty"`
	// Provokes says that the scenario asks for a mistake on purpose, to see how the model recovers: it is counted apart.
	Provokes bool `json:"provokes,omitempty"`
	// Unfinished says that the server or a limit ended the run, and not an answer: its checks are in no rate of state, trace and text.
	Unfinished    bool      `json:"unfinished,omitempty"`
	Class         Class     `json:"error_class,omitempty"`
	Error         string    `json:"error_message,omitempty"`
	ServerMessage string    `json:"error_hint,omitempty"` // the server's own words, bounded and without keys
	Started       time.Time `json:"started"`
	ElapsedMS     int64     `json:"elapsed_ms"`
	// Attempts counts the times that the run was made: more than 1 if earlier ones reached no server.
	Attempts int `json:"attempts"`

	Mode   lathe.ToolUseMode `json:"mode"`
	Config []Setting         `json:"config"` // what differs from the defaults, later entries win
	Reason lathe.Reason      `json:"reason"`
	Text   string            `json:"text"`
	Draft  json.RawMessage   `json:"draft"`
	Checks []Check           `json:"checks"`
	Usage  lathe.Usage       `json:"usage"`
	// Cost is in US dollars, by the price of the model, else as the server reports it.
	Cost float64 `json:"cost,omitempty"`
	// Calls are the requests to the model, in order.
	Calls []ModelCall `json:"model_calls"`
	// Prompt is the SHA-256 of the messages and tools of the first model call, Sampling what it asked for. Limits are in force.
	Prompt   string         `json:"prompt_sha256,omitempty"`
	Sampling lathe.Sampling `json:"sampling"`
	Limits   RunLimits      `json:"limits"`
	// Partial is the beginning of what a model call that did not finish had streamed, PartialBytes the size of all of it.
	Partial      string `json:"partial,omitempty"`
	PartialBytes int    `json:"partial_bytes,omitempty"`
	// Executed counts, by tool, the calls that reached the code of mocks.
	Executed map[string]int `json:"executed,omitempty"`
	// Unguarded says that the run had no policy.
	Unguarded bool `json:"unguarded,omitempty"`

	// UserTurns counts the messages of a simulated user. UserModel is the model that played it, and UserUsage what that used, which is
	// not part of Usage.
	UserTurns int         `json:"user_turns,omitempty"`
	UserModel string      `json:"user_model,omitempty"`
	UserUsage lathe.Usage `json:"user_usage,omitzero"`

	// About says what was measured: the model's server and name there, how it was spoken to, limits, Lathe's version.
	About map[string]string `json:"about,omitempty"`

	History []lathe.Message   `json:"history"`
	Trace   []event.TurnTrace `json:"trace"`
	// Fingerprint is the hash of all that the run was made of: a run is taken over from a folder only
	// where it is the same.
	Fingerprint string `json:"fingerprint"`
}

// RunLimits are the limits of a run, by their names in the configuration.
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

// group reports whether the run has checks of the group, and whether all of them held.
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

// variant is the run's strategy and fallback in file names and reports, "" for the usual one.
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

// unguardedCalls stands in place of the limits on calls of a run without guards.
const unguardedCalls = 128

// A job is a run that is to be made.
type job struct {
	run      Run
	target   *Target
	scenario *Scenario
	settings lathe.Settings
	limits   lathe.Limits
	name     string // of its file, without the ending
	lathe    bool   // is what is measured
	user     *UserModel
}

func newJob(suite *Suite, t *Target, sc *Scenario, trial int, s Strategy, fallback bool, o *Options) (*job, error) {
	sc = sc.sampled(o.Sampling)
	j := &job{target: t, scenario: sc, lathe: suite.MeasuresLathe, run: Run{Model: t.Name, Scenario: sc.ID, Trial: trial, Strategy: s, Fallback: fallback, Unguarded: o.Unguarded,
		Control: sc.control(), Provokes: sc.provokes(), About: t.About, Attempts: 1, Sampling: sc.Sampling}}
	played := ""
	if u := o.UserModel; u != nil && sc.Simulator != nil && sc.Simulator.Instructions != "" {
		j.user, j.run.UserModel, played = u, u.Name, u.Name+"\x00"+u.Identity
	}
	list := slices.Concat(s.settings(suite), suite.Required(), o.Settings)
	if fallback {
		list = append(list, Setting{Key: "fallback_retry_count", Value: "1"}, Setting{Key: "tool_use_mode", Value: string(lathe.ModeRelaxed)})
	}
	list = slices.Concat(list, sc.Ask.settings(), sc.conversational(), sc.Settings)
	j.run.Category = sc.Category
	var err error
	if j.settings, j.limits, err = apply(list); err != nil {
		return nil, fmt.Errorf("scenario %s: %w", sc.ID, err)
	}
	j.limits.RunTimeout = o.Timeout
	if o.Unguarded {
		j.limits.MaxRepeatedCalls, j.limits.MaxToolCalls, j.limits.MaxIterations = unguardedCalls, unguardedCalls, unguardedCalls
	}
	j.run.Config, j.run.Mode, j.run.Limits = list, j.settings.ToolUseMode, limitsOf(j.limits)
	parts := []string{t.Name, sc.ID}
	if v := variant(s, fallback); v != "" {
		parts = append(parts, v)
	}
	j.name = fileName(strings.Join(append(parts, fmt.Sprintf("trial_%02d", trial)), "__"))
	raw, err := json.Marshal(struct {
		Target           [2]string
		Scenario         *Scenario
		Config           []Setting
		Trial            int
		Timeout          time.Duration
		Lathe, Unguarded bool   `json:",omitempty"`
		User             string `json:",omitempty"`
	}{[2]string{t.Name, t.Identity}, sc, list, trial, o.Timeout, j.lathe, j.run.Unguarded, played})
	if err != nil {
		return nil, fmt.Errorf("scenario %s: %w", sc.ID, err)
	}
	sum := sha256.Sum256(raw)
	j.run.Fingerprint = hex.EncodeToString(sum[:])
	return j, nil
}

// workspaceID is the same for the same scenario and trial, so that requests repeat.
func (j *job) workspaceID() string {
	sum := sha256.Sum256([]byte(j.scenario.ID + "\x00" + fmt.Sprint(j.run.Trial)))
	h := hex.EncodeToString(sum[:16])
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-8" + h[17:20] + "-" + h[20:32]
}

// do makes the run. Its error is one of the harness itself.
func (j *job) do(ctx context.Context, t *tape, now func() time.Time, log *slog.Logger) (*Run, error) {
	got := &seen{now: now}
	model := lathe.Model(&watch{t.model(), got})
	if j.scenario.Ask != nil {
		return j.ask(ctx, model, got, now, log)
	}
	sc, r := j.scenario, j.run
	initial := sc.State.Draft
	if sc.Gold != nil {
		initial = sc.Database
	}
	ws, err := builtin.NewWorkspace(&builtin.WorkspaceOptions{ID: j.workspaceID(), Facts: sc.State.Facts, Draft: initial, UIState: sc.State.UI})
	if err != nil {
		return nil, err
	}
	if t.state, err = ws.Snapshot(); err != nil {
		return nil, err
	}
	tools, mocks := j.tools(t, ws)
	set, err := tool.NewSetWithin(j.limits, tools...)
	if err != nil {
		return nil, err
	}
	guard := sc.Guard
	if j.run.Unguarded {
		guard = nil
	}
	var approver lathe.Approver
	if guard != nil {
		approver = person{guard.Approve}
	}
	made := 0
	runner, err := tool.NewRunner(set, &tool.Options{
		Policy: guard.policy(), Approver: approver,
		Settings: j.settings, Limits: j.limits, Log: log,
		NewID: func(prefix string) string { made++; return fmt.Sprintf("%s%d", prefix, made) },
	})
	if err != nil {
		return nil, err
	}
	reported := map[string]bool{}
	if texts := sc.untold(); len(texts) > 0 {
		model = &witness{Model: model, texts: texts, reported: reported}
	}
	l, err := loop.New(model, runner, &loop.Options{Settings: j.settings, Limits: j.limits, Sampling: sc.Sampling, Overrides: j.target.Overrides})
	if err != nil {
		return nil, err
	}
	r.Started = now()
	res, said, err := j.talk(ctx, l, ws.ID(), t, now, &r)
	if err != nil {
		return nil, err
	}
	r.ElapsedMS = now().Sub(r.Started).Milliseconds()
	r.Reason, r.Text, r.Usage, r.Cost, r.History, r.Trace = res.Reason, res.Answer, res.Usage, res.Cost, res.History, res.Trace
	o := &outcome{calls: calls(res.History), text: res.Answer, said: said, reported: reported, state: func(p string) (json.RawMessage, error) { return t.stateAt(ws, p) }}
	for _, m := range mocks {
		made := m.Calls()
		for _, args := range made {
			o.executed = append(o.executed, executed{m.Spec().Name, args})
		}
		if len(made) > 0 {
			if r.Executed == nil {
				r.Executed = map[string]int{}
			}
			r.Executed[m.Spec().Name] = len(made)
		}
	}
	if r.Draft, err = t.stateAt(ws, draft); err != nil {
		return nil, err
	}
	if sc.Gold != nil {
		want, err := sc.goldDatabase()
		if err != nil {
			return nil, err
		}
		once := assert{Kind: assertCalled, Tool: anyTool, AtLeast: 1}
		if !sc.goldCalls() {
			once.AtLeast, once.AtMost = 0, new(int)
		}
		r.Checks = append(r.Checks, checkGold(want, r.Draft), once.check(o))
	}
	for i := range sc.Asserts {
		r.Checks = append(r.Checks, sc.Asserts[i].check(o))
	}
	r.judge(res, got, j.requiresCalls(), j.lathe)
	if err := t.missed(); err != nil {
		r.OK, r.Scored, r.Class, r.Error = false, false, ClassReplay, err.Error()
	}
	return &r, nil
}

// requiresCalls reports whether a run that makes no call, and fails, fails for that.
func (j *job) requiresCalls() bool {
	if j.scenario.Gold != nil && !j.scenario.goldCalls() {
		return false
	}
	return j.settings.ToolUseMode != lathe.ModeDisabled
}

// tools returns the tools of the run: those over the state, and the mocks.
func (j *job) tools(t *tape, ws *builtin.Workspace) (tools []lathe.Tool, mocks []counted) {
	sc := j.scenario
	if sc.usesState() {
		for _, one := range ws.Tools() {
			tools = append(tools, t.tool(one, ws))
		}
	}
	db := &database{ws: ws}
	for i := range sc.Tools {
		var of *builtin.Workspace // of tools that change it
		if len(sc.Tools[i].Steps) > 0 {
			of = ws
		}
		m := t.tool(sc.Tools[i].build(j.run.Unguarded, db), of).(counted)
		mocks = append(mocks, m)
		tools = append(tools, m)
	}
	return tools, mocks
}

// talk has the conversation of a run: the model answers, and the user replies, until one of them ends it. It returns the result of
// the whole, and all that the model said to the user. Its error is one of the harness itself.
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
		res, _ := l.Do(ctx, &loop.Input{Run: lathe.RunInfo{RunID: j.name}, Messages: messages, Limits: &limits}) // its error is in the result
		before := whole
		whole = *res
		whole.Usage, whole.Cost = before.Usage, before.Cost+res.Cost
		whole.Usage.Add(res.Usage)
		whole.Trace = append(before.Trace, res.Trace...)
		whole.History = append(before.History, res.History[min(len(messages), len(res.History)):]...)
		said = append(said, texts(res.History[min(len(messages), len(res.History)):])...)
		if answeredIfEmpty(res.Reason) != lathe.ReasonAnswered || ctx.Err() != nil {
			break
		}
		reply, ok, err := j.replied(ctx, user, res.Answer, limits.RunTimeout)
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

// replied asks the user for a reply, within the time that the run has left.
func (j *job) replied(ctx context.Context, user *conversation, answer string, left time.Duration) (string, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	return user.reply(ctx, answer)
}

// texts returns what the model said in those messages.
func texts(messages []lathe.Message) (said []string) {
	for i := range messages {
		if text := messages[i].Text(); messages[i].Role == lathe.RoleAssistant && text != "" {
			said = append(said, text)
		}
	}
	return said
}

// stateAt returns the value at the pointer, or null. It reads the recording if the recording replaces the tools of
// the workspace.
func (t *tape) stateAt(ws *builtin.Workspace, pointer string) (json.RawMessage, error) {
	all, err := ws.Snapshot()
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	if t.playsTools {
		all = t.state
	}
	t.mu.Unlock()
	if raw, ok := valueAt(all, pointer); ok {
		return slices.Clone(raw), nil
	}
	return json.RawMessage("null"), nil
}
