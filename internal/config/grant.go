package config

import (
	"fmt"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/vendor"
)

// Warnings about a valid configuration, and what its keys grant.

// Warnings returns settings that are valid but probably unintended, such as names of keys that do not exist, and the warnings that
// [Config.Warn] has added. A list that is written as empty grants nothing, which is not a warning.
func (c *Config) Warnings() []Problem {
	var out []Problem
	out = append(out, c.budgetWarnings()...)
	out = append(out, c.keysFileWarnings()...)
	out = append(out, c.vendorToolWarnings()...)
	out = append(out, c.noted...)
	if c.idleTaint() {
		out = append(out, c.warning("policy.taint", "it holds nothing back: no tool has the label "+lathe.LabelReadsUntrusted+", and calls that change something are allowed without asking; "+
			"label the tools that read what strangers may have written (policy.labels), or set policy.taint to allow"))
	}
	return out
}

// warning returns a warning at the place where a key is set.
func (c *Config) warning(key, message string) Problem {
	return Problem{File: c.Origin(key), Key: key, Message: message}
}

// Warn adds warnings to those of [Config.Warnings], at the places where their keys are set: those of [LoadOptions].Check, which looks at
// files that this package does not read.
func (c *Config) Warn(warnings ...Problem) {
	for _, w := range warnings {
		w.File = c.Origin(w.Key)
		c.noted = append(c.noted, w)
	}
}

// vendorToolWarnings returns a warning if there are keys without a setting for the vendor tools that they may use, and models whose vendors
// have such tools.
func (c *Config) vendorToolWarnings() []Problem {
	var models, keys []string
	for name, m := range c.Models {
		ofVendor := m.Wire != "" && m.Wire != lathe.WireOpenAIChat || slices.Contains([]string{"openai", "anthropic", "google"}, m.Profile)
		passed := slices.ContainsFunc(m.Pass, vendor.IsToolMember)
		if m.Provider != "sim" && (ofVendor || passed) {
			models = append(models, name)
		}
	}
	for name, k := range c.Keys {
		granted, _ := c.Grants(name)
		hasModels := granted == nil || len(granted) > 0
		if hasModels && k.VendorTools == nil && c.Origin("keys."+name+".vendor_tools") == "default" {
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

// idleTaint reports whether policy.taint is on but has no effect: there are tools with access to other systems, calls that change something
// are allowed without approval, and no label marks the tools that read untrusted text.
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

// Grants returns the models and tools that a key of the configuration may use: nil for all, empty for none. A list that is not set follows
// serve.default_grant.
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
