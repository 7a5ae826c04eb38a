package tool

import (
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/text"
)

// usedTools are the tools whose results the run has received.
type usedTools []lathe.ToolUse

// maxStrangers is the maximum number of tools of a history that are unknown to the run.
const maxStrangers = 256

// remember adds the tools with results in the history of the run, and those that the run used before it was resumed. Results that mean that
// the tool was not allowed to run do not count.
func (w *Work) remember(opts *RunOptions) {
	strangers := 0
	for i := range opts.History {
		if opts.History[i].Role != lathe.RoleTool {
			continue
		}
		for _, p := range opts.History[i].Parts {
			r, ok := p.(lathe.ToolResult)
			if !ok || wasRefused(r.Code) {
				continue
			}
			name, spec := w.tools.known(r.Name)
			if spec == nil {
				strangers++
				if strangers > maxStrangers {
					continue
				}
			}
			w.used.use(name, spec).Earlier = true
		}
	}
	if opts.Resumed == nil {
		return
	}
	for _, c := range opts.Resumed.Calls {
		if c.Executed {
			w.used.use(w.tools.known(c.Tool)).Calls++
		}
	}
}

// wasRefused reports whether a result with this code means that the tool was not allowed to run.
func wasRefused(code lathe.Code) bool {
	switch code {
	case lathe.CodePolicyDenied, lathe.CodeApprovalDenied, lathe.CodeApprovalExpired, lathe.CodeUnknownTool:
		return true
	}
	return false
}

// known returns the tool to which a name in the history refers.
func (v *view) known(name string) (string, *lathe.ToolSpec) {
	found := v.lookup(name)
	switch {
	case found.entry != nil:
		return found.tool, found.entry.spec
	case found.client:
		if spec := v.client[found.tool]; spec != nil {
			return found.tool, spec
		}
		if e := v.registry.byName[found.tool]; e != nil {
			return found.tool, e.spec
		}
	}
	if e := v.registry.byName[name]; e != nil { // a hidden tool, or one that the run may not use
		return name, e.spec
	}
	return text.Cut(name, 64), nil
}

// use returns the entry of the tool. It adds one if none exists.
func (u *usedTools) use(name string, spec *lathe.ToolSpec) *lathe.ToolUse {
	i := slices.IndexFunc(*u, func(u lathe.ToolUse) bool { return u.Name == name })
	if i < 0 {
		i = len(*u)
		*u = append(*u, lathe.ToolUse{Name: name, Spec: spec})
	}
	return &(*u)[i]
}

// countUse counts a call whose tool was called or whose output came from the cache, and a call that the client executes.
func (w *Work) countUse(c *call) {
	switch {
	case c.entry != nil && (c.ran || c.source == fromCache):
		w.used.use(c.tool, c.entry.spec).Calls++
	case c.client && c.code == "": // counted when it is handed over, not again with its result
		if u := w.used.use(w.tools.known(c.tool)); c.Answer == nil || u.Calls == 0 {
			u.Calls++
		}
	}
}

// foreseeUse sets for each concurrent call the tools that were used before it, as if all earlier ones had been executed, so that the
// verdict of a policy does not depend on their timing.
func foreseeUse(w *Work, calls []call) {
	used := slices.Clone(w.used)
	for i := range calls {
		calls[i].used = slices.Clip(used) // the policy may retain it
		tool := w.tools.lookup(calls[i].Name)
		if tool.entry == nil {
			continue
		}
		used = slices.Clone(used)
		used.use(tool.tool, tool.entry.spec).Calls++
	}
}
