package markdown

import (
	"bytes"
	"slices"
	"strings"
)

// A style is a pair of escape sequences, which begin and end it. Styles can be nested.
type style int

const (
	bold style = iota
	italic
	strike
	dim
	code
	link
	styles
)

var (
	styleOn  = [styles]string{"1", "3", "9", "2", "36", "4"}
	styleOff = [styles]string{"22", "23", "29", "22", "39", "24"}
)

// An inline renders the text of lines: emphasis, code spans, links. It buffers what may be one of these until its end; at the end of the
// line, or after maxSpan bytes, it writes the buffered text unchanged. For example, it reads "**a** b" in these phases:
//
//	**   inOpening: the next byte decides whether these marks open a span
//	a    inSpan
//	**   inClosing: the blank decides that they close the span, whose text is then written in bold
//	 b   noSpan
type inline struct {
	out    *bytes.Buffer
	colour bool
	depth  int         // number of spans around this text
	on     [styles]int // nesting depth of each active style

	phase  phase
	held   []byte // the buffered text; empty in noSpan
	mark   byte   // the byte of the marks of the buffered span
	count  int    // number of marks that opened the span
	inURL  bool   // in the address of a link, after "]("
	last   byte   // the last byte that was written; 0 at the start of a line
	before byte   // the byte before the marks that may open or close a span
}

// A phase is the position of the next byte relative to a span or a link.
type phase int

const (
	noSpan      phase = iota
	inOpening         // in marks that may open a span
	inSpan            // in a span, after its marks
	inClosing         // in marks that may close the span
	inLink            // in [text](address)
	afterBang         // after !, which may precede [
	afterEscape       // after \
)

func (t *inline) startStyle(s style) {
	t.on[s]++
	if t.colour && t.on[s] == 1 {
		t.out.WriteString("\x1b[" + styleOn[s] + "m")
	}
}

func (t *inline) endStyle(s style) {
	t.on[s]--
	if t.colour && t.on[s] == 0 {
		t.out.WriteString("\x1b[" + styleOff[s] + "m")
	}
}

// byte reads the next byte of a line.
func (t *inline) byte(c byte) {
	switch t.phase {
	case noSpan:
		t.readText(c)
	case inOpening:
		t.readOpening(c)
	case inSpan:
		t.hold(c)
		if t.phase == inSpan && c == t.mark {
			t.phase, t.before = inClosing, t.held[len(t.held)-2]
		}
	case inClosing:
		t.readClosing(c)
	case inLink:
		t.readLink(c)
	case afterBang:
		if c != '[' {
			t.literal()
			t.byte(c)
			return
		}
		t.hold(c)
		t.phase, t.inURL = inLink, false
	case afterEscape:
		if strings.IndexByte("\\`*_{}[]()<>#+-.!|~", c) >= 0 {
			t.leave()
			t.write(c)
			return
		}
		t.literal()
		t.byte(c)
	}
}

// readText reads a byte outside of spans and links.
func (t *inline) readText(c byte) {
	switch c {
	case '`', '*', '_', '~':
		t.phase, t.mark, t.before = inOpening, c, t.last
	case '[':
		t.phase, t.inURL = inLink, false
	case '!':
		t.phase = afterBang
	case '\\':
		t.phase = afterEscape
	default:
		t.write(c)
		return
	}
	t.held = append(t.held[:0], c)
}

func (t *inline) write(c byte) {
	t.out.WriteByte(c)
	t.last = c
}

// hold buffers a byte of a span. If the span exceeds maxSpan, it is written as text.
func (t *inline) hold(c byte) {
	t.held = append(t.held, c)
	if len(t.held) > maxSpan {
		t.literal()
	}
}

// leave removes the buffered text: what follows is outside of spans.
func (t *inline) leave() { t.held, t.phase = t.held[:0], noSpan }

// literal writes the buffered text unchanged.
func (t *inline) literal() {
	for _, c := range t.held {
		t.write(c)
	}
	t.leave()
}

// readOpening reads a byte after marks that may open a span.
func (t *inline) readOpening(c byte) {
	if c == t.mark {
		t.hold(c)
		return
	}
	t.count = len(t.held)
	opens := c != ' ' && c != '\t' && t.count <= 3
	switch t.mark {
	case '`':
		opens = true
	case '_':
		opens = opens && !word(t.before)
	case '~':
		opens = opens && t.count == 2
	}
	if t.depth >= maxDepth || !opens {
		t.literal()
	} else {
		t.phase = inSpan
	}
	t.byte(c)
}

// readClosing reads a byte after marks that may close the span.
func (t *inline) readClosing(c byte) {
	if c == t.mark {
		t.hold(c)
		return
	}
	if t.closes(c) {
		t.render()
	} else {
		t.phase = inSpan
	}
	t.byte(c)
}

// closes reports whether the marks before the byte c close the span; c is 0 at the end of the line.
func (t *inline) closes(c byte) bool {
	count := len(t.held) - len(bytes.TrimRight(t.held, string(t.mark)))
	if count != t.count || len(t.held) < 2*count+1 {
		return false
	}
	switch t.mark {
	case '`':
		return true
	case '_':
		return t.before != ' ' && !word(c)
	}
	return t.before != ' '
}

// end handles the end of the line: it renders or writes the buffered text.
func (t *inline) end() {
	if t.phase == inClosing && t.closes(0) {
		t.render()
	}
	t.literal()
	t.last = 0
}

// render writes the buffered span.
func (t *inline) render() {
	text := bytes.Clone(t.held[t.count : len(t.held)-t.count])
	t.leave()
	if t.mark == '`' {
		if len(text) > 2 && text[0] == ' ' && text[len(text)-1] == ' ' {
			text = text[1 : len(text)-1]
		}
		if !t.colour {
			text = []byte("`" + string(text) + "`")
		}
		t.startStyle(code)
		t.out.Write(text)
		t.endStyle(code)
		t.last = '`'
		return
	}
	spanStyles := [][]style{{italic}, {bold}, {bold, italic}}[t.count-1] // of one, two and three marks
	if t.mark == '~' {
		spanStyles = []style{strike}
	}
	for _, s := range spanStyles {
		t.startStyle(s)
	}
	t.within(text)
	for _, s := range slices.Backward(spanStyles) {
		t.endStyle(s)
	}
	t.last = 'x' // _ directly after the span opens no span, as after a letter
}

// within renders the content of a span, which may contain further spans.
func (t *inline) within(text []byte) {
	in := &inline{out: t.out, colour: t.colour, depth: t.depth + 1, on: t.on}
	for _, c := range text {
		in.byte(c)
	}
	in.end()
}

// readLink reads a byte of [text](address).
func (t *inline) readLink(c byte) {
	switch n := len(t.held); {
	case t.inURL && c == ')':
		t.link()
	case t.inURL && (c == ' ' || c == '\t' || c == '('):
		t.literal()
		t.byte(c)
	case t.inURL:
		t.hold(c)
	case t.held[n-1] == ']' && c == '(' && n > 2:
		t.inURL = true
		t.hold(c)
	case t.held[n-1] == ']' || t.depth >= maxDepth || c == '[':
		t.literal()
		t.byte(c)
	default:
		t.hold(c)
	}
}

// link writes the text of a link and its address, so that the text cannot hide where the link leads.
func (t *inline) link() {
	b := bytes.Clone(t.held)
	t.leave()
	image := b[0] == '!'
	b = bytes.TrimPrefix(b, []byte("!"))
	text, url, _ := bytes.Cut(b[1:], []byte("]("))
	if image {
		t.out.WriteString("image: ")
	}
	if len(text) > 0 && !bytes.Equal(text, url) {
		t.within(text)
		t.out.WriteByte(' ')
	}
	t.out.WriteByte('(')
	t.startStyle(link)
	t.out.Write(url)
	t.endStyle(link)
	t.write(')')
}

// word reports whether a byte is part of a word.
func word(c byte) bool {
	return c >= 0x80 || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '_'
}
