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
	star, mark := -1, 0 // the index of the last `*` in pattern, and the end in name of the text that it matches
	p, n := 0, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			p++
			n++
		case star >= 0:
			mark++
			p, n = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// Selected reports whether lists of patterns select a name: a pattern of include matches it, or include is nil, and no pattern of exclude
// matches it. See [Match] for patterns.
func Selected(include, exclude []string, name string) bool {
	matches := func(pattern string) bool { return Match(pattern, name) }
	return (include == nil || slices.ContainsFunc(include, matches)) && !slices.ContainsFunc(exclude, matches)
}
