package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/policy"
)

var labels = policy.Labels{"mail_*": {lathe.LabelReadsPrivate}, "web_*": {lathe.LabelReadsUntrusted}, "post_*": {lathe.LabelCanExfiltrate}, "shell": {lathe.LabelReadsPrivate, lathe.LabelReadsUntrusted, lathe.LabelCanExfiltrate}}

// after is a call of the tool in a run that has used others.
func after(tool string, used ...string) *lathe.CallInfo {
	c := call(tool, lathe.ReadOnly)
	for _, name := range used {
		name, earlier := strings.CutPrefix(name, "earlier:")
		c.Used = append(c.Used, lathe.ToolUse{Name: name, Calls: 1, Earlier: earlier})
	}
	return c
}

// All orders of the three kinds: the third is held back, whichever it is.
func TestT2_ThirdLegIsWithheld(t *testing.T) {
	t.Parallel()
	p, q, x := "mail_read", "web_get", "post_form"
	for _, tt := range []struct {
		tool string
		used []string
		held bool
	}{
		{x, []string{p, q}, true}, {x, []string{q, p}, true},
		{p, []string{q, x}, true}, {p, []string{x, q}, true},
		{q, []string{p, x}, true}, {q, []string{x, p}, true},
		{x, []string{p}, false}, {x, []string{q}, false}, {x, []string{x, x}, false}, {x, nil, false},
		{p, []string{q}, false}, {q, []string{p, "clock"}, false},
		{"clock", []string{p, q, x}, false},
		{p, []string{p, q, x}, true},
		{"shell", nil, true},
		{x, []string{"shell"}, true},
		{x, []string{"earlier:" + p, q}, true},
	} {
		for _, d := range []lathe.Decision{lathe.Deny, lathe.Ask} {
			want := lathe.Allow
			if tt.held {
				want = d
			}
			if got := (policy.Trifecta{Decision: d, Labels: labels}).Call(after(tt.tool, tt.used...)).Decision; got != want {
				t.Errorf("%s after %v: got %v, want %v", tt.tool, tt.used, got, want)
			}
		}
		if got := (policy.Trifecta{Decision: lathe.Allow, Labels: labels}).Call(after(tt.tool, tt.used...)).Decision; got != lathe.Allow {
			t.Errorf("%s after %v, off: got %v", tt.tool, tt.used, got)
		}
	}
}

// Labels of the definition count like those of the configuration.
func TestT2_LabelsOfTheDefinition(t *testing.T) {
	t.Parallel()
	c := call("send", lathe.Writes)
	c.Tool.Labels = []string{lathe.LabelCanExfiltrate}
	c.Used = []lathe.ToolUse{
		{Name: "a", Calls: 1, Spec: &lathe.ToolSpec{Name: "a", Labels: []string{lathe.LabelReadsPrivate}}},
		{Name: "b", Calls: 1, Spec: &lathe.ToolSpec{Name: "b", Labels: []string{lathe.LabelReadsUntrusted}}},
	}
	if v := (policy.Trifecta{}).Call(c); v.Decision != lathe.Deny || v.Rule != policy.RuleTrifecta {
		t.Errorf("got %+v", v)
	}
}

// Whatever the run does, tools of all three kinds are never used together.
func TestT2_NoRunUsesAllThree(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		guard := policy.Trifecta{Labels: labels}
		var used []string
		for range rapid.IntRange(0, 12).Draw(t, "calls") {
			name := rapid.SampledFrom([]string{"mail_read", "web_get", "post_form", "shell", "clock"}).Draw(t, "tool")
			if guard.Call(after(name, used...)).Decision == lathe.Allow {
				used = append(used, name)
			}
		}
		seen := map[string]bool{}
		for _, name := range used {
			for _, l := range labels.Of(name, nil) {
				seen[l] = true
			}
		}
		if len(seen) == 3 {
			t.Fatalf("used %v", used)
		}
	})
}

func TestT1_ToolsThatWriteAreWithheldAfterUntrustedContent(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		effect lathe.Effect
		used   []string
		held   bool
	}{
		{lathe.Writes, []string{"web_get"}, true},
		{lathe.EffectUndeclared, []string{"clock", "web_get"}, true},
		{lathe.Idempotent, []string{"earlier:web_get"}, true},
		{lathe.ReadOnly, []string{"web_get"}, false},
		{lathe.Writes, []string{"mail_read"}, false},
		{lathe.Writes, nil, false},
	} {
		c := after("save", tt.used...)
		c.Tool.Effect = tt.effect
		want := lathe.Allow
		if tt.held {
			want = lathe.Ask
		}
		if got := (policy.Taint{Decision: lathe.Ask, Labels: labels}).Call(c).Decision; got != want {
			t.Errorf("%v after %v: got %v, want %v", tt.effect, tt.used, got, want)
		}
	}
}

// Each bound at one below, at it, and one above.
func TestT34_Budget(t *testing.T) {
	t.Parallel()
	b := policy.Budget{Calls: 5, Tools: map[string]int{"mail_*": 2, "never": 0}, Tokens: 100, Cost: 1}
	uses := func(tool string, used ...lathe.ToolUse) *lathe.CallInfo {
		c := call(tool, lathe.ReadOnly)
		c.Used = used
		return c
	}
	for _, tt := range []struct {
		name string
		c    *lathe.CallInfo
		rule string
	}{
		{"below", uses("x", lathe.ToolUse{Name: "y", Calls: 4}), ""},
		{"at", uses("x", lathe.ToolUse{Name: "y", Calls: 5}), "budget.calls"},
		{"above", uses("x", lathe.ToolUse{Name: "y", Calls: 4}, lathe.ToolUse{Name: "x", Calls: 2}), "budget.calls"},
		{"tools below", uses("mail_a", lathe.ToolUse{Name: "mail_b", Calls: 1}), ""},
		{"tools at, together", uses("mail_a", lathe.ToolUse{Name: "mail_b", Calls: 1}, lathe.ToolUse{Name: "mail_a", Calls: 1}), "budget.tools"},
		{"other tools", uses("x", lathe.ToolUse{Name: "mail_b", Calls: 2}), ""},
		{"earlier runs do not count", uses("mail_a", lathe.ToolUse{Name: "mail_a", Earlier: true}), ""},
		{"none", uses("never"), "budget.tools"},
	} {
		v := b.Call(tt.c)
		if (v.Decision == lathe.Allow) != (tt.rule == "") || tt.rule != "" && v.Rule != tt.rule {
			t.Errorf("%s: got %+v, want rule %q", tt.name, v, tt.rule)
		}
	}
	if v := b.Tool(nil, &lathe.ToolSpec{Name: "never"}); v.Decision != lathe.Deny {
		t.Errorf("a tool without any call is advertised")
	}
	for _, tt := range []struct {
		s    lathe.StepInfo
		rule string
	}{
		{lathe.StepInfo{Usage: lathe.Usage{TotalTokens: 99}, Cost: 0.99}, ""},
		{lathe.StepInfo{Usage: lathe.Usage{TotalTokens: 100}}, "budget.tokens"},
		{lathe.StepInfo{Usage: lathe.Usage{InputTokens: 60, OutputTokens: 41}}, "budget.tokens"},
		{lathe.StepInfo{Cost: 1}, "budget.cost"},
	} {
		if v := b.Step(&tt.s); (v.Decision == lathe.Allow) != (tt.rule == "") || tt.rule != "" && v.Rule != tt.rule {
			t.Errorf("%+v: got %+v", tt.s, v)
		}
	}
	if v := (policy.Budget{}).Step(&lathe.StepInfo{Usage: lathe.Usage{TotalTokens: 1 << 40}}); v.Decision != lathe.Allow {
		t.Errorf("the zero budget bounds: %+v", v)
	}
}

func TestMatch(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"", "x", true}, {"*", "", true}, {"x", "x", true}, {"x", "xx", false}, {"x*", "x", true}, {"*x", "xyx", true},
		{"a*b*c", "aXbYc", true}, {"a*b*c", "acb", false}, {"?", "", false}, {"??", "ab", true}, {"X", "x", false},
		{"*a*a*a*a*b", strings.Repeat("a", 1000), false}, {"**", "abc", true}, {"[a]", "a", false},
	} {
		if got := policy.Match(tt.pattern, tt.name); got != tt.want {
			t.Errorf("Match(%q, %.20q) = %v", tt.pattern, tt.name, got)
		}
	}
}

// Guards that let a call pass do not stand in its verdict.
func TestAllNamesTheRuleThatAllows(t *testing.T) {
	t.Parallel()
	p := policy.All(policy.Trifecta{}, policy.Tools{Allow: []string{"x"}}, policy.Taint{}, policy.Budget{})
	v, found := policy.Explain(p, after("x"))
	if v.Decision != lathe.Allow || v.Rule != policy.RuleAllowed {
		t.Errorf("got %+v", v)
	}
	var names []string
	for _, f := range found {
		names = append(names, fmt.Sprint(f.Rule, f.Decides))
	}
	if got := strings.Join(names, " "); got != "trifectafalse tools.allowtrue taintfalse budgetfalse" {
		t.Errorf("got %s", got)
	}
}
