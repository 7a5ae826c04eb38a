// Package callid gives tool calls ids that strict model servers accept: most refuse two calls of one id, and Mistral's server and its
// chat templates refuse ids that are not nine letters and digits.
package callid

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/lathe-run/lathe"
)

// A Short maps each call id of a conversation to one of nine letters and digits, and back.
// The mapping of an id depends on it and on the ids before it, so that a conversation keeps its
// ids when it grows. The zero value is ready to use.
type Short struct {
	short map[string]string // by the first id
	long  map[string]string // by the short id
}

const (
	idLetters = 9
	alphabet  = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// Of returns the short id of id: id itself where it is one and no other id became it.
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

// Back returns the first id of a short one; ids that are not known stay.
func (s *Short) Back(short string) string {
	if id, ok := s.long[short]; ok {
		return id
	}
	return short
}

// IsShort reports whether id is nine letters and digits.
func IsShort(id string) bool {
	for i := range len(id) {
		c := id[i]
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return len(id) == idLetters
}

// hashed returns nine letters and digits made of id; the n-th choice.
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

// Apply returns m with the ids of its calls, or of its result, in their short form. m is not changed.
func (s *Short) Apply(m lathe.Message) lathe.Message { return withIDs(m, s.Of, s.Of) }
