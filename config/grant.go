package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/vendor"
)

// Warnings returns settings that are valid but probably not intended: empty lists, which grant
// nothing and in earlier versions granted everything, but for those of a key that reads metrics, a taint guard that can block no call,
// and those of [Config.Warn].
func (c *Config) Warnings() []Problem {
	var out []Problem
	walk("", c.rows(), func(path string, r *row) {
		k := r.kind
		if k.shape != list || r.v.IsNil() || r.v.Len() > 0 || !k.everything && !k.omit || c.isOfScraper(path) || strings.HasSuffix(path, ".vendor_tools") {
			return
		}
		msg := "the list is empty and grants nothing; earlier versions took it for unset: remove the key for the default"
		if k.everything {
			msg = fmt.Sprintf("the list is empty and grants nothing; earlier versions granted everything: remove the key or write [%q] for all", everything)
		}
		out = append(out, Problem{File: c.Origin(path), Key: path, Message: msg})
	})
	out = append(out, c.budgetWarnings()...)
	out = append(out, c.keysFileWarnings()...)
	out = append(out, c.vendorToolWarnings()...)
	out = append(out, c.noted...)
	if c.idleTaint() {
		out = append(out, Problem{File: c.Origin("policy.taint"), Key: "policy.taint",
			Message: "it holds nothing back: no tool has the label " + lathe.LabelReadsUntrusted + ", and calls that change something are allowed without asking; " +
				"label the tools that read what strangers may have written (policy.labels), or set policy.taint to allow"})
	}
	return out
}

// Warn adds warnings to those of [Config.Warnings], at the places where their keys are set: those of [LoadOptions].Check, which looks at
// files that this package does not read.
func (c *Config) Warn(warnings ...Problem) {
	for _, w := range warnings {
		w.File = c.Origin(w.Key)
		c.noted = append(c.noted, w)
	}
}

// vendorToolWarnings returns a warning if there are keys that do not say which tools of vendors they may use, and models whose vendors
// have some.
func (c *Config) vendorToolWarnings() []Problem {
	var models, keys []string
	for name, m := range c.Models {
		wire := m.Wire != "" && m.Wire != lathe.WireOpenAIChat || slices.Contains([]string{"openai", "anthropic", "google"}, m.Profile)
		if m.Provider != "sim" && (wire || slices.ContainsFunc(m.Pass, vendor.IsToolMember)) {
			models = append(models, name)
		}
	}
	for name, k := range c.Keys {
		may, _ := c.Grants(name)
		if k.VendorTools == nil && c.Origin("keys."+name+".vendor_tools") == "default" && (may == nil || len(may) > 0) {
			keys = append(keys, "keys."+name)
		}
	}
	if len(models) == 0 || len(keys) == 0 {
		return nil
	}
	slices.Sort(keys)
	more := ""
	if n := len(keys) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more without the setting)", n)
	}
	key := keys[0] + ".vendor_tools"
	return []Problem{{File: c.Origin(keys[0]), Key: key, Message: "it is not set" + more + ", so that requests may have the vendor execute tools, such as web search and code, " +
		`at your cost and outside of budgets: list the tools, [] for none, or ["*"]`}}
}

// isOfScraper reports whether a setting is the models or tools of a key that reads metrics: such a key needs neither.
func (c *Config) isOfScraper(path string) bool {
	for name, k := range c.Keys {
		if k.Metrics && (path == "keys."+name+".models" || path == "keys."+name+".tools") {
			return true
		}
	}
	return false
}

// idleTaint reports whether policy.taint is on, there are tools that reach outside, calls that change
// something are allowed without asking, and no label says which tools read what strangers may have
// written.
func (c *Config) idleTaint() bool {
	p, t := &c.Policy, &c.Tools
	if p.Taint == lathe.Allow || len(t.HTTP)+len(t.OpenAPI)+len(t.MCP) == 0 {
		return false
	}
	for _, labels := range p.Labels {
		if slices.Contains(labels, lathe.LabelReadsUntrusted) {
			return false
		}
	}
	allows := p.Writes == lathe.Allow || p.Idempotent == lathe.Allow
	for _, d := range p.Tools {
		allows = allows || d == lathe.Allow
	}
	for _, r := range p.Rules {
		allows = allows || r.Decision == lathe.Allow
	}
	return allows
}

// Grants returns the models and tools that a key of the configuration may use: nil for all, and an empty list for none, which is
// also what serve.default_grant none makes of a list that is not set.
func (c *Config) Grants(key string) (models, tools []string) {
	k := c.Keys[key]
	models, tools = k.Models, k.Tools
	if c.Serve.DefaultGrant != "none" {
		return models, tools
	}
	unset := func(setting string) bool { return c.Origin("keys."+key+"."+setting) == "default" }
	if models == nil && unset("models") {
		models = []string{}
	}
	if tools == nil && unset("tools") {
		tools = []string{}
	}
	return models, tools
}
