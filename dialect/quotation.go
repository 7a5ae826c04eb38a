package dialect

import (
	"strings"
	"unicode/utf8"
)

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
	close   string // the mark that closes the open quotation; "" if none is open
	opened  bool   // the opening " was the last byte
	hasCall bool   // the quotation contains a call

	prev, before byte // the last byte, and the one before it

	line quotedLine // the line so far; endLine resets it

	// The lines before; only endLine sets these.
	hasText   bool // one of them had more than white space
	blank     bool // the last of them had only white space
	afterCode bool // the last of them was indented code, or is empty after such a line

	// The tag being read, and the element that tags opened; readTag sets them.
	tag     [maxTagName]byte // the name of the tag so far
	tagLen  int              // number of bytes in tag
	inTag   bool             // the name of a tag is being read
	element element          // the open element
}

// A quotedLine is what is known of the line that is being read.
type quotedLine struct {
	indent int  // the indentation, while the line has only white space
	begun  bool // the line has another byte than white space
	block  bool // the line is part of a block quote
	code   bool // the line is indented code
}

type element uint8

const (
	elementNone element = iota
	elementCode
	elementPre
)

const maxTagName = len("/code")

// noteCall handles a mark that begins a call inside the quotation, where it is text.
func (q *quotation) noteCall() { q.hasCall = q.close != "" }

// quotes reports whether the next byte is quoted.
func (q *quotation) quotes() bool {
	return q.close != "" || q.line.block || q.element != elementNone || q.line.code || q.indents()
}

// indents reports whether the white space so far makes the line indented code.
func (q *quotation) indents() bool {
	return !q.line.begun && q.line.indent >= 4 && (q.blank || q.afterCode)
}

// byte scans c. plain is false in code and after a backslash, where quotation marks and tags do not count.
func (q *quotation) byte(c byte, plain bool) {
	switch {
	case c == '\n':
		q.endLine()
	case !q.line.begun:
		q.beginLine(c, plain)
	}
	if q.opened && space(c) {
		q.close = ""
	}
	q.opened = false
	if plain {
		q.readMark(c)
		q.readTag(c)
	}
	q.before, q.prev = q.prev, c
}

// beginLine reads c, the next byte of a line that has only white space so far.
func (q *quotation) beginLine(c byte, plain bool) {
	switch c {
	case ' ', '\r':
		q.line.indent++
	case '\t':
		q.line.indent += 4
	default:
		q.line.code = q.indents()
		q.line.begun = true
		q.line.block = c == '>' && plain
	}
}

// endLine handles the end of a line.
func (q *quotation) endLine() {
	empty := !q.line.begun
	q.afterCode = q.line.code || q.afterCode && empty
	q.blank = empty && q.hasText
	q.hasText = q.hasText || !empty
	if empty && q.element == elementCode {
		q.element = elementNone
	}
	if empty || !q.hasCall {
		q.close, q.hasCall = "", false
	}
	q.line, q.inTag = quotedLine{}, false
}

// readMark opens or closes a quotation if c completes a quotation mark.
func (q *quotation) readMark(c byte) {
	if c != '"' && c < utf8.RuneSelf {
		return
	}
	mark := string([]byte{q.before, q.prev, c}) // ends with the mark
	switch {
	case q.close != "":
		mayClose := c != '"' || !q.hasCall || endsCall(q.prev)
		if mayClose && strings.HasSuffix(mark, q.close) {
			q.close, q.hasCall = "", false
		}
	case c == '"':
		if opensAfter(q.prev) {
			q.close, q.opened = `"`, true
		}
	case mark == "“":
		q.close = "”"
	case mark == "„":
		q.close = "“"
	case strings.HasSuffix(mark, "«"):
		q.close = "»"
	}
}

// opensAfter reports whether a " after the byte prev may open a quotation.
func opensAfter(prev byte) bool {
	return prev == 0 || space(prev) || strings.IndexByte("([{>:*_", prev) >= 0
}

// endsCall reports whether a call may end with c.
func endsCall(c byte) bool { return c == '>' || c == ']' || c == '}' || c == ')' }

// readTag scans tags for the elements code and pre.
func (q *quotation) readTag(c byte) {
	if c == '<' {
		q.inTag, q.tagLen = true, 0
		return
	}
	if !q.inTag {
		return
	}
	switch {
	case c == '>' || space(c):
		q.inTag = false
		q.endTagName(string(q.tag[:q.tagLen]))
	case q.tagLen == maxTagName:
		q.inTag = false
	default:
		q.tag[q.tagLen] = lower(c)
		q.tagLen++
	}
}

// endTagName opens or closes the element that the tag with this name begins or ends.
func (q *quotation) endTagName(name string) {
	switch {
	case name == "code" && q.element == elementNone:
		q.element = elementCode
	case name == "pre":
		q.element = elementPre
	case name == "/code" && q.element == elementCode, name == "/pre" && q.element == elementPre:
		q.element = elementNone
	}
}
