package tool

import (
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/text"
)

// unknownTool replaces every name in events that is not registered.
const unknownTool = "unknown"

// resolveName is stage 2. It finds the tool with exactly this name, or with the name after dots were replaced by underscores. A tool that
// is hidden or that the run may not use is unknown.
func resolveName(c *call) {
	tools := &c.w.tools
	c.callee = tools.lookup(c.Name)
	c.foreign = c.client && tools.client[c.tool] != nil
}

// lookup returns the tool with this name, without foreign.
func (v *view) lookup(name string) callee {
	name = strings.TrimSpace(name)
	found := lookupExactly(v, name)
	if found.tool == "" && strings.IndexByte(name, '.') >= 0 {
		found = lookupExactly(v, strings.ReplaceAll(name, ".", "_"))
	}
	if found.tool == "" {
		return callee{client: v.handOver, tool: unknownTool}
	}
	return found
}

// lookupExactly returns the tool with exactly this name, or a callee without a name.
func lookupExactly(v *view, name string) callee {
	if v.deferral.on && name == SearchName {
		return callee{entry: v.deferral.entry, tool: SearchName}
	}
	if e := v.ofSet(name); e != nil && !e.spec.Hidden && v.allows(name) {
		if e.spec.Owner == lathe.OwnerClient {
			return callee{client: true, tool: name}
		}
		return callee{entry: e, tool: name}
	}
	if spec := v.client[name]; spec != nil && !spec.Disallowed {
		return callee{client: true, tool: name}
	}
	return callee{}
}

// canonical returns the name of the tool that the model means: the client's tool of which name is an alias, or name without residue of the
// model's format, which some servers do not remove. It returns name itself if a tool has this name, or if no tool or more than one tool
// fits.
func (v *view) canonical(name string) string {
	if v.finds(name) {
		return name
	}
	if v.aliases != nil {
		if own := v.aliases[spelled(name)]; own != "" {
			return own
		}
	}
	name, _ = text.ResolveToolName(name, v.finds)
	return name
}

// finds reports whether lookup finds a tool with this name.
func (v *view) finds(name string) bool {
	found := v.lookup(name)
	return found.entry != nil || found.client
}

// addAliases records the name and the aliases of a client's tool. If two tools have aliases with the same spelling, neither is found by them.
func (v *view) addAliases(spec *lathe.ToolSpec) {
	for _, alias := range append([]string{spec.Name}, spec.Aliases...) {
		key := spelled(alias)
		if own, taken := v.aliases[key]; taken && own != spec.Name {
			v.aliases[key] = ""
		} else {
			v.aliases[key] = spec.Name
		}
	}
}

// spelled returns the letters and digits of a name in lower case, because models write other separators than the client did.
func spelled(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r > 127:
			return r
		}
		return -1
	}, name)
}

// gone reports whether the model received the definition of a tool that is no longer in the set. Only a run that defers its tools keeps
// such definitions: see [Work.Refresh].
func (v *view) gone(name string) bool {
	if !v.deferral.on {
		return false
	}
	name = strings.TrimSpace(name)
	return v.shown.find(name) != nil || v.shown.find(strings.ReplaceAll(name, ".", "_")) != nil
}

// requireTool ends a call if its name has no tool. The error lists the names of the advertised tools.
func requireTool(c *call) ending {
	if c.entry != nil || c.client {
		return proceed
	}
	if c.w.tools.gone(c.Name) {
		return fail(lathe.CodeUnavailable)
	}
	c.detailName("available_tools")
	c.detail = append(c.detail, c.w.tools.advertise().names...)
	return fail(lathe.CodeUnknownTool)
}
