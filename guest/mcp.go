package guest

import (
	"slices"

	"github.com/lathe-run/lathe/policy"
)

// An MCPPolicy says which tools of MCP servers a guest may use. With the zero value it may use none: enabling a server fails with -EACCES.
type MCPPolicy struct {
	Enabled bool // whether sessions may use MCP servers
	// Servers are the names of the servers that sessions may enable.
	Servers []string
	// Default are the servers that are enabled in a new session. Names that are not in Servers are ignored.
	Default []string
	// Allow and Deny are patterns of tool names, with the wildcards * and ?; Deny has precedence. A nil Allow allows every tool, an empty
	// one none.
	Allow, Deny []string
}

// MCP says which tools of MCP servers a session may use: see [Request].MCP.
type MCP struct {
	Servers []string // names of the enabled servers

	lists [2]toolLists // of the program and of the session
}

// toolLists are patterns of the tools that are allowed (nil: all) and denied.
type toolLists struct{ allow, deny []string }

// Allows reports whether the session may use this tool of the server. The server must be enabled, and the tool must pass the allow and deny
// patterns of the program and of the session. Patterns are compared with the names tool, server__tool and mcp.server.tool.
func (m *MCP) Allows(server, tool string) bool {
	if !slices.Contains(m.Servers, server) {
		return false
	}
	names := []string{tool, server + "__" + tool, "mcp." + server + "." + tool}
	match := func(pattern string) bool {
		return pattern != "" && slices.ContainsFunc(names, func(name string) bool { return policy.Match(pattern, name) })
	}
	for _, list := range m.lists {
		allowed := list.allow == nil || slices.ContainsFunc(list.allow, match)
		if !allowed || slices.ContainsFunc(list.deny, match) {
			return false
		}
	}
	return true
}

// mcpState is the state of a session that concerns MCP.
type mcpState struct {
	enabled bool
	servers []string
	lists   toolLists
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
	return &MCP{Servers: slices.Clone(s.servers), lists: [2]toolLists{{p.Allow, p.Deny}, s.lists}}
}
