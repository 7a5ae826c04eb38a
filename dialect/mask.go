package dialect

import "strings"

// A mask scans Markdown, to find text that is code and therefore not a call: fences (three or more backticks or tildes that begin a
// line), code spans (closed by as many backticks, or by the end of the line), and templates (`{{…}}`, `{%…%}` on one line). A backslash
// masks the next byte. The zero value is the beginning of a line. A run of backticks or tildes has its effect at the byte after it (endRun).
type mask struct {
	hasText bool // the line has bytes other than white space and signs of quotes and lists
	escaped bool // the last byte was a backslash that was not itself escaped
	prev    byte // the last byte

	run      int  // number of equal backticks or tildes that end with the last byte
	runFirst bool // the run begins the line, apart from white space and signs

	fence    byte // the byte of the open fence; 0 if none is open
	fenceLen int
	info     bool // on the line that opened the fence
	closing  bool // a run that may close the fence was read; the rest of the line must be blank
	span     int  // number of backticks that opened the code span; 0 if none is open
	template byte // '}' or '%' while a template is open

	quotation quotation
}

// lineSigns may precede a fence on its line: they begin quotes and lists.
const lineSigns = ">-*+0123456789.)"

// text scans s, the next part of the text.
func (m *mask) text(s string) {
	for _, c := range []byte(s) {
		m.byte(c)
	}
}

func (m *mask) byte(c byte) {
	if m.run > 0 && c != m.prev {
		m.endRun()
	}
	escaped := m.escaped
	plain := !escaped && m.fence == 0 && m.span == 0
	m.quotation.byte(c, plain)
	m.escaped = plain && c == '\\'
	switch {
	case c == '\n':
		if m.closing {
			m.fence = 0
		}
		m.hasText, m.info, m.closing, m.span, m.template = false, false, false, 0, 0
	case (c == '`' || c == '~') && !escaped:
		if m.run == 0 {
			m.runFirst = !m.hasText
		}
		m.run++
	case m.template != 0:
		if c == '}' && m.prev == m.template {
			m.template = 0
		}
	case c == '{' && m.prev == '{':
		m.template = '}'
	case c == '%' && m.prev == '{':
		m.template = '%'
	}
	if !space(c) {
		m.hasText = m.hasText || strings.IndexByte("`~"+lineSigns, c) < 0
		m.closing = false
	}
	m.prev = c
}

// endRun handles the end of a run of backticks or tildes: it opens or closes a fence or a span.
func (m *mask) endRun() {
	n, c, first := m.run, m.prev, m.runFirst
	m.run = 0
	if m.fence != 0 && m.info && c == '`' && m.fence == '`' {
		// The line that opens a fence of backticks contains no other backticks: the fence was a span.
		m.fence, m.info, m.span = 0, false, m.fenceLen
		m.hasText = true
	}
	switch {
	case m.fence != 0:
		m.closing = first && c == m.fence && n >= m.fenceLen
	case m.span > 0:
		if c == '`' && n == m.span {
			m.span = 0
		}
	case first && n >= 3:
		m.fence, m.fenceLen, m.info = c, n, true
	case c == '`':
		m.span = n
	}
	m.hasText = true
}

// beginMark ends the run of backticks or tildes before a mark of the scanner. It returns true if the mark is code, escaped or quoted.
func (m *mask) beginMark() (isCode bool) {
	if m.run > 0 {
		m.endRun()
	}
	return m.fence != 0 || m.span > 0 || m.template != 0 || m.escaped || m.quotation.quotes()
}

// fresh resets the mask to the beginning of a line, after a call or a block of thinking.
func (m *mask) fresh() { *m = mask{} }
