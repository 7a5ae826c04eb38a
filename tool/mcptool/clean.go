package mcptool

// This file removes characters that a model reads and a person does not see from the texts of servers.

import (
	"errors"
	"strings"
	"unicode"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// errHidden means that a schema has hidden characters in places where they cannot be removed.
var errHidden = errors.New("hidden or control characters in the schema, outside of its descriptions")

// isHidden reports whether a person who reads the text does not see r, or sees it in another place: control, format, direction, tag and
// unassigned filler characters. A model reads all of them.
func isHidden(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r >= 0xFE00 && r <= 0xFE0F: // variation selectors
		return r != 0xFE0F // the one that selects the emoji form of a character
	case r >= 0xE0000 && r <= 0xE0FFF: // tags and further variation selectors
		return true
	case r == 0x115F || r == 0x1160 || r == 0x3164 || r == 0xFFA0 || r == 0x2800 || r == 0x17B4 || r == 0x17B5: // blank letters
		return true
	case r == 0x2028 || r == 0x2029:
		return true
	case r == unicode.ReplacementChar:
		return false
	}
	return unicode.Is(unicode.C, r) // control, format, private use, surrogates
}

// clean returns text without hidden characters, and their number.
func clean(text string) (string, int) {
	n := 0
	out := strings.Map(func(r rune) rune {
		if isHidden(r) {
			n++
			return -1
		}
		return r
	}, text)
	return out, n
}

// cleanSchema appends a valid JSON schema to dst without the hidden characters in its descriptions, titles and comments, and counts them.
// Anywhere else they are an error, because names and values that the model must repeat cannot be changed.
func cleanSchema(dst, raw []byte) (out []byte, hidden int, err error) {
	c := &schemaCleaner{}
	out = c.value(dst, raw[rawjson.SkipSpace(raw, 0):])
	return out, c.hidden, c.err
}

type schemaCleaner struct {
	hidden int
	err    error
}

// value appends a value of a schema.
func (c *schemaCleaner) value(dst, raw []byte) []byte {
	switch raw[0] {
	case '{', '[':
		return rawjson.AppendEach(dst, raw, func(dst, key, v []byte) []byte {
			if key != nil {
				c.checkVisible(key)
			}
			isText := rawjson.EqualKey(key, "description") || rawjson.EqualKey(key, "title") || rawjson.EqualKey(key, "$comment")
			if isText && v[0] == '"' {
				return c.text(dst, v)
			}
			return c.value(dst, v)
		})
	case '"':
		c.checkVisible(raw)
	}
	return append(dst, raw...)
}

// checkVisible sets err if a string that must not be changed has hidden characters.
func (c *schemaCleaner) checkVisible(quoted []byte) {
	before := c.hidden
	c.text(nil, quoted)
	if c.hidden > before {
		c.err = errHidden
	}
}

// text appends a string without its hidden characters, and counts them.
func (c *schemaCleaner) text(dst, quoted []byte) []byte {
	plain, err := rawjson.AppendUnquote(nil, quoted)
	if err != nil {
		c.err = err
		return append(dst, quoted...)
	}
	shown, n := clean(string(plain))
	if n == 0 {
		return append(dst, quoted...)
	}
	c.hidden += n
	return rawjson.AppendQuote(dst, shown)
}
