package wire

import (
	"bytes"
	"crypto/sha256"
	"sync"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// Newer models bind a block of thinking to everything before it in the request: a server refuses a block if anything before it has changed.
// A gateway cannot always prevent such a change: an approval may be given after the conversation has continued without it, a reload changes
// the tools, and clients edit or compact the conversation. [Bindings] stores what preceded each block, so that the encoder of a request can
// omit a block that the server would refuse.

// maxBindings bounds the stored blocks, each of which needs about 200 bytes.
const maxBindings = 20_000

// A Prefix is the digest of everything that precedes a block, except for cache_control and white space.
type Prefix [sha256.Size / 2]byte

// Bindings stores what preceded the last maxBindings blocks of thinking that a server wrote or refused. The zero value is empty. Its
// methods may be called from several goroutines at once.
type Bindings struct {
	mu   sync.Mutex
	of   map[Prefix]*binding // by the digest of the block's signature
	ring []Prefix
	next int
}

// A binding is what is known about a block. A zero prefix means unknown.
type binding struct {
	written Prefix // prefix with which the server wrote the block
	refused Prefix // prefix with which the server last refused the block
}

// Valid reports whether, as far as is known, the server accepts the block with a signature after a prefix, and whether the server has
// refused it there.
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

// Written records the prefix with which the server wrote a block.
func (b *Bindings) Written(signature string, before Prefix) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(signature).written = before
}

// Refused records the prefix with which the server refused a block.
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

// A BoundRequest is the state of the encoder of a request that concerns blocks of thinking.
type BoundRequest struct {
	*Bindings
	// Before is the prefix of the answer to the request. The encoder sets it.
	Before Prefix
	// Left are the blocks that the encoder has omitted because the server refuses one of them: their prefixes by signature.
	Left map[string]Prefix
}

// A PrefixHash computes the [Prefix] of JSON text to which values are added. The zero value is the hash of no text.
type PrefixHash struct {
	buf []byte // input of the next step of the hash
	sum [sha256.Size]byte
}

// Add adds a JSON value in pieces. A piece must not end within a string or a number.
func (h *PrefixHash) Add(pieces ...[]byte) {
	h.buf = append(h.buf[:0], h.sum[:]...)
	for _, text := range pieces {
		h.tokens(text)
	}
	h.sum = sha256.Sum256(h.buf)
}

// tokens appends the tokens of JSON text to buf, except for members named cache_control.
func (h *PrefixHash) tokens(text []byte) {
	for len(text) > 0 {
		n := 1
		switch text[0] {
		case ' ', '\n', '\r', '\t', ',', ':':
			text = text[1:]
			continue
		case '{', '}', '[', ']': // one byte
		case '"':
			n = valueLen(text)
			rest, isMember := cutCacheControl(text[:n], text[n:])
			if isMember {
				text = rest
				continue
			}
		default:
			for n < len(text) && !isDelimiter(text[n]) {
				n++
			}
			h.buf = append(h.buf, ' ') // separates numbers, which have no delimiter of their own
		}
		h.buf = append(h.buf, text[:n]...)
		text = text[n:]
	}
}

// cutCacheControl returns the text after a member named cache_control. after follows the string name, which may also be a value.
func cutCacheControl(name, after []byte) (rest []byte, isMember bool) {
	text := after[rawjson.SkipSpace(after, 0):]
	if string(name) != `"cache_control"` || !bytes.HasPrefix(text, []byte(":")) {
		return nil, false
	}
	text = text[rawjson.SkipSpace(text, 1):]
	return text[valueLen(text):], true
}

// valueLen returns the length of the JSON value at the beginning of text, or len(text) if the value is not valid.
func valueLen(text []byte) int {
	end, err := rawjson.Scan(text, 0)
	if err != nil {
		return len(text)
	}
	return end
}

func isDelimiter(c byte) bool {
	switch c {
	case ' ', '\n', '\r', '\t', ',', ':', '{', '}', '[', ']', '"':
		return true
	}
	return false
}

// Sum returns the Prefix of what was added so far.
func (h *PrefixHash) Sum() (p Prefix) {
	copy(p[:], h.sum[:])
	return p
}
