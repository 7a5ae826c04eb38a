package guest

import (
	"slices"

	"github.com/lathe-run/lathe/policy"
)

// MCPPolicy restricts the use of MCP servers by a guest. With the zero value, a guest that enables them gets -EACCES.
type MCPPolicy struct {
	Enabled bool
	// Servers are the ids of the servers that sessions may use.
	Servers []string
	// Default are the servers that are enabled in a new session. Names that are not in Servers are ignored.
	Default []string
	// Allow and Deny are patterns of tools, with `*` and `?`. A nil Allow allows every tool, an empty one none.
	Allow, Deny []string
}

// MCP describes which tools of MCP servers a session requests, as restricted by the policy.
type MCP struct {
	Servers []string

	lists [4][]string // allow and deny of the program, allow and deny of the session
}

// Allows reports whether the session may use the tool. It checks, in this order, the program's allowlist and denylist, and the session's
// allowlist and denylist. Which tools a server offers is up to the host. Patterns match `tool`, `server__tool` or `mcp.server.tool`.
func (m *MCP) Allows(server, tool string) bool {
	if !slices.Contains(m.Servers, server) {
		return false
	}
	names := []string{tool, server + "__" + tool, "mcp." + server + "." + tool}
	for i, list := range m.lists {
		deny := i%2 == 1
		if !deny && list == nil {
			continue // no allowlist allows all tools
		}
		fits := slices.ContainsFunc(list, func(pattern string) bool {
			return pattern != "" && slices.ContainsFunc(names, func(name string) bool { return policy.Match(pattern, name) })
		})
		if fits == deny {
			return false
		}
	}
	return true
}

// mcpState is the state of a session that concerns MCP.
type mcpState struct {
	enabled     bool
	servers     []string
	allow, deny []string
}

func newMCPState(p *MCPPolicy) mcpState {
	s := mcpState{}
	if p.Enabled {
		for _, id := range p.Default {
			if slices.Contains(p.Servers, id) {
				s.servers = append(s.servers, id)
			}
		}
		s.enabled = len(s.servers) > 0
	}
	return s
}

// request returns the MCP tools that the session requests, or nil if it requests none.
func (s *mcpState) request(p *MCPPolicy) *MCP {
	if !p.Enabled || !s.enabled || len(s.servers) == 0 {
		return nil
	}
	return &MCP{Servers: slices.Clone(s.servers), lists: [4][]string{p.Allow, p.Deny, s.allow, s.deny}}
}
