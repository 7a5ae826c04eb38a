package bfcl

import (
	"cmp"
	"strconv"

	"github.com/lathe-run/lathe/internal/lazy"
)

// maxName is the maximal length of a tool's name on the wire, in bytes.
const maxName = 64

// names maps the functions of one case to names that are valid on the wire, and back. Characters other than letters, digits, _ and -
// become _. If two names would be equal, the later one ends with a number. The map has the names of functions by names of tools.
type names map[string]string

var notInNames = lazy.Regexp(`[^\w-]`)

// add adds a name for a function and returns it.
func (n names) add(function string) string {
	base := cmp.Or(notInNames().ReplaceAllString(function, "_"), "_")
	name := base[:min(len(base), maxName)]
	for i := 2; n.taken(name); i++ {
		end := "_" + strconv.Itoa(i)
		name = base[:min(len(base), maxName-len(end))] + end
	}
	n[name] = function
	return name
}

func (n names) taken(tool string) bool { _, ok := n[tool]; return ok }

// of returns the function of a tool, or the name unchanged if there is no such tool.
func (n names) of(tool string) string {
	if f, ok := n[tool]; ok {
		return f
	}
	return tool
}
