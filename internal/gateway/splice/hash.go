package splice

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// A Hash is a hash of what was said so far, as a client would say it again. System text does
// not count: clients put the time of day there.
type Hash struct {
	h         hash.Hash
	w         *bufio.Writer // to h: a long text is written in pieces, and not copied as a whole
	args      []byte        // of one call
	anonymous bool          // the ids of calls do not count
}

// hashPiece is the number of bytes of one write to a hash, a multiple of its block size.
const hashPiece = 512

// NewHash returns the hash of nothing.
func NewHash() *Hash {
	h := sha256.New()
	return &Hash{h: h, w: bufio.NewWriterSize(h, hashPiece)}
}

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
	_, _ = c.w.WriteString(s) // to a hash, here and below
}

// Bytes is Text for bytes.
func (c *Hash) Bytes(b []byte) {
	c.length(len(b))
	_, _ = c.w.Write(b)
}

func (c *Hash) length(n int) {
	_, _ = c.w.Write(binary.LittleEndian.AppendUint64(c.w.AvailableBuffer(), uint64(n)))
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
func (c *Hash) Sum() Sum {
	_ = c.w.Flush()
	return Sum(c.h.Sum(nil))
}

// begin has the hash be that of what follows a conversation.
func (c *Hash) begin(s Sum) {
	c.h.Reset()
	c.w.Reset(c.h)
	_, _ = c.w.Write(s[:])
}

// key returns the key of a message with these calls after that conversation.
func (s Sum) key(calls []lathe.ToolCall) Key { return NewHash().key(s, calls) }

// key is [Sum.key] of s. It begins the hash anew.
func (c *Hash) key(s Sum, calls []lathe.ToolCall) Key {
	c.begin(s)
	for i := range calls {
		call := &calls[i]
		c.Text(call.ID)
		c.Text(call.Name)
		said := append(c.args[:0], Unwrapped(call.Arguments)...) // as the client received them
		both, err := rawjson.AppendCanonical(said, said)         // clients write them anew
		args := both[len(said):]
		if c.args = both; err != nil {
			args = bytes.TrimSpace(said)
		}
		if len(args) == 0 {
			args = []byte("{}") // as the wire has it
		}
		c.Bytes(args)
	}
	return Key(c.Sum())
}

// textKey names an answer with this text, said after that. White space in the text does not count.
func (s Sum) textKey(text string) Key { return NewHash().textKey(s, text) }

// textKey is [Sum.textKey] of s. It begins the hash anew.
func (c *Hash) textKey(s Sum, text string) Key {
	c.begin(s)
	c.Text("text") // the key of calls has three texts for each
	for word := range strings.FieldsSeq(text) {
		_, _ = c.w.WriteString(word)
	}
	return Key(c.Sum())
}
