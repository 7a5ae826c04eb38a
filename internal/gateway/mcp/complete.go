package mcp

import (
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxCompletions bounds the values of one completion; the protocol allows no more.
const maxCompletions = 100

// complete handles completion/complete. It returns the values of an argument or template part that begin with the typed text, then those
// that contain it, without regard to case.
func (t *tenantCatalog) complete(p *mcp.CompleteParams) (mcp.Result, error) {
	if p == nil || p.Ref == nil || p.Argument.Name == "" {
		return nil, invalidParams("the completion says not what of")
	}
	values, ok := t.values(p.Ref, p.Argument.Name)
	if !ok {
		return nil, invalidParams("there is no such prompt, template or argument")
	}
	typed := strings.ToLower(p.Argument.Value)
	first, then := []string{}, []string{}
	for _, v := range values {
		switch low := strings.ToLower(v); {
		case strings.HasPrefix(low, typed):
			first = append(first, v)
		case strings.Contains(low, typed):
			then = append(then, v)
		}
	}
	all := append(first, then...)
	return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: all[:min(len(all), maxCompletions)], Total: len(all), HasMore: len(all) > maxCompletions}}, nil
}

// values returns the values to which an argument of a prompt, or a part of a template, may be completed; false if there is no such
// argument.
func (t *tenantCatalog) values(ref *mcp.CompleteReference, argument string) ([]string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, item := range t.readables {
		switch item := item.(type) {
		case *prompt:
			if ref.Type == "ref/prompt" && item.Name == ref.Name {
				return item.values(argument)
			}
		case *resource:
			if ref.Type == "ref/resource" && item.matches(ref.URI) {
				return item.values(argument)
			}
		}
	}
	return nil, false
}

func (p *prompt) values(argument string) ([]string, bool) {
	for _, a := range p.Arguments {
		if a.Name == argument {
			return a.Values, true
		}
	}
	return nil, false
}

// matches reports whether a client that completes a part means this resource: clients know files by their template.
func (r *resource) matches(uri string) bool {
	return uri == r.URI || r.Files != nil && uri == r.URI+"{+path}"
}

func (r *resource) values(part string) ([]string, bool) {
	if r.Files != nil {
		return nil, part == "path" // the paths of files are not suggested
	}
	return r.Values[part], slices.Contains(r.parts, part)
}
