package policy

import (
	"slices"
	"strings"
)

// Match reports whether a name matches a pattern in which `*` stands for any number of characters, including none,
// and `?` for one byte. The empty pattern matches every name. The time is linear in name for each `*`.
func Match(pattern, name string) bool {
	if pattern == "" {
		return true
	}
	part, rest, more := strings.Cut(pattern, "*")
	if !begins(name, part) {
		return false
	}
	name = name[len(part):]
	if !more {
		return name == ""
	}
	for {
		part, rest, more = strings.Cut(rest, "*")
		if !more { // the last part is the end of the name
			return len(name) >= len(part) && begins(name[len(name)-len(part):], part)
		}
		for !begins(name, part) { // the first place of a part between two stars leaves most for the parts behind it
			if name == "" {
				return false
			}
			name = name[1:]
		}
		name = name[len(part):]
	}
}

// begins reports whether name begins with part, in which `?` stands for one byte.
func begins(name, part string) bool {
	if len(name) < len(part) {
		return false
	}
	for i := range len(part) {
		if part[i] != '?' && part[i] != name[i] {
			return false
		}
	}
	return true
}

// Selected reports whether lists of patterns select a name: a pattern of include matches it, or include is nil, and no pattern of exclude
// matches it. See [Match] for patterns.
func Selected(include, exclude []string, name string) bool {
	matches := func(pattern string) bool { return Match(pattern, name) }
	return (include == nil || slices.ContainsFunc(include, matches)) && !slices.ContainsFunc(exclude, matches)
}
