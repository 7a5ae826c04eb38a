package engine

import (
	"crypto/rand"
	"encoding/binary"
	"slices"
	"sync"
	"time"
)

// crockford is the alphabet of ULIDs, sorted: digits and capitals without I, L, O and U.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// An idSource generates ULIDs: 26 characters for 48 bits of milliseconds and 80 random bits. The ids of one source sort in the order in
// which they were generated, even within one millisecond.
type idSource struct {
	now  func() time.Time
	mu   sync.Mutex
	ms   uint64 // milliseconds of the last id
	high uint16 // the upper 16 of the 80 random bits; low has the others
	low  uint64
}

func (s *idSource) next(prefix string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ms := uint64(max(s.now().UnixMilli(), 0))
	if ms > s.ms || s.low == 0 { // a new millisecond, or the first id
		var b [10]byte
		rand.Read(b[:]) // never fails
		s.ms = ms
		s.high = binary.BigEndian.Uint16(b[:2]) &^ (1 << 15) // a clear upper bit, so that increments do not overflow
		s.low = binary.BigEndian.Uint64(b[2:])
	} else {
		s.low++
		if s.low == 0 {
			s.high++
		}
	}
	// 26 characters of 5 bits, the lowest bits last, of the 128 bits in high and low.
	var text [26]byte
	high, low := s.ms<<16|uint64(s.high), s.low
	for i := range slices.Backward(text[:]) {
		text[i] = crockford[low&31]
		high, low = high>>5, low>>5|high<<59
	}
	return prefix + string(text[:])
}
