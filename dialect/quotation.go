package dialect

// A quotation scans prose for text that is quoted without Markdown's backticks. A call inside it is text. Text is quoted:
//
//   - between “ ”, „ “, « » and " ". A " opens a quotation only after white space, an opening bracket or at the beginning
//     of a line, and only before a byte that is not white space; an apostrophe never opens one. The end of the line ends the
//     quotation, so that an unclosed quote does not hide calls on later lines. If the quotation contains a call, only an
//     empty line ends it, or a " directly after a byte that may end a call, because calls contain quotes and line ends.
//   - on a line that begins with `>`.
//   - on a line that is indented by four spaces or a tab and follows an empty line or another such line, except at the
//     beginning of a message.
//   - between <code> and </code>, up to an empty line, and between <pre> and </pre>, up to the end of the message.
//
// The zero value is the beginning of a message.
type quotation struct {
	close   byte // the last byte of the mark that closes the open quotation; 0 if none is open
	fresh   bool // the opening " was the last byte
	hasCall bool // the quotation contains a call

	prev, before byte // the last two bytes

	indent    int  // the indentation of the line, while it has only white space
	begun     bool // the line has another byte than white space
	block     bool // the line is part of a block quote
	code      bool // the line is indented code
	inked     bool // a line before had more than white space
	blank     bool // the line before had only white space
	afterCode bool // the line before was indented code, or is empty after such a line

	tag     [maxTagName]byte // the name of the tag so far
	tagLen  int              // number of bytes in tag
	inTag   bool             // the name of a tag is being read
	element element          // the open element
}

type element uint8

const (
	elementNone element = iota
	elementCode
	elementPre
)

const maxTagName = len("/code")

// noteCall handles a mark that begins a call inside the quotation, where it is text.
func (q *quotation) noteCall() { q.hasCall = q.close != 0 }

// quotes reports whether the next byte is quoted.
func (q *quotation) quotes() bool {
	return q.close != 0 || q.block || q.element != elementNone || q.code || q.indents()
}

// indents reports whether the white space so far makes the line indented code.
func (q *quotation) indents() bool { return !q.begun && q.indent >= 4 && (q.blank || q.afterCode) }

// byte scans c. plain is false in code and after a backslash, where quotation marks and tags do not count.
func (q *quotation) byte(c byte, plain bool) {
	switch {
	case c == '\n':
		q.line()
	case !q.begun && (c == ' ' || c == '\r'):
		q.indent++
	case !q.begun && c == '\t':
		q.indent += 4
	case !q.begun:
		q.code = q.indents()
		q.begun = true
		q.block = c == '>' && plain
	}
	if q.fresh && space(c) {
		q.close = 0
	}
	q.fresh = false
	if plain {
		q.mark(c)
		q.name(c)
	}
	q.before, q.prev = q.prev, c
}

// line handles the end of a line.
func (q *quotation) line() {
	q.afterCode = q.code || q.afterCode && !q.begun
	q.blank = !q.begun && q.inked
	q.inked = q.inked || q.begun
	if !q.begun && q.element == elementCode {
		q.element = elementNone
	}
	if !q.hasCall || !q.begun {
		q.close, q.hasCall = 0, false
	}
	q.indent = 0
	q.begun, q.block, q.code, q.inTag = false, false, false, false
}

// mark opens or closes a quotation if c completes a quotation mark.
func (q *quotation) mark(c byte) {
	// In UTF-8, “ is e2 80 9c, ” is e2 80 9d, „ is e2 80 9e, « is c2 ab and » is c2 bb.
	general := q.before == 0xe2 && q.prev == 0x80
	angle := q.prev == 0xc2
	switch {
	case q.close != 0:
		closes := general && c < 0xab || angle && c == 0xbb || c == '"' && (!q.hasCall || endsCall(q.prev))
		if closes && c == q.close {
			q.close, q.hasCall = 0, false
		}
	case c == '"' && opensAfter(q.prev):
		q.close, q.fresh = '"', true
	case c == 0x9c && general:
		q.close = 0x9d
	case c == 0x9e && general:
		q.close = 0x9c
	case c == 0xab && angle:
		q.close = 0xbb
	}
}

// opensAfter reports whether a " after the byte prev may open a quotation.
func opensAfter(prev byte) bool {
	return prev == 0 || space(prev) || prev == '(' || prev == '[' || prev == '{' || prev == '>' || prev == ':' || prev == '*' || prev == '_'
}

// endsCall reports whether a call may end with c.
func endsCall(c byte) bool { return c == '>' || c == ']' || c == '}' || c == ')' }

// name scans tags for the elements code and pre.
func (q *quotation) name(c byte) {
	switch {
	case c == '<':
		q.inTag, q.tagLen = true, 0
	case !q.inTag:
	case c == '>' || space(c):
		q.inTag = false
		switch name := string(q.tag[:q.tagLen]); {
		case name == "code" && q.element == elementNone:
			q.element = elementCode
		case name == "pre":
			q.element = elementPre
		case name == "/code" && q.element == elementCode, name == "/pre" && q.element == elementPre:
			q.element = elementNone
		}
	case q.tagLen == maxTagName:
		q.inTag = false
	default:
		q.tag[q.tagLen] = lower(c)
		q.tagLen++
	}
}
