package mcptool

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// maxToolName is the length that model servers take, maxServerName the part of it that is the server's.
const (
	maxToolName   = 64
	maxServerName = 32
)

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
// have become _, and a name that is too long ends in a part of its hash.
func toolName(server, remote string) string {
	b := safeName(server + separator + remote)
	if len(b) > maxToolName {
		sum := sha256.Sum256([]byte(remote))
		tail := "_" + hex.EncodeToString(sum[:4])
		b = append(b[:maxToolName-len(tail)], tail...)
	}
	return string(b)
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
