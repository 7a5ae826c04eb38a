package schema

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"github.com/lathe-run/lathe/internal/rawjson"
)

func (w *walk) word(n *node, i int, word string, k kinds) (end int, v verdict) {
	end = i + len(word)
	if end > len(w.b) || string(w.b[i:end]) != word {
		return i, unsure
	}
	if k == isNull {
		return end, n.admits(k)
	}
	switch {
	case n.allow&k == 0:
		return i, no
	case n.unsure&k != 0:
		return i, unsure
	}
	for _, c := range [...]*choices{n.constant, n.enum} {
		if c != nil && !(word == "true" && c.yes || word == "false" && c.no) {
			return i, no
		}
	}
	return end, yes
}

func (w *walk) numeral(n *node, i int) (end int, v verdict) {
	num, end, ok := readNumber(w.b, i)
	switch {
	case !ok:
		return i, unsure
	case n.allow&(isNumber|isWhole) == 0:
		return i, no
	case n.unsure&(isNumber|isWhole) != 0:
		return i, unsure
	case n.allow&isNumber == 0 && !num.whole:
		if !num.exact {
			return i, unsure
		}
		if num.scale != 0 {
			return i, no
		}
	}
	if n.number == nil && n.constant == nil && n.enum == nil {
		return end, yes
	}
	if !num.exact {
		return i, unsure
	}
	for _, c := range [...]*choices{n.constant, n.enum} {
		if c != nil {
			w.steps -= len(c.numbers) / stepBytes
			if v := c.number(num.decimal); v != yes {
				return i, v
			}
		}
	}
	if n.number != nil && !n.number.allow(num.decimal) {
		return i, no
	}
	return end, yes
}

func (c *choices) number(d decimal) verdict {
	for _, e := range c.numbers {
		if d == e {
			return yes
		}
	}
	if c.vague {
		return unsure
	}
	return no
}

func (r *numberRules) allow(d decimal) bool {
	return (r.min == nil || d.compare(*r.min) >= 0) &&
		(r.max == nil || d.compare(*r.max) <= 0) &&
		(r.above == nil || d.compare(*r.above) > 0) &&
		(r.below == nil || d.compare(*r.below) < 0) &&
		(r.multiple == nil || d.multipleOf(*r.multiple))
}

// A literal is a JSON string in the text.
type literal struct {
	inner   []byte // between the quotes, or what that stands for
	escaped bool   // has escapes
	ascii   bool
}

// decode resolves the escapes of the literal, which is quoted.
func (s *literal) decode(quoted []byte) bool {
	text, err := rawjson.AppendUnquote(nil, quoted)
	s.inner, s.ascii = text, false
	return err == nil
}

// str passes the string that opens at w.b[i]. It looks at eight bytes at a time while they are
// neither quotes nor backslashes nor control characters; in the mask, bits above the first right
// one may be wrong.
func (w *walk) str(i int) (s literal, end int, ok bool) {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	b, start, all := w.b, i+1, uint64(0)
	for i = start; i < len(b); {
		if i+8 <= len(b) {
			x := binary.LittleEndian.Uint64(b[i:])
			quote, slash := x^ones*'"', x^ones*'\\'
			stop := ((x-ones*' ')&^x | (quote-ones)&^quote | (slash-ones)&^slash) & highs
			if stop == 0 {
				all |= x
				i += 8
				continue
			}
			n := bits.TrailingZeros64(stop) / 8
			all |= x & (1<<(n*8) - 1)
			i += n
		}
		switch c := b[i]; {
		case c == '"':
			w.steps -= (i - start) / stepBytes
			s.inner, s.ascii = b[start:i], all&highs == 0
			return s, i + 1, true
		case c == '\\':
			s.escaped = true
			i += 2
		case c < ' ':
			return s, i, false
		default:
			all |= uint64(c)
			i++
		}
	}
	return s, i, false
}

func (w *walk) text(n *node, i int) (end int, v verdict) {
	if n.allow&isString == 0 {
		return i, no
	}
	s, end, ok := w.str(i)
	if !ok || n.unsure&isString != 0 {
		return i, unsure
	}
	if n.text == nil && n.constant == nil && n.enum == nil {
		return end, yes
	}
	if s.escaped && !s.decode(w.b[i:end]) {
		return i, unsure
	}
	for _, c := range [...]*choices{n.constant, n.enum} {
		if c != nil && !c.hasText(s.inner) {
			return i, no
		}
	}
	if t := n.text; t != nil {
		if t.min > 0 || t.max >= 0 {
			length := len(s.inner)
			if !s.ascii {
				length = utf8.RuneCount(s.inner)
			}
			if length < t.min || t.max >= 0 && length > t.max {
				return i, no
			}
		}
		if t.pattern != nil {
			if v := w.matches(t.pattern, s.inner); v != yes {
				return i, v
			}
		}
	}
	return end, yes
}

// matches counts the work of expressions that cannot be taken step by step.
func (w *walk) matches(p *pattern, text []byte) verdict {
	if !p.simple {
		w.steps -= p.work(len(text))
	}
	switch {
	case w.steps < 0:
		return unsure
	case p.match(text):
		return yes
	}
	return no
}

func (c *choices) hasText(b []byte) bool {
	if c.lookup != nil {
		_, ok := c.lookup[string(b)]
		return ok
	}
	for _, t := range c.texts {
		if t == string(b) {
			return true
		}
	}
	return false
}
