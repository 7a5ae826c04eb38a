package splice

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// A Hash is a hash of what was said so far, as a client would say it again. System text does
// not count: clients put the time of day there.
type Hash struct {
	h         hash.Hash
	buf       []byte // what h gets next, at most hashPiece bytes
	anonymous bool   // the ids of calls do not count
}

// hashPiece is the number of bytes of one write to a hash, a multiple of its block size. A text is written in such pieces and is not
// copied as a whole.
const hashPiece = 4 << 10

// NewHash returns the hash of nothing.
func NewHash() *Hash { return &Hash{h: sha256.New()} }

func newHash(who Owner) *Hash {
	c := NewHash()
	c.Text(who.Principal)
	c.Text(who.User)
	c.Text(who.Model)
	return c
}

// Text writes a text after its length.
func (c *Hash) Text(s string) {
	c.length(len(s))
	for {
		n := min(len(s), hashPiece-len(c.buf))
		c.buf = append(c.buf, s[:n]...)
		if s = s[n:]; s == "" {
			return
		}
		c.flush()
	}
}

// Bytes is Text for bytes.
func (c *Hash) Bytes(b []byte) {
	c.length(len(b))
	c.raw(b)
}

func (c *Hash) length(n int) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(n))
	c.raw(b[:])
}

// raw writes bytes without their length.
func (c *Hash) raw(b []byte) {
	for {
		n := min(len(b), hashPiece-len(c.buf))
		c.buf = append(c.buf, b[:n]...)
		if b = b[n:]; len(b) == 0 {
			return
		}
		c.flush()
	}
}

func (c *Hash) flush() {
	c.h.Write(c.buf)
	c.buf = c.buf[:0]
}

// Add writes a message.
func (c *Hash) Add(m *lathe.Message) {
	if m.Role == lathe.RoleSystem || m.Role == lathe.RoleDeveloper {
		return
	}
	c.Text(string(m.Role))
	for _, p := range m.Parts {
		switch p := p.(type) {
		case lathe.Text:
			c.Text(p.Text)
		case lathe.Blob:
			c.Text(p.URL)
			c.Text(string(p.Data))
		case lathe.ToolCall:
			c.id(p.ID)
			c.Text(p.Name)
		case lathe.ToolResult:
			c.id(p.CallID)
			c.Text(p.Content)
		case lathe.Reasoning, lathe.Refusal, lathe.Opaque: // not every client sends them again
		}
	}
}

func (c *Hash) id(id string) {
	if !c.anonymous {
		c.Text(id)
	}
}

// A Sum is what a conversation came to.
type Sum [sha256.Size]byte

// Sum returns what the conversation has come to. More can be added.
func (c *Hash) Sum() (s Sum) {
	c.flush()
	c.buf = c.h.Sum(c.buf)
	copy(s[:], c.buf)
	c.buf = c.buf[:0]
	return s
}

// key returns the key of a message with these calls after that conversation.
func (s Sum) key(calls []lathe.ToolCall) Key {
	var keys callKeys
	return keys.key(s, calls)
}

// callKeys computes keys of messages, one after the other, in the same memory. The zero value is ready.
type callKeys struct {
	part       Hash
	said, args []byte
}

// begin resets part to the hash of s.
func (c *callKeys) begin(s *Sum) {
	if c.part.h == nil {
		c.part.h = sha256.New()
	}
	c.part.h.Reset()
	c.part.buf = append(c.part.buf[:0], s[:]...)
}

// key is [Sum.key] of s.
func (c *callKeys) key(s Sum, calls []lathe.ToolCall) Key {
	c.begin(&s)
	for i := range calls {
		call := &calls[i]
		c.part.Text(call.ID)
		c.part.Text(call.Name)
		c.said = append(c.said[:0], Unwrapped(call.Arguments)...) // as the client received them
		args, err := rawjson.AppendCanonical(c.args[:0], c.said)  // clients write them anew
		if c.args = args; err != nil {
			args = bytes.TrimSpace(c.said)
		}
		if len(args) == 0 {
			args = []byte("{}") // as the wire has it
		}
		c.part.Bytes(args)
	}
	return Key(c.part.Sum())
}
