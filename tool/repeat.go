package tool

import (
	"hash/maphash"
	"strings"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// repeats counts calls of one tool with the same arguments and the same result. The zero value is empty.
type repeats struct {
	seed   maphash.Seed
	counts map[repeatKey]int
}

type repeatKey struct {
	tool         string
	args, result uint64 // hashes; args is in canonical form
}

// add counts the call and returns how often it has occurred, with this one.
func (r *repeats) add(c *call) int {
	if r.counts == nil {
		r.seed, r.counts = maphash.MakeSeed(), map[repeatKey]int{}
	}
	key := repeatKey{c.tool, r.hash(c.Arguments), maphash.String(r.seed, c.content)}
	r.counts[key]++
	return r.counts[key]
}

// hash returns the hash of argument text in RFC 8785 form, or of the text itself if it is not valid JSON.
func (r *repeats) hash(text string) uint64 {
	if blank(text) {
		text = "{}"
	}
	canonical, err := rawjson.AppendCanonical(make([]byte, 0, len(text)), []byte(text))
	if err != nil {
		return maphash.String(r.seed, text)
	}
	return maphash.Bytes(r.seed, canonical)
}

// blank reports whether argument text means no arguments.
func blank(text string) bool {
	text = strings.TrimSpace(text)
	return text == "" || text == "null"
}
