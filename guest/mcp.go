package guest

import (
	"slices"

	"github.com/lathe-run/lathe/policy"
)

// MCPPolicy says what a guest may do with MCP servers. The zero value is nothing: a guest that
// enables them is refused.
type MCPPolicy struct {
	Enabled bool
	// Servers are the ids of the servers that sessions may use.
	Servers []string
	// Default are those of them that a session begins with, enabled. Others than Servers count for nothing.
	Default []string
	// Allow and Deny are patterns of tools, with `*` and `?`. A nil Allow is every tool, an empty one none.
	Allow, Deny []string
}

// MCP says which tools of MCP servers a session wants. It is what a policy leaves of it.
type MCP struct {
	Servers []string

	lists [4][]string // allow and deny of the program, allow and deny of the session
}

// Allows reports whether the session may use the tool, in this order: the program's allowlist, its
// denylist, the session's allowlist, the session's denylist. What a server offers at all is the host's.
// A pattern is compared with `tool`, with `server__tool` and with `mcp.server.tool`.
func (m *MCP) Allows(server, tool string) bool {
	if !slices.Contains(m.Servers, server) {
		return false
	}
	names := []string{tool, server + "__" + tool, "mcp." + server + "." + tool}
	for i, list := range m.lists {
		deny := i%2 == 1
		if !deny && list == nil {
			continue // everything
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

// mcpState is the part of a session that is about MCP.
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

// request returns what the session asks the host for; nil is nothing.
func (s *mcpState) request(p *MCPPolicy) *MCP {
	if !p.Enabled || !s.enabled || len(s.servers) == 0 {
		return nil
	}
	return &MCP{Servers: slices.Clone(s.servers), lists: [4][]string{p.Allow, p.Deny, s.allow, s.deny}}
}
