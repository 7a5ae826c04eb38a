package dialect

// marks is a set of texts at which a scanner divides its input. Each text has at least two bytes.
type marks struct {
	list   []string  // lower case if fold is set
	fold   bool      // ASCII letters match without regard to case
	begins [256]bool // begins[c] is true if a mark begins with byte c
}

func newMarks(fold bool, list ...string) *marks {
	m := &marks{list: list, fold: fold}
	for _, text := range list {
		c := text[0]
		m.begins[c] = true
		if fold && 'a' <= c && c <= 'z' {
			m.begins[c-'a'+'A'] = true
		}
	}
	return m
}

// index returns the first offset in s, from i on, at which a mark may begin, or len(s).
func (m *marks) index(s string, i int) int {
	for i < len(s) && !m.begins[s[i]] {
		i++
	}
	return i
}

// at matches the marks with the beginning of the text a+b; b may be non-empty only if a is. id is the longest mark that a+b begins with,
// part a mark that begins with all of a+b. Each is -1 if none exists.
func (m *marks) at(a, b string) (id, part int) {
	id, part = -1, -1
	if a == "" || !m.begins[a[0]] {
		return id, part
	}
	for i, mark := range m.list {
		whole, begun := m.agree(mark, a, b)
		if whole && (id < 0 || len(mark) > len(m.list[id])) {
			id = i
		}
		if begun {
			part = i
		}
	}
	return id, part
}

// agree reports whether a+b begins with mark (whole), or mark begins with all of a+b (begun).
func (m *marks) agree(mark, a, b string) (whole, begun bool) {
	if len(a) >= len(mark) {
		return m.equal(mark, a[:len(mark)]), false
	}
	if !m.equal(mark[:len(a)], a) {
		return false, false
	}
	mark = mark[len(a):]
	if len(b) >= len(mark) {
		return m.equal(mark, b[:len(mark)]), false
	}
	return false, m.equal(mark[:len(b)], b)
}

func (m *marks) equal(mark, s string) bool {
	if !m.fold {
		return mark == s
	}
	for i := range len(s) {
		if lower(s[i]) != mark[i] {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + ('a' - 'A')
	}
	return c
}

// A scanner divides text that arrives in pieces into runs of text and marks: with the mark <tool_call>, the pieces `I call <to` and
// `ol_call>{` are the text `I call `, the mark, and the text `{`. Its results do not depend on the pieces, once adjacent runs
// of text are joined. It buffers only the longest end of the text that may still become a mark, and examines no byte of a run twice.
//
// The caller may read the field in and advance it directly while held is empty, as it is after each mark.
type scanner struct {
	marks *marks
	in    string // the unread part of the piece
	held  string // the buffered text before in: the beginning of a mark
	last  bool   // the text ends with in, so held cannot grow

	looked int // number of bytes and marks examined; a test proves by it that the time is linear
}

// next returns a run of text (mark is -1) or one mark. It returns false if the piece has been read.
func (s *scanner) next() (text string, mark int, ok bool) {
	if s.held != "" {
		s.looked++
		id, part := s.marks.at(s.held, s.in)
		if part >= 0 && !s.last {
			s.buffer(s.marks.list[part])
			return "", -1, false
		}
		if id >= 0 {
			return s.takeMark(s.marks.list[id]), id, true
		}
		k := 1
		for ; k < len(s.held); k++ {
			s.looked++
			if id, part := s.marks.at(s.held[k:], s.in); id >= 0 || part >= 0 && !s.last {
				break
			}
		}
		text := s.held[:k]
		s.held = s.held[k:]
		return text, -1, true
	}
	if s.in == "" {
		return "", -1, false
	}
	for i := s.marks.index(s.in, 0); i < len(s.in); i = s.marks.index(s.in, i+1) {
		s.looked++
		id, part := s.marks.at(s.in[i:], "")
		wait := part >= 0 && !s.last
		switch {
		case !wait && id < 0:
			continue
		case i > 0 && !wait: // return the text first; the next call finds the mark again
			return s.take(i), -1, true
		case !wait:
			return s.take(len(s.marks.list[id])), id, true
		}
		text = s.take(i)
		s.buffer(s.marks.list[part])
		return text, -1, text != ""
	}
	return s.take(len(s.in)), -1, true
}

// take consumes n bytes of the piece and returns them.
func (s *scanner) take(n int) string {
	s.looked += n
	text := s.in[:n]
	s.in = s.in[n:]
	return text
}

// takeMark consumes a mark that begins in held. The rest of held, buffered for a longer mark, becomes unread text again.
func (s *scanner) takeMark(mark string) string {
	if n := len(mark); n <= len(s.held) {
		text := s.held[:n]
		s.in = s.held[n:] + s.in
		s.held = ""
		return text
	}
	s.held = s.join(mark, s.take(len(mark)-len(s.held)))
	text := s.held
	s.held = ""
	return text
}

// buffer moves all unread text, which is a beginning of mark, to held.
func (s *scanner) buffer(mark string) {
	s.held = s.join(mark, s.take(len(s.in)))
}

// join returns held+text. If mark begins with these bytes, it returns a part of mark instead: nothing is copied, and the pieces can be
// freed.
func (s *scanner) join(mark, text string) string {
	n := len(s.held)
	if own := mark[:n+len(text)]; own[:n] == s.held && own[n:] == text {
		return own
	}
	return s.held + text
}
