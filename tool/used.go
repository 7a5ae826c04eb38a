package tool

import (
	"slices"

	"github.com/lathe-run/lathe"
)

// maxStrangers bounds the tools that are remembered of a history though nobody knows them any more.
const maxStrangers = 256

// remember notes the tools whose results a run starts with, and those that it used before it was
// resumed. A result that says that the tool was not allowed to run does not count.
func (w *Work) remember(opts *RunOptions) {
	strangers := 0
	for i := range opts.History {
		if opts.History[i].Role != lathe.RoleTool {
			continue
		}
		for _, p := range opts.History[i].Parts {
			r, ok := p.(lathe.ToolResult)
			if !ok || r.Code == lathe.CodePolicyDenied || r.Code == lathe.CodeApprovalDenied || r.Code == lathe.CodeApprovalExpired || r.Code == lathe.CodeUnknownTool {
				continue
			}
			name, spec := w.known(r.Name)
			if spec == nil {
				if strangers++; strangers > maxStrangers {
					continue
				}
			}
			w.use(name, spec).Earlier = true
		}
	}
	if opts.Resumed == nil {
		return
	}
	for i := range opts.Resumed.Calls {
		if c := &opts.Resumed.Calls[i]; c.Executed {
			name, spec := w.known(c.Tool)
			w.use(name, spec).Calls++
		}
	}
}

// known returns the tool that a name of the history means.
func (w *Work) known(name string) (string, *lathe.ToolSpec) {
	e, client, label := w.lookup(name)
	switch {
	case e != nil:
		return label, e.spec
	case client:
		if spec := w.client[label]; spec != nil {
			return label, spec
		}
		if e := w.tools.byName[label]; e != nil {
			return label, e.spec
		}
	}
	if e := w.tools.byName[name]; e != nil { // hidden, or kept from this run
		return name, e.spec
	}
	return clip(name, 64), nil
}

// use returns the entry of the tool among those that were used, made if need be.
func (w *Work) use(name string, spec *lathe.ToolSpec) *lathe.ToolUse {
	i := findUse(w.used, name)
	if i < 0 {
		i = len(w.used)
		w.used = append(w.used, lathe.ToolUse{Name: name, Spec: spec})
	}
	return &w.used[i]
}

func findUse(used []lathe.ToolUse, name string) int {
	return slices.IndexFunc(used, func(u lathe.ToolUse) bool { return u.Name == name })
}

// noteUse counts a call in which the tool ran, or the cache answered for it, or which the client runs.
func (w *Work) noteUse(c *call) {
	switch {
	case c.entry != nil && (c.ran || c.cached):
		w.use(c.tool, c.entry.spec).Calls++
	case c.client && c.code == "": // handed over, and once more when its answer comes
		name, spec := w.known(c.tool)
		if u := w.use(name, spec); c.Answer == nil || u.Calls == 0 {
			u.Calls++
		}
	}
}

// foresee tells calls that run side by side which tools were used before each, as if the ones before
// it had run: what a policy says must not depend on which of them is faster.
func (w *Work) foresee(calls []call) {
	used := w.used
	for i := range calls {
		calls[i].used = used
		e, _, name := w.lookup(calls[i].Name)
		if e == nil {
			continue
		}
		used = slices.Clone(used)
		at := findUse(used, name)
		if at < 0 {
			at = len(used)
			used = append(used, lathe.ToolUse{Name: name, Spec: e.spec})
		}
		used[at].Calls++
	}
}
