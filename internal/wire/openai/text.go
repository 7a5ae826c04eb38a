package openai

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A text grows by the texts of JSON strings. A character that is split between two strings, as bytes ("\xc3" and "\xa9" for é) or as a pair
// of surrogates (`\ud83d` and `\ude00`), is buffered until the rest is received. The strings that add returns share memory that is never
// overwritten, so they may be retained.
type text struct {
	b    strings.Builder
	held [4]byte // the first bytes of an incomplete character
	n    int     // number of bytes in held
	high rune    // a high surrogate without its low surrogate; 0: none
}

// isIncomplete reports whether a part of a character is buffered.
func (t *text) isIncomplete() bool { return t.n > 0 || t.high != 0 }

// A damage counts invalid characters and split characters that were joined.
type damage struct{ invalid, joined int }

// add decodes body, the part of a valid JSON string between its quotes, and returns the text that it adds.
func (t *text) add(body []byte, d *damage) string {
	start := t.b.Len()
	waiting := t.isIncomplete()
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

// decode decodes body in runs of plain bytes and single escapes.
func (t *text) decode(body []byte, d *damage) {
	for len(body) > 0 {
		n := bytes.IndexByte(body, '\\')
		if n < 0 {
			n = len(body)
		}
		if n > 0 {
			t.dropHigh(d)
			t.bytes(body[:n], d)
		} else {
			n = len(`\n`)
			if body[1] == 'u' {
				n = len(`\u0000`)
			}
			t.escape(body[:n], d)
		}
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
	b = t.completeHeld(b, d)
	if utf8.Valid(b) {
		t.b.Write(b)
		return
	}
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case r != utf8.RuneError || n > 1:
			t.b.Write(b[:n])
		case utf8.FullRune(b):
			t.bad(d)
		default:
			t.n = copy(t.held[:], b)
			return
		}
		b = b[n:]
	}
}

// completeHeld moves bytes from b to the incomplete character in held until that is complete, or cannot become a character. It returns the
// rest of b.
func (t *text) completeHeld(b []byte, d *damage) []byte {
	for t.n > 0 && len(b) > 0 {
		t.held[t.n] = b[0]
		char := t.held[:t.n+1]
		continues := b[0]&0xC0 == 0x80
		switch {
		case continues && !utf8.FullRune(char):
			t.n++
		case continues && utf8.Valid(char):
			t.b.Write(char)
			t.n = 0
		default:
			t.dropHeld(d)
			return b
		}
		b = b[1:]
	}
	return b
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
	if !t.isIncomplete() {
		return ""
	}
	start := t.b.Len()
	t.dropHeld(d)
	t.dropHigh(d)
	return t.b.String()[start:]
}
