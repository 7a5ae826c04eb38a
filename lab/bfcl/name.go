package bfcl

import (
	"cmp"
	"strconv"

	"github.com/lathe-run/lathe/internal/lazy"
)

// maxName is the maximal length of a tool's name on the wire, in bytes.
const maxName = 64

// names maps the functions of one case to names that are valid on the wire, and back. Characters other than letters, digits, _ and -
// become _. If two names would be equal, the later one ends with a number.
type names struct {
	function map[string]string // names of functions by names of tools
}

var notInNames = lazy.Regexp(`[^\w-]`)

// tool adds a name for a function and returns it.
func (n *names) tool(function string) string {
	base := cmp.Or(notInNames().ReplaceAllString(function, "_"), "_")
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

// of returns the function of a tool, or the name unchanged if there is no such tool.
func (n *names) of(tool string) string {
	if f, ok := n.function[tool]; ok {
		return f
	}
	return tool
}
