package text

import (
	"crypto/sha256"
	"encoding/hex"
)

// MaxToolName is the length of a tool's name that model servers take, in bytes.
const MaxToolName = 64

// ToolName returns a name of at most MaxToolName bytes for a tool that its source calls remote. A longer name is cut, and ends in _ and
// the first 8 hex digits of the SHA-256 of remote. name has ASCII characters only.
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
