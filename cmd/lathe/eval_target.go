package main

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/lab/eval"
	"github.com/lathe-run/lathe/preset"
	"github.com/lathe-run/lathe/transform"
)

// targets returns the models to measure: those of --model, else those of the suite, else the default.
func (f *evalFlags) targets(cmd *cobra.Command, suite *eval.Suite, view *screen) ([]eval.Target, error) {
	if f.Answers != "" {
		if len(f.Models) > 0 || f.BaseURL != "" {
			return nil, usageError("give one of --answers and --model")
		}
		t, err := f.recorded()
		return []eval.Target{t}, err
	}
	names := f.Models
	if len(names) == 0 {
		names = suite.Models
	}
	if len(names) == 0 {
		cfg, err := loadConfig(configPath(cmd), settingOverrides(cmd))
		if err != nil {
			return nil, err
		}
		names = []string{cfg.DefaultModel}
		if cfg.DefaultModel == "" {
			names[0] = f.simulated(suite)
			view.note("no --model is given: the simulated " + names[0] + " is measured")
		}
	}
	var targets []eval.Target
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return nil, usageError("--model %s stands twice", name)
		}
		t, err := f.namedTarget(cmd, suite, name)
		if err != nil {
			return nil, err
		}
		if f.UserModel != "" {
			t.About["user_model"] = f.UserModel
		}
		targets = append(targets, t)
	}
	return targets, nil
}

// namedTarget returns the target with this name: the player of gold actions, or a model of the configuration or of --base-url.
func (f *evalFlags) namedTarget(cmd *cobra.Command, suite *eval.Suite, name string) (eval.Target, error) {
	if name != eval.GoldModel || f.BaseURL != "" {
		return f.target(cmd, name)
	}
	if id := withoutGold(suite); id != "" {
		return eval.Target{}, usageError("--model %s plays the gold actions of scenarios, and %s has none: retail, airline and skills have them", name, id)
	}
	t := eval.GoldTarget()
	t.About = map[string]string{"provider": "sim", "model": name, "lathe": currentVersion().Version, "run_timeout": f.Timeout.String()}
	return t, nil
}

// user returns the model that plays the user: an entry of the configuration, or a simulated one. nil: none is named.
func (f *evalFlags) user(cmd *cobra.Command, scenarios []*eval.Scenario) (*eval.UserModel, error) {
	instructed := false // a scenario has instructions for a model
	for _, sc := range scenarios {
		u := sc.Simulator
		if u == nil {
			continue
		}
		if f.UserModel == "" && len(u.Replies) == 0 {
			return nil, usageError("scenario %s has instructions for a model that plays the user: name one with --user-model", sc.ID)
		}
		instructed = instructed || u.Instructions != ""
	}
	if f.UserModel == "" {
		return nil, nil //nolint:nilnil // no model plays the user
	}
	if !instructed {
		return nil, usageError("--user-model: no scenario has instructions for a model that plays the user")
	}
	own := *f
	own.endpointFlags, own.Dialect = endpointFlags{}, ""
	own.Strategies = []string{string(eval.Production)}
	t, err := own.target(cmd, f.UserModel)
	if err != nil {
		return nil, err
	}
	return &eval.UserModel{Name: f.UserModel, Identity: t.Identity, Model: t.Model}, nil
}

// target returns the model with this name in the configuration or at --base-url.
func (f *evalFlags) target(cmd *cobra.Command, name string) (t eval.Target, err error) {
	rf := runFlags{modelFlags: modelFlags{upstreamFlags: upstreamFlags{name, f.endpointFlags}, ClientTimeout: f.Client.d}}
	if f.Client.d < 0 {
		rf.ClientTimeout = time.Hour // load requires a value above 0; apply removes the limit from the entry
	}
	cfg, key, err := rf.load(cmd)
	if err != nil {
		return t, err
	}
	found, err := cfg.Model(key)
	if err != nil {
		return t, usageError("%w", modelAdvice(err, "sim/eval"))
	}
	entry := *found
	f.timeFlags.apply(&entry)
	if err := setDialect(&entry, f.Dialect); err != nil {
		return t, err
	}
	simOpts, err := app.SimOptions(cfg, "", "")
	if err != nil {
		return t, err
	}
	server, err := app.NewProvider(&entry, &app.ModelOptions{Sim: simOpts})
	if err != nil {
		return t, err
	}
	t = eval.Target{Name: name, Identity: identity(&entry), Under: map[eval.Strategy]lathe.Model{}, Overrides: app.Overrides(&entry),
		About: f.about(&entry)}
	for _, s := range f.Strategies {
		helped := entry
		helped.Transforms = transformsUnder(eval.Strategy(s), &entry)
		if t.Model, err = app.Decorate(cfg, &helped, server); err != nil {
			return t, err
		}
		t.Under[eval.Strategy(s)] = t.Model
	}
	return t, nil
}

// apply sets the timeouts of an entry that flags give.
func (f *timeFlags) apply(entry *config.Model) {
	if entry.ReadTimeout == entry.ClientTimeout {
		entry.ReadTimeout = cmp.Or(f.Client.d, entry.ReadTimeout) // unless set, the read timeout equals the client timeout
	}
	entry.ClientTimeout = cmp.Or(f.Client.d, entry.ClientTimeout)
	entry.ReadTimeout = cmp.Or(f.Read.d, entry.ReadTimeout)
	entry.OpenTimeout = cmp.Or(f.Open.d, entry.OpenTimeout)
}

// transformsUnder returns the transforms of an entry that a strategy applies: none, those of the profile, or all.
func transformsUnder(s eval.Strategy, m *config.Model) config.Transforms {
	switch s {
	case eval.Raw:
		return config.Transforms{}
	case eval.Baseline:
		of, err := preset.For(m.Profile, "")
		if err != nil {
			return config.Transforms{} // the entry has no profile: an unknown profile is refused earlier
		}
		list := of.Transforms()
		only := func(kind transform.Kind, names []string) []string {
			return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !slices.Contains(list.Of(kind), name) })
		}
		t := m.Transforms
		return config.Transforms{Message: only(transform.Message, t.Message), Tool: only(transform.Tool, t.Tool), Response: only(transform.Response, t.Response),
			ToolCall: only(transform.ToolCall, t.ToolCall), ToolResult: only(transform.ToolResult, t.ToolResult)}
	default:
		return m.Transforms
	}
}

// about describes the measured model for people. The URL has no path and no query, because they can contain a key.
func (f *evalFlags) about(m *config.Model) map[string]string {
	out := map[string]string{"provider": m.Provider, "model": cmp.Or(m.Model, m.Name), "dialect": m.Dialect, "lathe": currentVersion().Version,
		"run_timeout": f.Timeout.String(), "client_timeout": m.ClientTimeout.String()}
	if u, err := url.Parse(m.BaseURL.Reveal()); err == nil && u.Host != "" {
		out["server"] = u.Scheme + "://" + u.Host
	}
	if m.Profile != "" {
		out["profile"] = m.Profile
	}
	for _, member := range app.Overrides(m) {
		out["override_"+member.Name] = string(member.Value)
	}
	t := m.Transforms
	if all := slices.Concat(t.Message, t.Tool, t.Response, t.ToolCall, t.ToolResult); len(all) > 0 {
		out["transforms"] = strings.Join(all, ", ")
	}
	return out
}

// identity returns a text with everything on which the results of a model depend: its server, its name there, and the settings for
// requests.
func identity(m *config.Model) string {
	parts := []any{m.Provider, m.BaseURL.Reveal(), m.Model, m.Dialect, m.RecoverLeakedCalls, m.BareCalls, m.Thinking, m.SupportsTools, m.SupportsParallel,
		m.ReasoningField, m.IncludeUsage, m.MaxCompletionTokens, m.Transforms, m.RequestOverrides}
	if m.Wire != "" && m.Wire != lathe.WireOpenAIChat {
		parts = append(parts, string(m.Wire), m.MaxTokens)
	}
	if m.Constrain != "" && m.Constrain != "off" {
		parts = append(parts, "constrain "+m.Constrain, m.ConstrainAfter)
	}
	return fmt.Sprintf("%#v", parts)
}
