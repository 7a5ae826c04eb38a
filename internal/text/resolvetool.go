package text

import "strings"

// toolPrefixes are the namespaces that models write before names of tools.
var toolPrefixes = [...]string{"functions.", "functions:", "default_api.", "default_api:"}

// ResolveToolName returns the offered tool that a model means by name: name itself if it is offered, else name without the residue of a
// format of the model. It removes one kind of residue after the other until the rest is an offered name: the text from `<|` on, one of the
// prefixes functions. functions: default_api. default_api: and the suffix json. ok is false if no tool is found.
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
