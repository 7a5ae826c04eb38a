package bfcl

import (
	"strconv"
	"strings"
)

// maxName is the longest name of a tool on the wire.
const maxName = 64

// names gives the functions of one case names that the wire takes, and back. Other characters than
// letters, digits, _ and - become _, and where two names would be the same, the later one ends with a number.
type names struct {
	function map[string]string // by tool
}

// tool returns the tool's name of a function that has none yet.
func (n *names) tool(function string) string {
	base := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, function)
	if base == "" {
		base = "_"
	}
	name := base[:min(len(base), maxName)]
	for i := 2; n.taken(name); i++ {
		end := "_" + strconv.Itoa(i)
		name = base[:min(len(base), maxName-len(end))] + end
	}
	if n.function == nil {
		n.function = map[string]string{}
	}
	n.function[name] = function
	return name
}

func (n *names) taken(tool string) bool { _, ok := n.function[tool]; return ok }

// of returns the function of a tool; a name that no tool has stays as it is.
func (n *names) of(tool string) string {
	if f, ok := n.function[tool]; ok {
		return f
	}
	return tool
}
