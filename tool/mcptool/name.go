package mcptool

import (
	"strings"

	"github.com/lathe-run/lathe/internal/text"
)

// maxServerName is the part of a tool's name that is the server's.
const maxServerName = 32

// separator stands between the names of server and tool. No server's name has it.
const separator = "__"

// ValidServerName reports whether s may name a server: lower-case letters and digits, with single _
// or - between them. So the first `__` of a tool's name always ends the server's.
func ValidServerName(s string) bool {
	if s == "" || len(s) > maxServerName {
		return false
	}
	mark := true // what stands before is no letter or digit
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			mark = false
		case (c == '_' || c == '-') && !mark:
			mark = true
		default:
			return false
		}
	}
	return !mark
}

// toolName returns the name under which a server's tool is offered. Characters that a name may not
// have become _; see [text.ToolName] for a name that is too long.
func toolName(server, remote string) string {
	return text.ToolName(string(safeName(server+separator+remote)), remote)
}

// safeName returns s with _ in place of each byte that a tool's name may not have.
func safeName(s string) []byte {
	b := []byte(s)
	for i, c := range b {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			b[i] = '_'
		}
	}
	return b
}

// serverOf returns the server's part of a tool's name.
func serverOf(name string) string {
	server, _, _ := strings.Cut(name, separator)
	return server
}
