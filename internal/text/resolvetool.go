package text

import "strings"

// toolPrefixes are the name spaces that models write before the names of tools.
var toolPrefixes = [...]string{"functions.", "functions:", "default_api.", "default_api:"}

// ResolveToolName returns the name of the offered tool that name stands for: name itself if it is offered, else name without the
// residue of a model's format, of which each part is taken off only as far as it takes to find an offered tool: what stands from `<|` on, one
// of the prefixes functions. functions: default_api. default_api: and the word json at the end. ok is false if no tool is found.
func ResolveToolName(name string, offered func(string) bool) (_ string, ok bool) {
	if offered(name) {
		return name, true
	}
	rest, _, _ := strings.Cut(name, "<|")
	if rest = strings.TrimSpace(rest); offered(rest) {
		return rest, true
	}
	for _, prefix := range toolPrefixes {
		if inner, found := strings.CutPrefix(rest, prefix); found {
			if rest = inner; offered(rest) {
				return rest, true
			}
			break
		}
	}
	if inner, found := strings.CutSuffix(rest, "json"); found && offered(inner) {
		return inner, true
	}
	return name, false
}
