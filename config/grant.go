package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
)

// A grantValue is a list that grants: what is in it is allowed. Unset, which `["*"]` also says, it
// grants everything and is nil; an empty list grants nothing.
type grantValue struct{ listValue }

// everything is the only word of a list that grants everything.
const everything = "*"

func grant(p *[]string, check func(string) error) lister { return grantValue{listValue{p, check}} }

func (v grantValue) set(s string) error { return setWords(v, s) }

func (v grantValue) setList(items []string) error {
	if slices.Equal(items, []string{everything}) {
		*v.p = nil
		return nil
	}
	return v.listValue.setList(items)
}

func (v grantValue) list() []string {
	if *v.p == nil {
		return []string{everything}
	}
	return *v.p
}

func (v grantValue) text() string { return strings.Join(v.list(), ",") }

// A distinct list is one whose unset value cannot be written: `config show` leaves it out.
type distinct struct{ lister }

// Warnings returns what is valid in the configuration and probably not meant: empty lists,
// which grant nothing and in earlier versions granted everything, and a guard that can hold nothing back.
func (c *Config) Warnings() []Problem {
	var out []Problem
	var walk func(base string, rows []key)
	walk = func(base string, rows []key) {
		for _, k := range rows {
			path := base + k.path
			switch v := k.v.(type) {
			case grouper:
				for _, e := range v.groups() {
					walk(path+"."+e.name+".", e.rows)
				}
			case grantValue:
				if *v.p != nil && len(*v.p) == 0 {
					out = append(out, Problem{File: c.Origin(path), Key: path,
						Message: fmt.Sprintf("the list is empty and grants nothing; earlier versions granted everything: remove the key or write [%q] for all", everything)})
				}
			case distinct:
				if l := v.list(); l != nil && len(l) == 0 {
					out = append(out, Problem{File: c.Origin(path), Key: path,
						Message: "the list is empty and grants nothing; earlier versions took it for unset: remove the key for the default"})
				}
			}
		}
	}
	walk("", c.keys())
	if c.idleTaint() {
		out = append(out, Problem{File: c.Origin("policy.taint"), Key: "policy.taint",
			Message: "it holds nothing back: no tool has the label " + lathe.LabelReadsUntrusted + ", and calls that change something are allowed without asking; " +
				"label the tools that read what strangers may have written (policy.labels), or set policy.taint to allow"})
	}
	return out
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
