package dialect

// marks is a set of texts that a scanner stops at. Each has at least two bytes.
type marks struct {
	list   []string  // lower case where fold is set
	fold   bool      // letters match without regard to case (ASCII)
	begins [256]bool // by byte: a mark begins with it
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

// index returns where in s, from i on, a mark may begin; len(s) when nowhere.
func (m *marks) index(s string, i int) int {
	for i < len(s) && !m.begins[s[i]] {
		i++
	}
	return i
}

// at looks at the front of the text a+b; a is not empty where b is not. id is the longest mark that stands there whole, part a
// mark of which all of a+b is only the beginning; -1 stands for none.
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

// A scanner cuts text that comes in pieces into runs of text and marks. What it returns does not
// depend on the pieces, once neighbouring runs of text are joined. It holds back only the longest
// end of the text that may still become a mark, and never looks at a byte of a run twice.
//
// in may be read and advanced directly while held is empty, which it is after each mark.
type scanner struct {
	marks *marks
	in    string // what is unread of the piece
	held  string // the unread text before it: the beginning of a mark
	last  bool   // nothing comes after in: what is held is all there is

	looked int // bytes and marks looked at, for the proof that the time is linear
}

// next returns a run of text (mark is -1) or one mark. ok is false when the piece is used up.
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
		case i > 0 && !wait: // the text first; the mark is found again at once
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

func (s *scanner) take(n int) string {
	s.looked += n
	text := s.in[:n]
	s.in = s.in[n:]
	return text
}

// takeMark reads a mark that begins in what is held. What was held for a longer mark is unread again.
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

// buffer keeps all that is unread: the beginning of mark.
func (s *scanner) buffer(mark string) {
	s.held = s.join(mark, s.take(len(s.in)))
}

// join returns what is held with text after it. Where that is how the mark spells it, the mark's
// memory stands for it, so that the pieces are let go and nothing is copied.
func (s *scanner) join(mark, text string) string {
	n := len(s.held)
	if own := mark[:n+len(text)]; own[:n] == s.held && own[n:] == text {
		return own
	}
	return s.held + text
}
