// Package markdown renders Markdown for a terminal while it is being written: headings, lists, quotes, code, tables,
// emphasis and links. It is made for the answers of models, which come in pieces: the output does not depend on how the
// input is cut, each byte is looked at a bounded number of times, and no more is held back than a span of maxSpan bytes or a
// table of maxTable bytes. It reads no HTML and follows no links; the address of a link is always shown.
//
// The package does not escape: callers replace control characters before they write, since the output has the escape
// sequences of the styles.
package markdown

import (
	"bytes"
	"io"
)

// Limits of what is held back until its form is known, in bytes. Longer text is written as it is.
const (
	maxSpan  = 1 << 10  // an emphasis, a code span, a link
	maxTable = 64 << 10 // a table
	maxLine  = 8 << 10  // a line of code
	maxStart = 64       // what stands before the text of a line: indentation, marks
	maxDepth = 3        // of an emphasis in an emphasis
)

// A Writer renders what is written to it. It is not safe for concurrent use.
type Writer struct {
	out    io.Writer
	colour bool
	buf    bytes.Buffer // what goes out at the end of a Write
	err    error        // the first error of out

	state state
	held  []byte // the start of a line whose form is not known yet; a line of code or of a table
	table [][]byte
	size  int // of table
	fence struct {
		mark  byte
		count int
	}
	text    inline
	heading bool
}

type state int

const (
	atStart state = iota // of a line
	inText
	inFenceHead // the line that begins a block of code
	inCode      // the lines of a block of code
	inRow       // a line of a table
	afterRow    // the start of the line after one
)

// New returns a writer to out. With colour it writes the escape sequences of bold, italic and coloured text; without, it
// leaves the marks of headings and code in place.
func New(out io.Writer, colour bool) *Writer {
	w := &Writer{out: out, colour: colour}
	w.text = inline{out: &w.buf, colour: colour}
	return w
}

// WriteString renders s. It returns the first error of the writer below.
func (w *Writer) WriteString(s string) error {
	for i := range len(s) {
		w.byte(s[i])
	}
	return w.send()
}

// Flush writes what is held back, as at the end of a text. It adds no line end.
func (w *Writer) Flush() error {
	w.end(false)
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

func (w *Writer) byte(c byte) {
	if c == '\r' {
		return
	}
	if c == '\n' {
		w.end(true)
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
		if len(w.held) < maxLine {
			return
		}
		if w.state == inRow {
			w.table = append(w.table, w.held)
			w.held = nil
			w.endTable() // it is none
			w.state = inText
			return
		}
		w.paint(code, string(w.held)) // the rest follows in the same line
		w.held = w.held[:0]
	}
}

// start decides what a line is as soon as its first bytes say so.
func (w *Writer) start() {
	indent := 0
	for indent < len(w.held) && (w.held[indent] == ' ' || w.held[indent] == '\t') {
		indent++
	}
	mark := w.held[indent:]
	if len(mark) == 0 {
		if len(w.held) >= maxStart {
			w.asText(0)
		}
		return
	}
	if w.state == afterRow && mark[0] != '|' {
		w.endTable()
	}
	w.state = atStart
	n, next := run(mark)
	switch c := mark[0]; {
	case c == '|':
		w.state = inRow
	case c == '#' && n <= 6:
		if next == 0 {
			return
		}
		if next != ' ' {
			w.asText(0)
			return
		}
		w.heading = true
		w.buf.Write(w.held[:indent])
		if !w.colour {
			w.buf.Write(mark)
		}
		w.style(bold, true)
		w.held, w.state = w.held[:0], inText
	case c == '`' || c == '~':
		switch {
		case n >= 3:
			w.state = inFenceHead
		case next != 0:
			w.asText(0)
		}
	case c == '>':
		w.buf.Write(w.held[:indent])
		w.paint(dim, "│")
		w.held = w.held[:0] // the rest is read like a line
	case c == '-' || c == '*' || c == '+' || c == '_':
		switch {
		case next == ' ' && n == 1 && c != '_' && !onlyMarks(mark, c):
			w.buf.Write(w.held[:indent])
			w.buf.WriteString("• ")
			w.begin(mark[2:])
		case onlyMarks(mark, c): // a rule, perhaps
			if len(w.held) >= maxStart {
				w.asText(0)
			}
		default:
			w.asText(0)
		}
	default:
		w.asText(0)
	}
}

// begin continues the text of a line.
func (w *Writer) begin(text []byte) {
	text = bytes.Clone(text)
	w.held, w.state = w.held[:0], inText
	for _, c := range text {
		w.text.byte(c)
	}
}

// asText takes the bytes of the line so far, from one on, as text.
func (w *Writer) asText(from int) { w.begin(w.held[from:]) }

// run returns how often the first byte stands at the beginning of b, and the byte after that; 0 if there is none.
func run(b []byte) (n int, next byte) {
	for n < len(b) && b[n] == b[0] {
		n++
	}
	if n < len(b) {
		next = b[n]
	}
	return n, next
}

// onlyMarks reports whether a line has nothing but the mark and blanks.
func onlyMarks(line []byte, mark byte) bool {
	for _, c := range line {
		if c != mark && c != ' ' {
			return false
		}
	}
	return true
}

// end ends a line, or the text if newline is false.
func (w *Writer) end(newline bool) {
	switch w.state {
	case inText:
		w.text.end()
		if w.heading {
			w.heading = false
			w.style(bold, false)
		}
	case atStart, afterRow:
		blank := len(bytes.TrimSpace(w.held)) == 0
		if w.state == afterRow {
			w.endTable()
		}
		switch mark := bytes.TrimSpace(w.held); {
		case !blank && bytes.Count(mark, mark[:1]) >= 3 && (mark[0] == '-' || mark[0] == '*' || mark[0] == '_') && onlyMarks(mark, mark[0]):
			w.paint(dim, "────────────────")
		case !blank:
			w.asText(0)
			w.text.end()
		}
	case inFenceHead:
		mark := bytes.TrimLeft(w.held, " \t")
		n, _ := run(mark)
		if mark[0] == '`' && bytes.IndexByte(mark[n:], '`') >= 0 { // a code span
			w.asText(0)
			w.text.end()
			break
		}
		w.fence.mark, w.fence.count = mark[0], n
		w.paint(dim, string(w.held))
		w.next(newline, inCode)
		return
	case inCode:
		mark := bytes.TrimSpace(w.held)
		if n, _ := run(mark); n == len(mark) && n >= w.fence.count && mark[0] == w.fence.mark {
			w.paint(dim, string(w.held))
			break
		}
		w.paint(code, string(w.held))
		w.next(newline, inCode)
		return
	case inRow:
		w.table = append(w.table, bytes.Clone(w.held))
		if !newline {
			break
		}
		if w.size += len(w.held); w.size > maxTable {
			w.held = w.held[:0]
			w.endTable()
			break // its last row ends with the line end below
		}
		w.held, w.state = w.held[:0], afterRow
		return // the line end is written with the table
	}
	w.next(newline, atStart)
}

func (w *Writer) next(newline bool, s state) {
	if newline {
		w.buf.WriteByte('\n')
	}
	w.held, w.state = w.held[:0], s
}

func (w *Writer) paint(s style, text string) {
	if text == "" {
		return
	}
	w.style(s, true)
	w.buf.WriteString(text)
	w.style(s, false)
}

func (w *Writer) style(s style, on bool) { w.text.style(s, on) }
