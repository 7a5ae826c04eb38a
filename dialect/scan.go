package dialect

import (
	"strings"
	"sync"
)

// marks is a set of texts that a scanner stops at. Its tables are made by the first call of made, and shared: a program uses the marks of
// few dialects.
type marks struct {
	list   []string // lower case where fold is set
	fold   bool     // letters match without regard to case (ASCII)
	once   sync.Once
	first  [256]uint8    // by first byte, the row of pairs; 0: no mark begins so
	pairs  [][256]uint16 // by row and second byte, the place in groups of the marks that begin with the two bytes; 0: none
	groups [][]uint16    // places in list, in order
	starts []uint16      // by row, the place in list of the first mark that begins with the byte
	only   int           // the one byte that all marks begin with, else -1
	next   int           // the one byte that all have after it, else -1
	short  int           // length of the shortest mark
}

// newMarks returns a set of which only the list is made.
func newMarks(fold bool, list ...string) *marks { return &marks{list: list, fold: fold} }

// made returns m with its tables. Any number of goroutines may call it at once.
func (m *marks) made() *marks {
	m.once.Do(m.make)
	return m
}

func (m *marks) make() {
	m.groups, m.only, m.short = make([][]uint16, 1, 8), -1, len(m.list[0])
	rows, seen := 1, [256]bool{}
	for _, text := range m.list {
		for _, c := range m.cases(text[0]) {
			if !seen[c] {
				seen[c] = true
				rows++
			}
		}
	}
	m.pairs, m.starts = make([][256]uint16, 1, rows), make([]uint16, 1, rows)
	for i, text := range m.list {
		m.short = min(m.short, len(text))
		for _, c := range m.cases(text[0]) {
			if m.first[c] == 0 {
				m.first[c] = uint8(len(m.pairs))
				m.pairs = append(m.pairs, [256]uint16{})
				m.starts = append(m.starts, uint16(i))
			}
			row := &m.pairs[m.first[c]]
			group := row[text[1]]
			if group == 0 {
				group = uint16(len(m.groups))
				m.groups = append(m.groups, nil)
				for _, second := range m.cases(text[1]) {
					row[second] = group
				}
			}
			m.groups[group] = append(m.groups[group], uint16(i))
		}
	}
	m.only, m.next = m.common(0), m.common(1)
}

// pair reports whether a mark begins with these two bytes.
func (m *marks) pair(a, b byte) bool { return m.pairs[m.first[a]][b] != 0 }

// cases returns the bytes that match c.
func (m *marks) cases(c byte) []byte {
	if m.fold && 'a' <= c && c <= 'z' {
		return []byte{c, c - 'a' + 'A'}
	}
	return []byte{c}
}

// common returns the byte that all marks have at i, where it has one case only; else -1.
func (m *marks) common(i int) int {
	c := m.list[0][i]
	for _, text := range m.list {
		if text[i] != c || len(m.cases(c)) > 1 {
			return -1
		}
	}
	return int(c)
}

// index returns where in s, from i on, a mark may begin; len(s) when nowhere. Every mark has at
// least two bytes.
func (m *marks) index(s string, i int) int {
	switch {
	case m.only >= 0 && m.next >= 0:
		return m.indexSecond(s, i)
	case m.only >= 0:
		return m.indexFirst(s, i)
	}
	for ; i < len(s); i++ {
		if m.first[s[i]] != 0 && (i+1 == len(s) || m.pair(s[i], s[i+1])) {
			return i
		}
	}
	return len(s)
}

func (m *marks) indexFirst(s string, i int) int {
	for {
		n := strings.IndexByte(s[i:], byte(m.only))
		if n < 0 {
			return len(s)
		}
		if i += n; i+1 == len(s) || m.pair(s[i], s[i+1]) {
			return i
		}
		i++
	}
}

// indexSecond looks for the second byte, which text has less often than the first: `<` is in all
// code, `<|` is not.
func (m *marks) indexSecond(s string, i int) int {
	for i+1 < len(s) {
		n := strings.IndexByte(s[i+1:], byte(m.next))
		if n < 0 {
			break
		}
		if s[i+n] == byte(m.only) {
			return i + n
		}
		i += n + 1
	}
	if i < len(s) && s[len(s)-1] == byte(m.only) {
		return len(s) - 1
	}
	return len(s)
}

// at looks at the front of the text a+b; a is not empty where b is not. id is the longest mark that stands there whole, part a
// mark of which all of a+b is only the beginning; -1 stands for none.
func (m *marks) at(a, b string) (id, part int) {
	if a == "" || m.first[a[0]] == 0 {
		return -1, -1
	}
	row := m.first[a[0]]
	var second byte
	switch {
	case len(a) > 1:
		second = a[1]
	case b != "":
		second = b[0]
	default: // every mark has more bytes
		return -1, int(m.starts[row])
	}
	id, part = -1, -1
	for _, i := range m.groups[m.pairs[row][second]] {
		mark := m.list[i]
		if len(a) > 2 && len(mark) > 2 && mark[2] != a[2] && !m.fold { // most other marks differ in the third byte
			continue
		}
		whole, begun := m.agree(mark, a, b)
		if whole && (id < 0 || len(mark) > len(m.list[id])) {
			id = int(i)
		}
		if begun {
			if part = int(i); len(a)+len(b) < m.short {
				break
			}
		}
	}
	return id, part
}

// maxShort is the length up to which words of eight bytes are searched faster than by strings.IndexByte.
const maxShort = 24

// lacks reports whether text, which is not empty, cannot contain a mark or end with the beginning of one, because it does not
// contain the second byte that all marks share, and does not end with the first byte that they share. It returns false for all
// other texts, and if the marks share no such bytes.
func (m *marks) lacks(text string) bool {
	switch {
	case m.next < 0 || m.only < 0 || text[len(text)-1] == byte(m.only):
		return false
	case len(text) <= maxShort:
		return indexEither(text, 0, byte(m.next), byte(m.next)) == len(text)
	}
	return strings.IndexByte(text, byte(m.next)) < 0
}

// find returns where in text a mark, or at its end the beginning of one, stands first; len(text) where none does.
func (m *marks) find(text string) int {
	i := m.index(text, 0)
	for i < len(text) {
		if id, part := m.at(text[i:], ""); id >= 0 || part >= 0 {
			break
		}
		i = m.index(text, i+1)
	}
	return i
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
