// Package callid gives tool calls ids that strict model servers accept: most refuse two calls with the same id, and Mistral's server and
// its chat templates refuse ids that are not nine letters and digits.
package callid

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"

	"github.com/lathe-run/lathe"
)

// A Short maps each call id of a conversation to an id of nine letters and digits, and back. The short id of a call id depends on that id
// and on the ids before it, so that a conversation gets the same short ids when it grows. The zero value is ready to use.
type Short struct {
	short map[string]string // original id → short id
	long  map[string]string // short id → original id
}

const (
	idLetters = 9
	alphabet  = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// Of returns the short id of id. It is id itself if id has nine letters and digits and is not the short id of another one.
func (s *Short) Of(id string) string {
	if short, ok := s.short[id]; ok {
		return short
	}
	if s.short == nil {
		s.short, s.long = map[string]string{}, map[string]string{}
	}
	short := id
	for n := uint32(0); !IsShort(short) || s.taken(short); n++ {
		short = hashed(id, n)
	}
	s.short[id], s.long[short] = short, id
	return short
}

func (s *Short) taken(short string) bool { _, ok := s.long[short]; return ok }

// Back returns the original id of a short id, or its argument if it is not known.
func (s *Short) Back(short string) string {
	if id, ok := s.long[short]; ok {
		return id
	}
	return short
}

// IsShort reports whether id is nine letters and digits.
func IsShort(id string) bool {
	return len(id) == idLetters && strings.Trim(id, alphabet) == ""
}

// hashed returns nine letters and digits derived from id. If the result for n = 0 is in use, the caller tries n = 1, 2, ….
func hashed(id string, n uint32) string {
	sum := sha256.Sum256(binary.BigEndian.AppendUint32([]byte(id), n))
	v := binary.BigEndian.Uint64(sum[:])
	var out [idLetters]byte
	for i := range out {
		out[i] = alphabet[v%uint64(len(alphabet))]
		v /= uint64(len(alphabet))
	}
	return string(out[:])
}

// Apply returns a copy of m with short ids in its calls and in its result. m is not changed.
func (s *Short) Apply(m lathe.Message) lathe.Message { return withIDs(m, s.Of, s.Of) }
