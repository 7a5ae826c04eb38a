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
	text    inline
	heading bool
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
			w.endTable() // a line that long is not part of a table
			w.state = inText
			return
		}
		w.paint(code, string(w.held)) // the rest continues the line
		w.held = w.held[:0]
	}
}

// start determines the form of a line as soon as its first bytes suffice.
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
		w.held = w.held[:0] // the text after > is read like the start of a line
	case c == '-' || c == '*' || c == '+' || c == '_':
		switch {
		case next == ' ' && n == 1 && c != '_' && !onlyMarks(mark, c):
			w.buf.Write(w.held[:indent])
			w.buf.WriteString("• ")
			w.begin(mark[2:])
		case onlyMarks(mark, c): // may be a horizontal rule
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

// begin renders text as the text of a line.
func (w *Writer) begin(text []byte) {
	text = bytes.Clone(text)
	w.held, w.state = w.held[:0], inText
	for _, c := range text {
		w.text.byte(c)
	}
}

// asText renders the buffered bytes of the line, without the first from bytes, as text.
func (w *Writer) asText(from int) { w.begin(w.held[from:]) }

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

// end handles the end of a line, or of the text if newline is false.
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
			break // the line end of its last row is written below
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
