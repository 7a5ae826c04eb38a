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

// A Hash is a hash of the messages of a conversation, equal for the forms in which clients return it. System messages are not included,
// because clients put the time of day there.
type Hash struct {
	h         hash.Hash
	w         *bufio.Writer // to h: a long text is written in pieces, and not copied as a whole
	args      []byte        // buffer for the arguments of one call
	anonymous bool          // the ids of calls are not included
}

// hashPiece is the number of bytes of one write to a hash, a multiple of its block size.
const hashPiece = 512

// NewHash returns the Hash of an empty conversation.
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

// Text adds the length of a text and the text.
func (c *Hash) Text(s string) {
	c.length(len(s))
	_, _ = c.w.WriteString(s) // writes to a hash do not fail
}

// Bytes adds the length of b and b.
func (c *Hash) Bytes(b []byte) {
	c.length(len(b))
	_, _ = c.w.Write(b)
}

func (c *Hash) length(n int) {
	_, _ = c.w.Write(binary.LittleEndian.AppendUint64(c.w.AvailableBuffer(), uint64(n)))
}

// Add adds a message.
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
		case lathe.Reasoning, lathe.Refusal, lathe.Opaque: // not every client returns these
		}
	}
}

func (c *Hash) id(id string) {
	if !c.anonymous {
		c.Text(id)
	}
}

// A Sum is the hash value of a conversation.
type Sum [sha256.Size]byte

// Sum returns the hash value of what was added so far. More can be added afterwards.
func (c *Hash) Sum() Sum {
	_ = c.w.Flush()
	return Sum(c.h.Sum(nil))
}

// begin resets the hash and adds s, the sum of a conversation.
func (c *Hash) begin(s Sum) {
	c.h.Reset()
	c.w.Reset(c.h)
	_, _ = c.w.Write(s[:])
}

// key returns the key of a message with these calls after the conversation with the sum s.
func (s Sum) key(calls []lathe.ToolCall) Key { return NewHash().key(s, calls) }

// key does what [Sum.key] does, and reuses c, which it resets.
func (c *Hash) key(s Sum, calls []lathe.ToolCall) Key {
	c.begin(s)
	for _, call := range calls {
		c.Text(call.ID)
		c.Text(call.Name)
		said := append(c.args[:0], Unwrapped(call.Arguments)...) // as the client received them
		both, err := rawjson.AppendCanonical(said, said)         // clients rewrite them
		c.args = both
		args := both[len(said):]
		if err != nil {
			args = bytes.TrimSpace(said)
		}
		if len(args) == 0 {
			args = []byte("{}") // the form on the wire
		}
		c.Bytes(args)
	}
	return Key(c.Sum())
}

// textKey returns the key of an answer with this text after the conversation with the sum s. White space in the text is ignored.
func (s Sum) textKey(text string) Key { return NewHash().textKey(s, text) }

// textKey does what [Sum.textKey] does, and reuses c, which it resets.
func (c *Hash) textKey(s Sum, text string) Key {
	c.begin(s)
	c.Text("text") // differs from keys of calls, which have three texts for each call
	for word := range strings.FieldsSeq(text) {
		_, _ = c.w.WriteString(word)
	}
	return Key(c.Sum())
}

// Unwrapped returns the JSON object in arguments that are in a code fence or encoded as a JSON string. Other arguments are returned as they
// are.
func Unwrapped(arguments string) string {
	text := strings.TrimSpace(arguments)
	if text == "" || text[0] == '{' {
		return arguments
	}
	if inner, ok := rawjson.UnwrapObject([]byte(text)); ok {
		return string(inner)
	}
	return arguments
}
