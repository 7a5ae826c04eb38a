package policy

import "github.com/lathe-run/lathe"

// ToolVersion returns ok if the verdicts of p on tools do not depend on the run: Tool returns the same verdict on the same definition
// for as long as ToolVersion returns the same version. Policies of other packages can implement tool.ToolVersioner; those that do not
// have no version.
func ToolVersion(p lathe.Policy) (version uint64, ok bool) {
	v, is := p.(interface {
		ToolVersion(self lathe.Policy) (version uint64, ok bool)
	})
	if !is {
		return 0, false
	}
	return v.ToolVersion(p)
}

// The version of a policy of this package does not change, unless the policy calls other policies. A type that embeds one of them has its
// method, too, and may have a Tool of its own: self shows whether that is so.

// ToolVersion returns 0 and true: see [ToolVersion].
func (allowAll) ToolVersion(self lathe.Policy) (uint64, bool) { return fixed[allowAll](self) }

// ToolVersion returns 0 and true: see [ToolVersion].
func (Effects) ToolVersion(self lathe.Policy) (uint64, bool) { return fixed[Effects](self) }

// ToolVersion returns 0 and true: see [ToolVersion].
func (Trifecta) ToolVersion(self lathe.Policy) (uint64, bool) { return fixed[Trifecta](self) }

// ToolVersion returns 0 and true: see [ToolVersion].
func (Taint) ToolVersion(self lathe.Policy) (uint64, bool) { return fixed[Taint](self) }

// ToolVersion returns 0 and true: see [ToolVersion].
func (Budget) ToolVersion(self lathe.Policy) (uint64, bool) { return fixed[Budget](self) }

// ToolVersion returns the version of Else, and 0 and true if Else is nil: see [ToolVersion].
func (t Tools) ToolVersion(self lathe.Policy) (version uint64, ok bool) {
	if version, ok = fixed[Tools](self); !ok || t.Else == nil {
		return version, ok
	}
	return ToolVersion(t.Else)
}

// ToolVersion returns what Version returns, and false if Version is nil: see [ToolVersion].
func (d Disabled) ToolVersion(self lathe.Policy) (version uint64, ok bool) {
	if _, ok = fixed[Disabled](self); !ok || d.Version == nil {
		return 0, false
	}
	return d.Version(), true
}

// ToolVersion returns the sum of the versions of all policies, which grow, if each has one: see [ToolVersion].
func (a all) ToolVersion(self lathe.Policy) (version uint64, ok bool) {
	if version, ok = fixed[all](self); !ok {
		return 0, false
	}
	for _, p := range a {
		if p == nil { // its verdict is always the same
			continue
		}
		v, ok := ToolVersion(p)
		if !ok {
			return 0, false
		}
		version += v
	}
	return version, true
}

// fixed reports whether self is a P, and not a type that embeds one.
func fixed[P lathe.Policy](self lathe.Policy) (version uint64, ok bool) {
	_, ok = self.(P)
	return 0, ok
}
