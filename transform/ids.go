package transform

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/lathe-run/lathe"
)

// shortIDs gives each id of a conversation one of nine letters and digits, and knows the way back.
// What an id becomes depends on it and on the ids before it, so that a conversation that goes on
// keeps its ids. The zero value is ready.
type shortIDs struct {
	short map[string]string // by the first id
	long  map[string]string // by the short id
}

const (
	idLetters = 9
	alphabet  = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

func (s *shortIDs) forget() { *s = shortIDs{} }

// of returns the short id of id: id itself where it is one and no other id became it.
func (s *shortIDs) of(id string) string {
	if short, ok := s.short[id]; ok {
		return short
	}
	if s.short == nil {
		s.short, s.long = map[string]string{}, map[string]string{}
	}
	short := id
	for n := uint32(0); !isShort(short) || s.taken(short); n++ {
		short = hashed(id, n)
	}
	s.short[id], s.long[short] = short, id
	return short
}

func (s *shortIDs) taken(short string) bool { _, ok := s.long[short]; return ok }

// back returns the first id of a short one; ids that are not known stay.
func (s *shortIDs) back(short string) string {
	if id, ok := s.long[short]; ok {
		return id
	}
	return short
}

// apply changes the ids of a message's calls and of its result.
func (s *shortIDs) apply(m lathe.Message) lathe.Message {
	m = eachCall(m, func(c *lathe.ToolCall) bool {
		was := c.ID
		c.ID = s.of(was)
		return c.ID != was
	})
	return eachResult(m, func(r *lathe.ToolResult) bool {
		was := r.CallID
		r.CallID = s.of(was)
		return r.CallID != was
	})
}

func isShort(id string) bool {
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
