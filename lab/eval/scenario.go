package eval

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/lazy"
)

// This file parses the parts of the file of a suite, such as
//
//	name: greetings
//	scenarios:
//	  - id: hello
//	    user: Set the title to "Hello".
//	    assert:
//	      - called: state_patch
//	      - state: /draft/title
//	        equals: Hello

// root parses the whole file.
func (p *parser) root(n *yaml.Node) error {
	s := p.suite
	var presets, scenarios *yaml.Node
	err := p.mapping(n, "a suite", []member{
		{"name", &s.Name},
		p.settings(&s.Settings), p.measures(&s.MeasuresLathe), {"models", &s.Models}, {"system", &p.system}, p.database(&p.db),
		p.tools(&p.mocks), p.generated(&p.mocks), p.guard(&p.policy),
		{"presets", &presets},
		{"scenarios", &scenarios},
	})
	if err != nil {
		return err
	}
	if scenarios == nil || len(scenarios.Content) == 0 {
		return p.errorf(n, "a suite has scenarios")
	}
	if err := p.list(scenarios, "scenarios", p.scenario); err != nil || presets == nil {
		return err
	}
	return p.entries(presets, "presets", func(k, v *yaml.Node) error {
		pre := preset{Name: k.Value}
		if err := p.read(v, "preset "+k.Value, &pre.IDs); err != nil {
			return err
		}
		if k.Value == All {
			return p.errorf(k, "the preset %s is all scenarios and cannot be another", All)
		}
		if _, err := s.Find(pre.IDs...); err != nil {
			return p.errorf(v, "%s", err)
		}
		s.Presets = append(s.Presets, pre)
		return nil
	})
}

// isID matches the id of a scenario, which is part of file names.
var isID = lazy.Regexp(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// measures parses whether the suite measures Lathe or models.
func (p *parser) measures(lathe *bool) member {
	return member{"measures", func(n *yaml.Node) error {
		var what string
		if err := p.read(n, "measures", &what); err != nil {
			return err
		}
		*lathe = what == "lathe"
		if !*lathe && what != "models" {
			return p.errorf(n, "measures is models or lathe")
		}
		return nil
	}}
}

func (p *parser) scenario(n *yaml.Node) error {
	sc := &Scenario{Tools: slices.Clone(p.mocks), Guard: p.policy, System: p.system, Database: p.db}
	var state *yaml.Node
	err := p.mapping(n, "a scenario", []member{
		{"id", &sc.ID}, {"title", &sc.Title}, {"category", &sc.Category}, {"system", &sc.System}, {"user", &sc.User},
		p.settings(&sc.Settings),
		p.sampling(&sc.Sampling),
		{"state", func(n *yaml.Node) error { state = n; return p.state(n, &sc.State) }},
		p.database(&sc.Database), p.tools(&sc.Tools), p.generated(&sc.Tools), p.overlay(&sc.Tools), p.guard(&sc.Guard),
		p.simulator(&sc.Simulator), p.gold(&sc.Gold),
		{"assert", func(n *yaml.Node) error {
			return p.list(n, "assert", func(item *yaml.Node) error {
				a, err := p.assert(item)
				sc.Asserts = append(sc.Asserts, a)
				return err
			})
		}},
	})
	switch {
	case err != nil:
		return err
	case !isID().MatchString(sc.ID):
		return p.errorf(n, "a scenario has an id of letters, digits, _ . and -, at most 64")
	case slices.ContainsFunc(p.suite.Scenarios, func(o *Scenario) bool { return o.ID == sc.ID }):
		return p.errorf(n, "scenario %s stands twice", sc.ID)
	case strings.TrimSpace(sc.User) == "":
		return p.errorf(n, "scenario %s has no user text", sc.ID)
	case sc.Gold != nil && state != nil:
		return p.errorf(state, "scenario %s has gold actions: they go with database, not with state", sc.ID)
	case sc.Gold == nil && (sc.Simulator != nil || slices.ContainsFunc(sc.Tools, func(m mockTool) bool { return len(m.Steps) > 0 })):
		return p.errorf(n, "scenario %s has a user_simulator or tools with steps, and no gold actions to compare with", sc.ID)
	case len(sc.Asserts) == 0 && sc.Gold == nil:
		return p.errorf(n, "scenario %s asserts nothing, so no run of it could fail", sc.ID)
	}
	if err := p.names(n, sc); err != nil {
		return err
	}
	if sc.Gold != nil {
		var err error
		if sc.final, err = sc.goldDatabase(); err != nil {
			at := *n
			if wrong := (*goldError)(nil); errors.As(err, &wrong) {
				at.Line = wrong.line
			}
			return p.errorf(&at, "scenario %s: %s", sc.ID, err)
		}
	}
	p.suite.Scenarios = append(p.suite.Scenarios, sc)
	return nil
}

// names returns an error if guards or asserts of mocks name tools that do not exist: a misspelt name would have no effect.
func (p *parser) names(n *yaml.Node, sc *Scenario) error {
	known := sc.toolNames()
	if sc.Guard != nil {
		if name := sc.Guard.unknown(known); name != "" {
			return p.errorf(n, "the policy of scenario %s names %s, which is no tool of it", sc.ID, name)
		}
	}
	for _, a := range sc.Asserts {
		if a.Kind == assertExecuted && a.Tool != anyTool && findTool(sc.Tools, a.Tool) < 0 {
			return p.errorf(n, "scenario %s counts the executions of %s, which is no tool of the suite", sc.ID, a.Tool)
		}
		if a.Kind == assertRefused && !slices.Contains(known, a.Tool) {
			return p.errorf(n, "scenario %s asserts on %s, which is no tool of it", sc.ID, a.Tool)
		}
	}
	return nil
}

// settings parses keys of tool_calling. It checks each at once, so that the error has its line.
func (p *parser) settings(into *[]Setting) member {
	return member{"settings", func(n *yaml.Node) error {
		return p.entries(n, "settings", func(k, v *yaml.Node) error {
			if v.Kind != yaml.ScalarNode {
				return p.errorf(v, "%s wants one value", k.Value)
			}
			s := Setting{From: p.file, Key: k.Value, Value: v.Value}
			if _, _, err := apply([]Setting{s}); err != nil {
				return p.errorf(k, "%s", strings.TrimPrefix(err.Error(), p.file+": "))
			}
			*into = append(*into, s)
			return nil
		})
	}}
}

// apply returns the settings and limits that result from the defaults and the list; later entries override earlier ones.
func apply(list []Setting) (lathe.Settings, lathe.Limits, error) {
	over := make([]config.Override, len(list))
	for i, s := range list {
		over[i] = config.Override{From: s.From, Key: "tool_calling." + s.Key, Value: s.Value}
	}
	cfg, err := config.Load("", &config.LoadOptions{Overrides: over})
	if err != nil {
		var lines []string
		for _, pr := range config.ProblemsOf(err) {
			lines = append(lines, pr.String())
		}
		return lathe.Settings{}, lathe.Limits{}, errors.New(strings.Join(lines, "; "))
	}
	return cfg.Settings(), cfg.Limits(), nil
}

func (p *parser) sampling(into *lathe.Sampling) member {
	return member{"sampling", func(n *yaml.Node) error {
		err := p.mapping(n, "sampling", []member{
			{"temperature", &into.Temperature},
			{"top_p", &into.TopP},
			{"max_tokens", &into.MaxTokens},
			{"seed", &into.Seed},
			{"reasoning_effort", &into.ReasoningEffort},
		})
		var syntax *syntaxError
		if err != nil && !errors.As(err, &syntax) {
			return p.errorf(n, "sampling wants numbers")
		}
		return err
	}}
}

func (p *parser) state(n *yaml.Node, into *state) error {
	object := func(name string, raw *json.RawMessage) member {
		return member{name, func(n *yaml.Node) error {
			if n.Kind != yaml.MappingNode {
				return p.errorf(n, "%s wants a mapping", name)
			}
			return p.read(n, name, raw)
		}}
	}
	return p.mapping(n, "state", []member{object("facts", &into.Facts), object("draft", &into.Draft), object("ui_state", &into.UI)})
}

// assert parses one assert. The first key of an assert is its kind.
func (p *parser) assert(n *yaml.Node) (assert, error) {
	var a assert
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		return a, p.errorf(n, "an assert wants a mapping")
	}
	var match string
	var atLeast *int
	pointer := member{"pointer", &a.Pointer}
	tool := func(name string) member { return member{name, &a.Tool} }
	bound := func(name string, into **int) member {
		return member{name, func(n *yaml.Node) error { *into = new(int); return p.read(n, name, *into) }}
	}
	code, least, most := (*string)(&a.Code), bound("at_least", &atLeast), bound("at_most", &a.AtMost)
	kinds := map[assertKind][]member{
		assertState:    {{"state", &a.Pointer}, {"equals", &a.Equals}},
		assertCalled:   {tool("called"), least, most},
		assertExecuted: {tool("executed"), pointer, {"equals", &a.Equals}, least, most},
		assertRefused:  {tool("refused"), {"code", code}},
		assertUntold:   {{"untold", &a.Text}},
		assertOrder:    {{"order", &a.Tools}}, assertTogether: {{"together", &a.Tools}},
		assertArguments: {tool("arguments"), pointer, {"equals", &a.Equals}, {"missing", &a.Missing}},
		assertGuard:     {{"guard", code}},
		assertFailed:    {tool("failed"), {"code", code}},
		assertNotAsked:  {tool("not_asked")},
		assertText:      {{"text", &a.Text}, {"match", &match}},
		assertSaid:      {{"said", &a.Text}},
		assertDatabase:  {{"database", &a.Pointer}, {"equals", &a.Equals}},
	}
	a.Kind = assertKind(n.Content[0].Value)
	members, ok := kinds[a.Kind]
	if !ok {
		return a, p.errorf(n, "an assert begins with state, called, order, arguments, guard, failed, not_asked, together, text, said, database, executed, refused or untold, not with %q", a.Kind)
	}
	members = append(members, member{"provoked", &a.Provoked})
	if err := p.mapping(n, "the assert "+string(a.Kind), members); err != nil {
		return a, err
	}
	a.Tolerant = match == "tolerant"
	counts := a.Kind == assertCalled || a.Kind == assertExecuted
	switch {
	case atLeast != nil:
		a.AtLeast = *atLeast
	case counts && a.AtMost == nil:
		a.AtLeast = 1
	}
	if why := a.wrong(match); why != "" {
		return a, p.errorf(n, "%s", why)
	}
	return a, nil
}

// wrong describes the first mistake in an assert, or returns "".
func (a *assert) wrong(match string) string {
	if err := checkPointer(a.Pointer); err != nil {
		return err.Error()
	}
	hasPointer, hasEquals := a.Pointer != "", a.Equals != nil
	switch a.Kind {
	case assertState, assertDatabase:
		if !hasPointer || !hasEquals {
			return string(a.Kind) + " wants a JSON pointer and equals"
		}
	case assertArguments:
		if !hasPointer || hasEquals == a.Missing {
			return "arguments wants a pointer and one of equals and missing"
		}
	case assertCalled, assertExecuted:
		if hasPointer != hasEquals {
			return "pointer and equals belong together"
		}
		if a.AtMost != nil && *a.AtMost < a.AtLeast {
			return "at_most is below at_least"
		}
	case assertOrder, assertTogether:
		if len(a.Tools) < 2 {
			return string(a.Kind) + " wants two tools or more"
		}
		for _, t := range a.Tools {
			_, how, _ := strings.Cut(t, " ")
			known := how == "" || a.Kind == assertTogether && (how == "ok" || how == "failed")
			if !known {
				return string(a.Kind) + " wants tool names; those of together may have ok or failed behind them"
			}
		}
	case assertGuard:
		if a.Code == "" {
			return "guard wants a code"
		}
	case assertText:
		if match != "" && match != "exact" && match != "tolerant" {
			return "match is exact or tolerant"
		}
	case assertUntold, assertSaid:
		if a.Text == "" {
			return string(a.Kind) + " wants a text"
		}
	case assertFailed, assertNotAsked, assertRefused:
	}
	return ""
}
