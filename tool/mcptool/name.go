package mcptool

import (
	"strings"

	"github.com/lathe-run/lathe/internal/lazy"
	"github.com/lathe-run/lathe/internal/text"
)

// maxServerName is the maximum length of a server's name, in bytes.
const maxServerName = 32

// separator separates the names of server and tool. No server name contains it.
const separator = "__"

// serverName matches lower-case letters and digits, with single _ or - between them. So the server name always ends at the first `__` of a
// tool's name.
var serverName = lazy.Regexp(`^[a-z0-9]+([_-][a-z0-9]+)*$`)

func validServerName(s string) bool { return len(s) <= maxServerName && serverName().MatchString(s) }

// toolName returns the name under which a server's tool is offered. Characters that are not allowed become _; see [text.ToolName] for a
// name that is too long.
func toolName(server, remote string) string {
	return text.ToolName(string(safeName(server+separator+remote)), remote)
}

// safeName returns s with _ in place of each byte that is not allowed in a tool name.
func safeName(s string) []byte {
	b := []byte(s)
	for i, c := range b {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			b[i] = '_'
		}
	}
	return b
}

// serverOf returns the part of a tool name before the separator.
func serverOf(name string) string {
	server, _, _ := strings.Cut(name, separator)
	return server
}
