package mcp

import "github.com/modelcontextprotocol/go-sdk/mcp"

// ProtocolVersions returns the versions of the Model Context Protocol that a [Server] supports, the newest first. The caller may modify the
// list.
func ProtocolVersions() []string { return mcp.SupportedProtocolVersions() }
