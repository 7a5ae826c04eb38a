package app

import (
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/policy/rules"
	"github.com/lathe-run/lathe/tool"
)

// NewPolicy returns the policy of the configuration: its rules, its decisions by tool and by effect, and its guards.
func NewPolicy(cfg *config.Config) (lathe.Policy, error) {
	list := policyRules(cfg)
	p := &cfg.Policy
	decided, err := rules.New(list, &rules.Options{Else: policy.Effects{ReadOnly: p.ReadOnly, Idempotent: p.Idempotent, Writes: p.Writes}})
	if err != nil {
		return nil, at("policy.rules", configError(err))
	}
	labels := policy.Labels(p.Labels)
	return policy.All(decided,
		policy.Trifecta{Decision: p.Trifecta, Labels: labels},
		policy.Taint{Decision: p.Taint, Labels: labels},
		policy.Budget(p.Budget)), nil
}

// policyRules returns the rules of the configuration, including decisions by tool name. Their Source is the configuration key.
func policyRules(cfg *config.Config) (list []rules.Rule) {
	for name, r := range text.ByName(cfg.Policy.Rules) {
		effect := ""
		if r.Effect != lathe.EffectUndeclared {
			effect = r.Effect.String()
		}
		list = append(list, rules.Rule{Name: name, Decision: r.Decision, Tool: r.Tool, Effect: effect, When: r.When,
			Principal: r.Principal, Labels: r.Labels, Reason: r.Reason, Source: "policy.rules." + name})
	}
	named := map[lathe.Decision]rules.Rule{
		lathe.Allow: {Name: policy.RuleAllowed},
		lathe.Ask:   {Name: policy.RuleAsked},
		lathe.Deny:  {Name: policy.RuleDenied, Reason: "this tool is not allowed"},
	}
	for name, decision := range text.ByName(cfg.Policy.Tools) {
		r := named[decision]
		r.Decision, r.Tool, r.Source = decision, name, "policy.tools."+name
		list = append(list, r)
	}
	return list
}

// toolUses returns how often each tool is in names. unknown is the first name that no tool of the set has, or "" if the set has them all.
func toolUses(set *tool.Set, names []string) (uses []lathe.ToolUse, unknown string) {
	for _, name := range names {
		i := slices.IndexFunc(uses, func(u lathe.ToolUse) bool { return u.Name == name })
		if i < 0 {
			t, ok := set.Lookup(name)
			if !ok {
				return nil, name
			}
			i = len(uses)
			uses = append(uses, lathe.ToolUse{Name: name, Spec: t.Spec()})
		}
		uses[i].Calls++
	}
	return uses, ""
}

// newSecrets returns the secrets of the configuration. Models never receive them, and tools only if secrets.grants names them.
func newSecrets(cfg *config.Config) *tool.Secrets {
	return &tool.Secrets{Known: cfg.KnownSecrets(), Patterns: cfg.Secrets.Patterns, Granted: func(name, secret string) bool {
		for pattern, names := range cfg.Secrets.Grants {
			if slices.Contains(names, secret) && policy.Match(pattern, name) {
				return true
			}
		}
		return false
	}}
}
