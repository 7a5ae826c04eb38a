// Package markdown renders Markdown for a terminal while it arrives: headings, lists, quotes, code, tables, emphasis and links. It is for
// the answers of models, which arrive in pieces: the output does not depend on how the input is divided, each byte is examined a limited
// number of times, and at most a span of maxSpan bytes or a table of maxTable bytes is buffered. It does not interpret HTML. The address
// of a link is always shown.
//
// The package does not escape its input: callers must remove control characters before, because the output contains the escape sequences
// of the styles.
package markdown

import (
	"bytes"
	"io"
	"strings"
)

// Limits of what is buffered until its form is known, in bytes. Longer text is written unchanged.
const (
	maxSpan  = 1 << 10  // an emphasis, a code span, a link
	maxTable = 64 << 10 // a table
	maxLine  = 8 << 10  // a line of code
	maxStart = 64       // the bytes before the text of a line: indentation, marks
	maxDepth = 3        // nesting of emphasis, not in bytes
)

// A Writer renders the Markdown that is written to it. It must not be used by several goroutines at once.
type Writer struct {
	out    io.Writer
	colour bool
	buf    bytes.Buffer // output of the current Write
	err    error        // the first error of out, which all later calls return

	state state
	held  []byte   // the beginning of a line whose form is not known; a line of code or of a table
	table [][]byte // the buffered lines of a table
	size  int      // bytes in table
	fence struct { // the mark that opened the block of code, and its length
		mark  byte
		count int
	}
	text    inline // renders the text of a line
	heading bool   // the line is a heading
}

type state int

const (
	atStart state = iota // at the start of a line
	inText
	inFenceHead // in the line that begins a block of code
	inCode      // in a line of a block of code
	inRow       // in a line of a table
	afterRow    // at the start of the line after a line of a table
)

// New returns a Writer to out. With colour, it writes escape sequences for bold, italic and coloured text; without it, the marks of
// headings and code remain.
func New(out io.Writer, colour bool) *Writer {
	w := &Writer{out: out, colour: colour}
	w.text = inline{out: &w.buf, colour: colour}
	return w
}

// WriteString renders s. It returns the first error of the underlying writer.
func (w *Writer) WriteString(s string) error {
	for i := range len(s) {
		w.byte(s[i])
	}
	return w.send()
}

// Flush writes the buffered text, as at the end of the input. It adds no line end.
func (w *Writer) Flush() error {
	w.end(inputEnd)
	w.endTable()
	w.state = atStart
	return w.send()
}

func (w *Writer) send() error {
	if w.buf.Len() > 0 && w.err == nil {
		_, w.err = w.out.Write(w.buf.Bytes())
	}
	w.buf.Reset()
	return w.err
}

// byte reads the next byte.
func (w *Writer) byte(c byte) {
	if c == '\r' {
		return
	}
	if c == '\n' {
		w.end(lineEnd)
		return
	}
	switch w.state {
	case inText:
		w.text.byte(c)
	case atStart, afterRow:
		w.held = append(w.held, c)
		w.start()
	case inFenceHead, inCode, inRow:
		w.held = append(w.held, c)
		if len(w.held) >= maxLine {
			w.divide()
		}
	}
}

// divide writes the beginning of a line of maxLine bytes. A line this long starts no block of code, and is not part of a table.
func (w *Writer) divide() {
	switch w.state {
	case inFenceHead:
		w.asText(w.held)
	case inRow:
		w.table = append(w.table, w.held)
		w.held = nil
		w.endTable()
		w.state = inText
	default: // inCode: the rest continues the line
		w.paint(code, string(w.held))
		w.held = w.held[:0]
	}
}

// start determines the form of a line as soon as its first bytes suffice.
func (w *Writer) start() {
	marks := bytes.TrimLeft(w.held, " \t")
	indent := w.held[:len(w.held)-len(marks)]
	if len(marks) == 0 {
		if len(w.held) >= maxStart {
			w.asText(w.held)
		}
		return
	}
	if w.state == afterRow && marks[0] != '|' {
		w.endTable()
	}
	w.state = atStart
	switch marks[0] {
	case '|':
		w.state = inRow
	case '#':
		w.startHeading(indent, marks)
	case '`', '~':
		switch count, next := run(marks); {
		case count >= 3:
			w.state = inFenceHead
		case next != 0:
			w.asText(w.held)
		}
	case '>':
		w.buf.Write(indent)
		w.paint(dim, "│")
		w.held = w.held[:0] // the text after > is read like the start of a line
	case '-', '*', '+', '_':
		w.startItem(indent, marks)
	default:
		w.asText(w.held)
	}
}

// startHeading begins a heading if the line has up to six # and a space.
func (w *Writer) startHeading(indent, marks []byte) {
	count, next := run(marks)
	switch {
	case count > 6 || next != 0 && next != ' ':
		w.asText(w.held)
	case next == ' ':
		w.heading = true
		w.buf.Write(indent)
		if !w.colour {
			w.buf.Write(marks)
		}
		w.text.startStyle(bold)
		w.held, w.state = w.held[:0], inText
	}
}

// startItem begins an item of a list. It waits for further bytes if the line may be a horizontal rule.
func (w *Writer) startItem(indent, marks []byte) {
	count, next := run(marks)
	rule := onlyMarks(marks, marks[0])
	switch {
	case next == ' ' && count == 1 && marks[0] != '_' && !rule:
		w.buf.Write(indent)
		w.buf.WriteString("• ")
		w.asText(marks[len("- "):])
	case !rule || len(w.held) >= maxStart:
		w.asText(w.held)
	}
}

// asText renders text as the text of the line.
func (w *Writer) asText(text []byte) {
	text = bytes.Clone(text)
	w.held, w.state = w.held[:0], inText
	for _, c := range text {
		w.text.byte(c)
	}
}

// run returns how often b repeats its first byte at the beginning, and the byte after that; 0 if none exists.
func run(b []byte) (n int, next byte) {
	for n < len(b) && b[n] == b[0] {
		n++
	}
	if n < len(b) {
		next = b[n]
	}
	return n, next
}

// onlyMarks reports whether a line consists of the mark and blanks.
func onlyMarks(line []byte, mark byte) bool {
	for _, c := range line {
		if c != mark && c != ' ' {
			return false
		}
	}
	return true
}

// An ending is what ends a line.
type ending int

const (
	lineEnd ending = iota
	inputEnd
)

// end handles the end of a line.
func (w *Writer) end(by ending) {
	next := atStart
	switch w.state {
	case inText:
		w.text.end()
		if w.heading {
			w.heading = false
			w.text.endStyle(bold)
		}
	case afterRow:
		w.endTable()
		w.endStart()
	case atStart:
		w.endStart()
	case inFenceHead:
		next = w.endFenceHead()
	case inCode:
		next = w.endCode()
	case inRow:
		w.table = append(w.table, bytes.Clone(w.held))
		w.size += len(w.held)
		if by == lineEnd && w.size <= maxTable {
			w.held, w.state = w.held[:0], afterRow
			return // the line end is written with the table
		}
		w.endTable() // without the line end of the last row
	}
	if by == lineEnd {
		w.buf.WriteByte('\n')
	}
	w.held, w.state = w.held[:0], next
}

// endStart writes a line that has ended before start could determine its form.
func (w *Writer) endStart() {
	line := bytes.TrimSpace(w.held)
	if len(line) == 0 {
		return
	}
	if isRule(line) {
		w.paint(dim, "────────────────")
		return
	}
	w.asText(w.held)
	w.text.end()
}

// endFenceHead begins a block of code, and returns the state of the next line. A line with a code span of three marks begins none.
func (w *Writer) endFenceHead() state {
	marks := bytes.TrimLeft(w.held, " \t")
	count, _ := run(marks)
	if marks[0] == '`' && bytes.IndexByte(marks[count:], '`') >= 0 {
		w.asText(w.held)
		w.text.end()
		return atStart
	}
	w.fence.mark, w.fence.count = marks[0], count
	w.paint(dim, string(w.held))
	return inCode
}

// endCode writes a line of a block of code or the line that ends the block, and returns the state of the next line.
func (w *Writer) endCode() state {
	line := bytes.TrimSpace(w.held)
	count, _ := run(line)
	if count == len(line) && count >= w.fence.count && line[0] == w.fence.mark {
		w.paint(dim, string(w.held))
		return atStart
	}
	w.paint(code, string(w.held))
	return inCode
}

// isRule reports whether a line is a horizontal rule.
func isRule(line []byte) bool {
	return bytes.Count(line, line[:1]) >= 3 && strings.IndexByte("-*_", line[0]) >= 0 && onlyMarks(line, line[0])
}

func (w *Writer) paint(s style, text string) {
	if text == "" {
		return
	}
	w.text.startStyle(s)
	w.buf.WriteString(text)
	w.text.endStyle(s)
}
