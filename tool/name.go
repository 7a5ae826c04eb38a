package tool

import (
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/text"
)

// unknownTool stands in events for every name that is not registered.
const unknownTool = "unknown"

// resolveName is stage 2. It finds the tool of the exact name, else of the name with underscores in place of dots. A tool
// that is hidden or that the run may not use is unknown.
func resolveName(c *call) {
	tools := &c.w.tools
	c.entry, c.client, c.tool = tools.lookup(c.Name)
	c.foreign = c.client && tools.client[c.tool] != nil
}

// lookup returns the tool that Lathe executes under the name, or that the client executes it, and its name in events.
func (v *view) lookup(name string) (e *entry, client bool, label string) {
	name = strings.TrimSpace(name)
	for range 2 {
		if v.deferral.on && name == SearchName {
			return v.deferral.entry, false, SearchName
		}
		if e := v.has(name); e != nil && !e.spec.Hidden && v.may(name) {
			if e.spec.Owner == lathe.OwnerClient {
				return nil, true, e.spec.Name
			}
			return e, false, e.spec.Name
		}
		if spec := v.client[name]; spec != nil && !spec.Disallowed {
			return nil, true, spec.Name
		}
		if strings.IndexByte(name, '.') < 0 {
			break
		}
		name = strings.ReplaceAll(name, ".", "_")
	}
	return nil, v.handOver, unknownTool
}

// canonical returns the name of the tool that the model means: that of the client's tool that it calls by an alias, or name without
// residue of the model's format, which some servers leave in it. It returns name itself if a tool has that name, or if none or several
// tools fit.
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

// finds reports whether lookup finds a tool of that name.
func (v *view) finds(name string) bool {
	e, client, _ := v.lookup(name)
	return e != nil || client
}

// alias records the aliases of a tool of the client. Tools whose aliases are spelled alike are found by none of them.
func (v *view) alias(spec *lathe.ToolSpec) {
	for _, alias := range append([]string{spec.Name}, spec.Aliases...) {
		key := spelled(alias)
		if own, taken := v.aliases[key]; taken && own != spec.Name {
			v.aliases[key] = ""
		} else {
			v.aliases[key] = spec.Name
		}
	}
}

// spelled returns the letters and digits of a name, in lower case: models write other separators than the client did.
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

// gone reports whether the model was sent the definition of a tool that has left the set since. Only a run that defers its
// tools keeps such a definition: see [Work.Refresh].
func (v *view) gone(name string) bool {
	if !v.deferral.on {
		return false
	}
	name = strings.TrimSpace(name)
	return v.shown.find(name) != nil || v.shown.find(strings.ReplaceAll(name, ".", "_")) != nil
}

// requireTool ends a call to a name without a tool. The answer lists the names of the advertised tools.
func requireTool(c *call) ending {
	if c.entry != nil || c.client {
		return proceed
	}
	if c.w.tools.gone(c.Name) {
		return fail(lathe.CodeUnavailable)
	}
	c.detailRaw("available_tools", c.w.tools.advertise().names)
	return fail(lathe.CodeUnknownTool)
}
