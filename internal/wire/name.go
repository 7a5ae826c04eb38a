package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// MaxName is the largest number of bytes that all wires accept in a tool name and in a call id.
const MaxName = 64

// nameByte reports whether all wires accept the byte in tool names and call ids.
func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// PlainName reports whether s has only letters, digits, _ and -.
func PlainName(s string) bool {
	return strings.IndexFunc(s, func(c rune) bool { return c > 127 || !nameByte(byte(c)) }) < 0
}

// Masked returns s with each byte that names cannot contain replaced by _.
func Masked(s string) string {
	b := []byte(s)
	for i, c := range b {
		if !nameByte(c) {
			b[i] = '_'
		}
	}
	return string(b)
}

// Hash returns the first 32 hexadecimal digits of the SHA-256 of s.
func Hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:16])
}

// ShortID returns id if it is a valid id of at most limit bytes; otherwise prefix followed by the hash of id.
func ShortID(prefix, id string, limit int) string {
	if id != "" && len(id) <= limit && PlainName(id) {
		return id
	}
	return prefix + Hash(id)
}
