package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// MaxName is the largest number of bytes of a tool's name and of a call's id that all wires accept.
const MaxName = 64

// NameByte reports whether all wires accept the byte in the name of a tool and in the id of a call.
func NameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// PlainName reports whether s has only letters, digits, _ and -.
func PlainName(s string) bool {
	return strings.IndexFunc(s, func(c rune) bool { return c > 127 || !NameByte(byte(c)) }) < 0
}

// Masked returns s with _ in the place of bytes that names cannot have.
func Masked(s string) string {
	b := []byte(s)
	for i, c := range b {
		if !NameByte(c) {
			b[i] = '_'
		}
	}
	return string(b)
}

// Hash returns 32 hexadecimal digits.
func Hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:16])
}

// ShortID returns id if it has at most limit bytes, all of which names can have; else prefix and the hash of id.
func ShortID(prefix, id string, limit int) string {
	if id != "" && len(id) <= limit && PlainName(id) {
		return id
	}
	return prefix + Hash(id)
}
