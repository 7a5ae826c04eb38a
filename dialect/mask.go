package dialect

import "strings"

// A mask follows Markdown, to know which text is code and therefore no call: fences (three or more
// backticks or tildes that begin a line), code spans (closed by as many backticks, or by the end
// of the line), and templates (`{{…}}`, `{%…%}` on one line). A backslash masks the next byte.
// The zero value is at the beginning of a line.
type mask struct {
	inked   bool // something other than white space, quote or list signs stands on the line
	escaped bool // the last byte was a backslash that was not itself escaped
	prev    byte // the last byte

	run      int // backticks or tildes in a row, up to the last byte
	runFirst bool

	fence    byte // of the open fence, 0: none
	fenceLen int
	info     bool // on the line that opened the fence
	closing  bool // a closing run was read; the rest of the line must be blank
	span     int  // backticks of the open code span
	template byte // '}' or '%' while a template is open

	quotation quotation
}

// lineSigns may begin a line before a fence: they are signs of quotes and lists.
const lineSigns = ">-*+0123456789.)"

// maskBytes are the bytes that mean something to a mask, but for the first of a line.
var maskBytes = [256]bool{'`': true, '~': true, '\n': true, '\\': true, '{': true, '%': true, '}': true}

// stopBytes are the bytes that mean something to a mask or to its quotation, but for the first of a line.
var stopBytes = func() (stop [256]bool) {
	for c := range stop {
		stop[c] = maskBytes[c] || quoteBytes[c]
	}
	return stop
}()

// text follows s.
func (m *mask) text(s string) {
	for i := 0; i < len(s); {
		n := i
		if m.run == 0 && !m.escaped && m.quotation.idle() {
			for n < len(s) && !stopBytes[s[n]] {
				n++
			}
		}
		if n == i {
			m.byte(s[i])
			i++
			continue
		}
		if !m.inked || m.closing {
			m.ink(s[i:n])
		}
		m.quotation.skip(s[i:n])
		m.prev = s[n-1]
		i = n
	}
}

// ink takes bytes of which none means anything but that the line has some.
func (m *mask) ink(s string) {
	for i := 0; i < len(s) && (!m.inked || m.closing); i++ {
		if c := s[i]; !space(c) {
			m.inked = m.inked || strings.IndexByte(lineSigns, c) < 0
			m.closing = false
		}
	}
}

func (m *mask) byte(c byte) {
	if m.run > 0 && c != m.prev {
		m.endRun()
	}
	escaped := m.escaped
	m.quotation.byte(c, !escaped && m.fence == 0 && m.span == 0)
	m.escaped = c == '\\' && !escaped && m.fence == 0 && m.span == 0
	switch {
	case c == '\n':
		if m.closing {
			m.fence = 0
		}
		m.inked, m.info, m.closing, m.span, m.template = false, false, false, 0, 0
	case (c == '`' || c == '~') && !escaped:
		if m.run == 0 {
			m.runFirst = !m.inked
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
		m.inked = m.inked || strings.IndexByte("`~"+lineSigns, c) < 0
		m.closing = false
	}
	m.prev = c
}

// endRun takes a run of backticks or tildes that is over.
func (m *mask) endRun() {
	n, c, first := m.run, m.prev, m.runFirst
	m.run = 0
	if m.fence != 0 && m.info && c == '`' && m.fence == '`' {
		// A fence has no backticks on its own line: it was a span.
		m.fence, m.info, m.span = 0, false, m.fenceLen
		m.inked = true
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
	m.inked = true
}

// code reports whether the next byte, which is not a backtick or a tilde, is code, escaped or quoted.
func (m *mask) code() bool {
	if m.run > 0 {
		m.endRun()
	}
	return m.fence != 0 || m.span > 0 || m.template != 0 || m.escaped || m.quotation.quotes()
}

// fresh begins a new line, after a call or a block of thinking.
func (m *mask) fresh() { *m = mask{} }
