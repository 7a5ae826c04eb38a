package main

import (
	"strings"

	"github.com/lathe-run/lathe/policy"
)

// ruleAdvice returns advice with the configuration key of the rule that decided about a tool.
func ruleAdvice(rule, tool string) string {
	switch {
	case rule == policy.RuleTrifecta:
		return "policy.trifecta in lathe.yaml decides about tools that together could give private data away"
	case rule == policy.RuleTaint:
		return "policy.taint in lathe.yaml decides about tools that change something after untrusted text was read"
	case strings.HasPrefix(rule, "budget."):
		return "policy." + rule + " in lathe.yaml bounds what one run may use"
	case rule == policy.RuleAllowed, rule == policy.RuleAsked, rule == policy.RuleDenied:
		return "policy.tools." + tool + " in lathe.yaml says so"
	case strings.HasPrefix(rule, "secret."):
		return "secrets.grants in lathe.yaml says which tools are given which secrets"
	case strings.HasPrefix(rule, "effect."):
		return "policy.tools in lathe.yaml decides by name"
	case rule == "no_policy", rule == "policy_panic", rule == "":
		return "`lathe policy explain " + tool + "` says more"
	}
	return "policy.rules." + rule + " in lathe.yaml says so"
}
