package mcptool

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/policy"
)

// offers reports whether the configuration offers the server's tool with the name remote. The definition must also be accepted.
func (s *Server) offers(remote string) bool { return policy.Selected(s.Tools, s.Exclude, remote) }

// toolName returns the name under which the server's tool with the name remote is offered.
func (s *Server) toolName(remote string) string {
	if name, ok := s.Rename[remote]; ok {
		return name
	}
	return toolName(s.Name, remote)
}

// owns reports whether an offered name belongs to the server.
func (s *Server) owns(name string) bool {
	return serverOf(name) == s.Name || slices.Contains(slices.Collect(maps.Values(s.Rename)), name)
}

// checkNames returns an error if Tools, Exclude or Rename is not valid.
func (s *Server) checkNames() error {
	if slices.Contains(s.Tools, "") || slices.Contains(s.Exclude, "") {
		return errors.New("an empty name among the tools")
	}
	remotes := map[string]string{} // by new name
	for remote, name := range text.ByName(s.Rename) {
		if !s.offers(remote) {
			return fmt.Errorf("the tool %.128q is renamed, and it is not among the tools that are offered", remote)
		}
		if name == "" || len(name) > text.MaxToolName || name != string(safeName(name)) {
			return fmt.Errorf("the tool %.128q is renamed to %.80q, which is not 1 to %d of a-z, A-Z, 0-9, _ and -", remote, name, text.MaxToolName)
		}
		if other, ok := remotes[name]; ok {
			return fmt.Errorf("the tools %.128q and %.128q are both renamed to %s", other, remote, name)
		}
		if of := serverOf(name); of != name && of != s.Name && validServerName(of) {
			return fmt.Errorf("the tool %.128q is renamed to %s, which is a name of the server %s", remote, name, of)
		}
		remotes[name] = remote
	}
	return nil
}

// A nameSetting is a setting that names tools of the server.
type nameSetting struct {
	setting     string
	names       []string
	hasPatterns bool
}

// matches reports whether a name of the setting means one of the tools. The pattern * also matches an empty list of tools.
func (n *nameSetting) matches(name string, tools []string) bool {
	if n.hasPatterns {
		return name == "*" || slices.ContainsFunc(tools, func(tool string) bool { return policy.Match(name, tool) })
	}
	return slices.Contains(tools, name)
}

// missing returns a status for each name and pattern of the configuration without a tool of the server, in the order of the settings,
// without duplicates. tools are the server's tools.
func (s *Server) missing(tools []string) []ToolStatus {
	var out []ToolStatus
	settings := map[string][]string{} // settings with a missing name, by name
	for _, n := range []nameSetting{
		{"tools", s.Tools, true}, {"exclude", s.Exclude, true}, {"rename", slices.Sorted(maps.Keys(s.Rename)), false},
		{"effects", slices.Sorted(maps.Keys(s.Effects)), false}, {"allowlists", slices.Sorted(maps.Keys(s.Allowlists)), false},
	} {
		for _, name := range n.names {
			if n.matches(name, tools) {
				continue
			}
			if settings[name] == nil {
				st := ToolStatus{Name: s.toolName(name), Remote: name, State: ToolMissing, Reason: "the server has no such tool"}
				if n.hasPatterns && strings.ContainsAny(name, "*?") {
					st.Name, st.Reason = s.Name+"__"+name, "no tool of the server has a name of this pattern"
				}
				out = append(out, st)
			}
			settings[name] = append(settings[name], n.setting)
		}
	}
	for i := range out {
		name := out[i].Remote
		out[i].Reason += " (" + strings.Join(settings[name], ", ") + ")"
		if near := text.Nearest(name, tools); near != "" {
			out[i].Reason += ", did you mean " + near + "?"
		}
	}
	return out
}

// clashes returns the tools that would be offered under one name, by the server's name, each with all that share the offered name. Tools
// that are not offered do not count.
func (s *Server) clashes(defs []*definition) map[string][]string {
	sharing := map[string][]string{} // the server's names by offered name
	for _, d := range defs {
		name := s.toolName(d.name)
		if s.offers(d.name) && !slices.Contains(sharing[name], d.name) {
			sharing[name] = append(sharing[name], d.name)
		}
	}
	out := map[string][]string{}
	for _, names := range sharing {
		if len(names) > 1 {
			slices.Sort(names)
			for _, n := range names {
				out[n] = names
			}
		}
	}
	return out
}
