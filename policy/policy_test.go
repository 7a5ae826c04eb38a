package policy_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/policy"
)

func call(name string, e lathe.Effect) *lathe.CallInfo {
	return &lathe.CallInfo{Run: &lathe.RunInfo{}, Call: &lathe.ToolCall{Name: name}, Tool: &lathe.ToolSpec{Name: name, Effect: e}}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	byName := policy.Tools{Allow: []string{"a", "both"}, Ask: []string{"b"}, Deny: []string{"c", "both"}}
	withElse := policy.Tools{Deny: []string{"c"}, Else: policy.Default()}
	tests := []struct {
		name   string
		policy lathe.Policy
		tool   string
		effect lathe.Effect
		want   lathe.Decision
		rule   string
	}{
		{"zero effects deny reading", policy.Effects{}, "x", lathe.ReadOnly, lathe.Deny, "effect.read_only"},
		{"zero effects deny writing", policy.Effects{}, "x", lathe.Writes, lathe.Deny, "effect.writes"},
		{"default allows reading", policy.Default(), "x", lathe.ReadOnly, lathe.Allow, "effect.read_only"},
		{"default asks for idempotent", policy.Default(), "x", lathe.Idempotent, lathe.Ask, "effect.idempotent"},
		{"default asks for writing", policy.Default(), "x", lathe.Writes, lathe.Ask, "effect.writes"},
		{"undeclared counts as writing", policy.Default(), "x", lathe.EffectUndeclared, lathe.Ask, "effect.writes"},
		{"unheard-of effect counts as writing", policy.Default(), "x", lathe.Effect(99), lathe.Ask, "effect.writes"},
		{"allow all", policy.AllowAll(), "x", lathe.Writes, lathe.Allow, policy.RuleAllowAll},
		{"named, allowed", byName, "a", lathe.Writes, lathe.Allow, policy.RuleAllowed},
		{"named, asked", byName, "b", lathe.Writes, lathe.Ask, policy.RuleAsked},
		{"named, denied", byName, "c", lathe.ReadOnly, lathe.Deny, policy.RuleDenied},
		{"denied wins in one Tools", byName, "both", lathe.ReadOnly, lathe.Deny, policy.RuleDenied},
		{"unlisted is denied", byName, "x", lathe.ReadOnly, lathe.Deny, "tools.unlisted"},
		{"names are exact", byName, "A", lathe.ReadOnly, lathe.Deny, "tools.unlisted"},
		{"zero Tools denies", policy.Tools{}, "a", lathe.ReadOnly, lathe.Deny, "tools.unlisted"},
		{"unlisted falls to Else", withElse, "x", lathe.ReadOnly, lathe.Allow, "effect.read_only"},
		{"listed does not fall to Else", withElse, "c", lathe.ReadOnly, lathe.Deny, policy.RuleDenied},
		{"All of nothing denies", policy.All(), "x", lathe.ReadOnly, lathe.Deny, "all.empty"},
		{"All with a nil denies", policy.All(policy.AllowAll(), nil), "x", lathe.ReadOnly, lathe.Deny, "all.missing"},
		{"All: ask wins over allow", policy.All(policy.AllowAll(), policy.Default()), "x", lathe.Writes, lathe.Ask, "effect.writes"},
		{"All: deny wins over ask", policy.All(policy.Default(), byName), "c", lathe.Writes, lathe.Deny, policy.RuleDenied},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := call(tt.tool, tt.effect)
			got := tt.policy.Call(c)
			if got.Decision != tt.want || got.Rule != tt.rule {
				t.Errorf("Call = %v by %q, want %v by %q", got.Decision, got.Rule, tt.want, tt.rule)
			}
			if got := tt.policy.Tool(c.Run, c.Tool); got.Decision != tt.want || got.Rule != tt.rule {
				t.Errorf("Tool = %v by %q, want %v by %q", got.Decision, got.Rule, tt.want, tt.rule)
			}
		})
	}
}

func TestStep(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		policy lathe.Policy
		want   lathe.Decision
	}{
		"allow all":      {policy.AllowAll(), lathe.Allow},
		"effects":        {policy.Effects{}, lathe.Allow},
		"tools":          {policy.Tools{}, lathe.Allow},
		"tools with":     {policy.Tools{Else: fixed{}}, lathe.Deny},
		"all of nothing": {policy.All(), lathe.Deny},
		"all":            {policy.All(policy.Default(), policy.Tools{}), lathe.Allow},
	} {
		if got := tt.policy.Step(&lathe.StepInfo{}).Decision; got != tt.want {
			t.Errorf("%s: Step = %v, want %v", name, got, tt.want)
		}
	}
}

// fixed gives one verdict for everything.
type fixed lathe.Verdict

func (f fixed) Tool(*lathe.RunInfo, *lathe.ToolSpec) lathe.Verdict { return lathe.Verdict(f) }
func (f fixed) Step(*lathe.StepInfo) lathe.Verdict                 { return lathe.Verdict(f) }
func (f fixed) Call(*lathe.CallInfo) lathe.Verdict                 { return lathe.Verdict(f) }

func TestAllIsOrderFree(t *testing.T) {
	t.Parallel()
	verdict := rapid.Custom(func(t *rapid.T) lathe.Verdict {
		return lathe.Verdict{
			Decision: lathe.Decision(rapid.IntRange(0, 3).Draw(t, "decision")),
			Rule:     rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "rule"),
			Reason:   rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "reason"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		verdicts := rapid.SliceOfN(verdict, 1, 6).Draw(t, "verdicts")
		shuffled := rapid.Permutation(verdicts).Draw(t, "shuffled")
		cut := rapid.IntRange(0, len(shuffled)).Draw(t, "cut")
		c := call("x", lathe.Writes)

		got := policy.All(policies(verdicts)...).Call(c)
		if other := policy.All(policies(shuffled)...).Call(c); other.Decision.String() != got.Decision.String() || other.Rule != got.Rule || other.Reason != got.Reason {
			t.Fatalf("order matters: %+v and %+v", got, other)
		}
		if cut > 0 && cut < len(shuffled) { // nested as one likes
			nested := policy.All(policy.All(policies(shuffled[:cut])...), policy.All(policies(shuffled[cut:])...)).Call(c)
			if nested.Decision.String() != got.Decision.String() || nested.Rule != got.Rule || nested.Reason != got.Reason {
				t.Fatalf("nesting matters: %+v and %+v", got, nested)
			}
		}
		for _, v := range verdicts {
			if strictness(v) < strictness(got) {
				t.Fatalf("got %v, though one says %v", got.Decision, v.Decision)
			}
		}
	})
}

func policies(vs []lathe.Verdict) []lathe.Policy {
	out := make([]lathe.Policy, len(vs))
	for i, v := range vs {
		out[i] = fixed(v)
	}
	return out
}

func strictness(v lathe.Verdict) int {
	return map[string]int{"deny": 0, "ask": 1, "allow": 2}[v.Decision.String()]
}

func TestAllCopiesItsPolicies(t *testing.T) {
	t.Parallel()
	ps := []lathe.Policy{policy.Effects{}}
	all := policy.All(ps...)
	ps[0] = policy.AllowAll()
	if got := all.Call(call("x", lathe.ReadOnly)).Decision; got != lathe.Deny {
		t.Errorf("Call = %v after the caller changed its slice, want deny", got)
	}
}

// Reading is allowed, writing is asked for, but for what the operator decided by name.
func ExampleTools() {
	p := policy.Tools{Allow: []string{"save_note"}, Deny: []string{"drop_table"}, Else: policy.Default()}
	for _, spec := range []*lathe.ToolSpec{
		{Name: "search", Effect: lathe.ReadOnly},
		{Name: "save_note", Effect: lathe.Writes},
		{Name: "send_mail", Effect: lathe.Writes},
		{Name: "drop_table", Effect: lathe.Writes},
	} {
		v := p.Call(&lathe.CallInfo{Run: &lathe.RunInfo{}, Tool: spec})
		fmt.Println(spec.Name, v.Decision, v.Rule)
	}
	// Output:
	// search allow effect.read_only
	// save_note allow tools.allow
	// send_mail ask effect.writes
	// drop_table deny tools.deny
}
