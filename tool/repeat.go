package tool

import (
	"hash/maphash"
	"strings"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// repeats counts calls of one tool with the same arguments and the same result.
type repeats struct {
	seed  maphash.Seed
	buf   []byte
	list  []repeat
	index map[repeatKey]int // of list, once it is long
}

// maxScanned is the length up to which the list is looked through.
const maxScanned = 32

type repeatKey struct {
	tool   string
	result uint64
}

// repeat holds the arguments that led to one result. Their canonical form is made only when the
// result comes from arguments that are written in another way: it seldom does.
type repeat struct {
	key    repeatKey
	args   string
	same   int            // calls with args, up to the first with others
	counts map[uint64]int // by the hash of the canonical arguments
}

func (r *repeats) emptied() repeats {
	return repeats{seed: r.seed, list: emptied(r.list)}
}

// add counts the call and returns how often it was seen, this time included.
func (r *repeats) add(c *call) int {
	if r.seed == (maphash.Seed{}) {
		r.seed = maphash.MakeSeed()
	}
	p, seen := r.find(repeatKey{c.tool, maphash.String(r.seed, c.content)})
	if !seen {
		p.args = c.Arguments
	}
	if p.counts == nil {
		if p.args == c.Arguments {
			p.same++
			return p.same
		}
		p.counts = map[uint64]int{r.hash(p.args): p.same}
	}
	args := r.hash(c.Arguments)
	p.counts[args]++
	return p.counts[args]
}

// find returns the place of the key, good until the next find, and whether it was there before.
func (r *repeats) find(key repeatKey) (p *repeat, seen bool) {
	if r.index != nil {
		if i, ok := r.index[key]; ok {
			return &r.list[i], true
		}
	} else {
		for i := range r.list {
			if p := &r.list[i]; p.key.result == key.result && p.key.tool == key.tool {
				return p, true
			}
		}
	}
	i := len(r.list)
	r.list = append(r.list, repeat{key: key})
	switch {
	case r.index != nil:
		r.index[key] = i
	case i+1 == maxScanned:
		r.index = make(map[repeatKey]int, 2*maxScanned)
		for j := range r.list {
			r.index[r.list[j].key] = j
		}
	}
	return &r.list[i], false
}

// hash returns the hash of the RFC 8785 form of argument text, and of the text itself where it has none.
func (r *repeats) hash(text string) uint64 {
	if blank(text) {
		text = "{}"
	}
	r.buf = append(r.buf[:0], text...)
	all, err := rawjson.AppendCanonical(r.buf, r.buf[:len(text):len(text)])
	if err != nil {
		return maphash.String(r.seed, text)
	}
	r.buf = all
	return maphash.Bytes(r.seed, all[len(text):])
}

// blank reports whether argument text stands for no arguments.
func blank(text string) bool {
	text = strings.TrimSpace(text)
	return text == "" || text == "null"
}
