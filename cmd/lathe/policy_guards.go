package main

import (
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/policy"
)

// idleGuards returns, by rule, why a guard has no effect with these tools: no tool has a label that the guard requires.
func idleGuards(cfg *config.Config, specs []*lathe.ToolSpec) map[string]string {
	labels := policy.Labels(cfg.Policy.Labels)
	lacks := func(label string) bool {
		return !slices.ContainsFunc(specs, func(s *lathe.ToolSpec) bool { return labels.Has(s.Name, s, label) })
	}
	out := map[string]string{}
	for rule, needs := range map[string][]string{
		policy.RuleTaint:    {lathe.LabelReadsUntrusted},
		policy.RuleTrifecta: {lathe.LabelReadsPrivate, lathe.LabelReadsUntrusted, lathe.LabelCanExfiltrate},
	} {
		if missing := slices.DeleteFunc(needs, func(l string) bool { return !lacks(l) }); len(missing) > 0 {
			out[rule] = "it holds nothing back: no tool has the label " + strings.Join(missing, ", none ") + " (policy.labels)"
		}
	}
	return out
}
