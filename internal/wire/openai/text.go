package openai

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A text grows by the texts of JSON strings. A character that is split between two strings, as bytes or as a pair of surrogates, is
// buffered until the rest is received. The strings that add returns share memory that is never overwritten, so they may be kept.
type text struct {
	b    strings.Builder
	held [4]byte // the first bytes of an incomplete character
	n    int     // number of bytes in held
	high rune    // a high surrogate without its low surrogate; 0: none
}

// A damage counts invalid characters and split characters that were joined.
type damage struct{ invalid, joined int }

// add decodes body, the part of a valid JSON string between its quotes, and returns the text that it adds.
func (t *text) add(body []byte, d *damage) string {
	start := t.b.Len()
	waiting := t.n > 0 || t.high != 0
	bad := d.invalid
	t.decode(body, d)
	if waiting && d.invalid == bad {
		d.joined++
	}
	return t.b.String()[start:]
}

// addRaw adds bytes unchanged, except that invalid UTF-8 becomes U+FFFD, and returns the text that it adds.
func (t *text) addRaw(raw []byte, d *damage) string {
	start := t.b.Len()
	t.flush(d)
	t.bytes(raw, d)
	t.flush(d)
	return t.b.String()[start:]
}

func (t *text) decode(body []byte, d *damage) {
	for len(body) > 0 {
		i := bytes.IndexByte(body, '\\')
		if i < 0 {
			i = len(body)
		}
		if i > 0 {
			t.dropHigh(d)
			t.bytes(body[:i], d)
			body = body[i:]
			continue
		}
		n := len(`\n`)
		if body[1] == 'u' {
			n = len(`\u0000`)
		}
		t.escape(body[:n], d)
		body = body[n:]
	}
}

var escapes = [...]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func (t *text) escape(e []byte, d *damage) {
	t.dropHeld(d)
	if e[1] != 'u' {
		t.dropHigh(d)
		t.b.WriteByte(escapes[e[1]])
		return
	}
	n, _ := strconv.ParseUint(string(e[2:]), 16, 16) // the digits are valid
	r := rune(n)
	switch {
	case t.high != 0:
		high := t.high
		t.high = 0
		if full := utf16.DecodeRune(high, r); full != utf8.RuneError {
			t.b.WriteRune(full)
			return
		}
		t.bad(d)
		t.escape(e, d)
	case r >= 0xD800 && r < 0xDC00:
		t.high = r
	case r >= 0xDC00 && r < 0xE000:
		t.bad(d)
	default:
		t.b.WriteRune(r)
	}
}

// bytes adds bytes of UTF-8. Those of an incomplete character at the end are buffered.
func (t *text) bytes(b []byte, d *damage) {
	for t.n > 0 && len(b) > 0 {
		if b[0]&0xC0 != 0x80 {
			t.dropHeld(d)
			break
		}
		t.held[t.n] = b[0]
		if !utf8.FullRune(t.held[:t.n+1]) {
			t.n++
			b = b[1:]
			continue
		}
		if _, n := utf8.DecodeRune(t.held[:t.n+1]); n != t.n+1 {
			t.dropHeld(d)
			break
		}
		t.b.Write(t.held[:t.n+1])
		t.n = 0
		b = b[1:]
	}
	for len(b) > 0 {
		i := 0
		for i < len(b) {
			if b[i] < utf8.RuneSelf {
				i++
				continue
			}
			r, n := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && n < 2 {
				break
			}
			i += n
		}
		t.b.Write(b[:i])
		b = b[i:]
		if len(b) == 0 {
			return
		}
		if !utf8.FullRune(b) {
			t.n = copy(t.held[:], b)
			return
		}
		t.bad(d)
		b = b[1:]
	}
}

func (t *text) bad(d *damage) {
	t.b.WriteString("\uFFFD")
	d.invalid++
}

func (t *text) dropHeld(d *damage) {
	for ; t.n > 0; t.n-- {
		t.bad(d) // one per byte, as when all bytes are in one string
	}
}

func (t *text) dropHigh(d *damage) {
	if t.high != 0 {
		t.high = 0
		t.bad(d)
	}
}

// flush replaces an incomplete character by U+FFFD, and returns the text that this adds.
func (t *text) flush(d *damage) string {
	if t.n == 0 && t.high == 0 {
		return ""
	}
	start := t.b.Len()
	t.dropHeld(d)
	t.dropHigh(d)
	return t.b.String()[start:]
}
