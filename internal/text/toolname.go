package text

import (
	"crypto/sha256"
	"encoding/hex"
)

// MaxToolName is the largest length of a tool name in bytes that model servers accept.
const MaxToolName = 64

// ToolName returns a name of at most MaxToolName bytes for a tool that has the name remote at its source. A longer name is cut, and ends in
// _ and the first 8 hex digits of the SHA-256 of remote. name must be ASCII.
func ToolName(name, remote string) string {
	if len(name) <= MaxToolName {
		return name
	}
	tail := "_" + Digest(remote)
	return name[:MaxToolName-len(tail)] + tail
}

// Digest returns the first 8 hex digits of the SHA-256 of s, which tell names apart.
func Digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:4])
}
