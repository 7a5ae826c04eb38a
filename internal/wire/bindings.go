package wire

import (
	"crypto/sha256"
	"sync"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// Newer models bind a block of thinking to everything before it in the request: a server refuses a block before which anything has
// changed. A gateway cannot always prevent such a change: an approval can come after the conversation has continued without it, tools change
// with a reload, clients edit and compact. [Bindings] remembers what preceded each block, so that a request leaves out a block that
// the server would refuse.

// maxBindings bounds the blocks that are remembered, about 200 bytes each.
const maxBindings = 20_000

// A Prefix is the digest of what precedes a block. cache_control does not count, nor does white space.
type Prefix [sha256.Size / 2]byte

// Bindings remembers what preceded blocks of thinking that a server wrote or refused, the last maxBindings. The zero value is empty. Its
// methods may be called by several goroutines at once.
type Bindings struct {
	mu   sync.Mutex
	of   map[Prefix]*binding // by the digest of the block's signature
	ring []Prefix
	next int
}

// A binding is what is known of a block. A zero prefix is not known.
type binding struct {
	written Prefix // what preceded the block when the server wrote it
	refused Prefix // what preceded it when the server refused it
}

// Valid reports whether a server can accept a block with a signature behind a prefix, as far as is known, and whether the server has refused
// it there.
func (b *Bindings) Valid(signature string, before Prefix) (valid, refused bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	of := b.of[digestOf(signature)]
	if of == nil {
		return true, false
	}
	refused = of.refused == before
	return !refused && (of.written == before || of.written == Prefix{}), refused
}

// Written notes that the server has written a block.
func (b *Bindings) Written(signature string, before Prefix) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(signature).written = before
}

// Refused notes that the server does not accept a block.
func (b *Bindings) Refused(signature string, before Prefix) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(signature).refused = before
}

func (b *Bindings) add(signature string) *binding {
	key := digestOf(signature)
	if of := b.of[key]; of != nil {
		return of
	}
	if b.of == nil {
		b.of = map[Prefix]*binding{}
	}
	if len(b.ring) < maxBindings {
		b.ring = append(b.ring, key)
	} else {
		delete(b.of, b.ring[b.next])
		b.ring[b.next] = key
		b.next = (b.next + 1) % maxBindings
	}
	b.of[key] = &binding{}
	return b.of[key]
}

func digestOf(text string) (p Prefix) {
	sum := sha256.Sum256([]byte(text))
	copy(p[:], sum[:])
	return p
}

// A BoundRequest is what the encoder of a request knows of its thinking.
type BoundRequest struct {
	*Bindings
	// Before is what precedes the answer. The encoder sets it.
	Before Prefix
	// Left are blocks that the encoder has left out because the server refuses one of them: by their signatures.
	Left map[string]Prefix
}

// A PrefixHash computes a [Prefix] of JSON text that grows. The zero value is that of no text.
type PrefixHash struct {
	buf []byte // what is not in the state yet
	sum [sha256.Size]byte
}

// Add adds a JSON value in pieces, none of which ends within a string or a number.
func (h *PrefixHash) Add(pieces ...[]byte) {
	h.buf = append(h.buf[:0], h.sum[:]...)
	for _, text := range pieces {
		h.tokens(text)
	}
	h.sum = sha256.Sum256(h.buf)
}

// tokens appends the tokens of JSON text but those of cache_control.
func (h *PrefixHash) tokens(text []byte) {
	for i := 0; i < len(text); {
		end := i + 1
		switch c := text[i]; c {
		case ' ', '\n', '\r', '\t', ',', ':':
			i = end
			continue
		case '{', '}', '[', ']':
		case '"':
			var err error
			if end, err = rawjson.Scan(text, i); err != nil {
				end = len(text)
			}
			if string(text[i:end]) != `"cache_control"` {
				break
			}
			if at := rawjson.SkipSpace(text, end); at < len(text) && text[at] == ':' { // it is a member
				if at, err = rawjson.Scan(text, rawjson.SkipSpace(text, at+1)); err != nil {
					at = len(text)
				}
				i = at
				continue
			}
		default:
			for end < len(text) && !isDelimiter(text[end]) {
				end++
			}
			h.buf = append(h.buf, ' ') // numbers have no end of their own
		}
		h.buf = append(h.buf, text[i:end]...)
		i = end
	}
}

func isDelimiter(c byte) bool {
	switch c {
	case ' ', '\n', '\r', '\t', ',', ':', '{', '}', '[', ']', '"':
		return true
	}
	return false
}

// Sum returns the prefix.
func (h *PrefixHash) Sum() (p Prefix) {
	copy(p[:], h.sum[:])
	return p
}
