package responses

import (
	"bytes"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// A memo stores the form of the last event with a piece of text, and where the piece belongs. If the next event differs only in
// the number of the event, the piece and the padding, the assembler does not need to parse it.
type memo struct {
	kind  itemKind // of the item; itemOpaque: nothing is remembered
	item  *item
	part  *part  // of a message
	from  string // of reasoning: the member, and the index in it
	index int

	text  []byte // the event without its holes
	holes []hole

	// What the next event begins with, up to its piece, if its number is one more than the one of head: most are found by one comparison.
	head   []byte // empty: not known
	number [2]int // where the number stands in head: its start and its end
	piece  int    // the hole after head
}

// A hole is a value in which similar events differ: digits, or a string.
type hole struct {
	at    int // bytes of memo.text before it
	digit bool
	piece bool // it is the piece
}

// aim stores where the piece of the event that is being read belongs.
func (m *memo) aim(it *item, p *part, from string, index int) {
	m.kind, m.item, m.part, m.from, m.index = it.kind, it, p, from, index
}

// learn stores the form of the event data, which e was read from. Without a piece that is a string nothing is remembered.
func (m *memo) learn(e *ev, data []byte) {
	m.text, m.holes, m.head = m.text[:0], m.holes[:0], m.head[:0]
	type span struct {
		hole
		from, to int
	}
	var spans [3]span
	n := 0
	add := func(v []byte, h hole) {
		from := cap(data) - cap(v) // v is a part of data
		spans[n] = span{h, from, from + len(v)}
		n++
	}
	if len(e.delta) == 0 || e.delta[0] != '"' {
		m.kind = itemOpaque
		return
	}
	add(e.delta, hole{piece: true})
	if len(e.number) > 0 && digits(e.number, 0) == len(e.number) {
		add(e.number, hole{digit: true})
	}
	if len(e.padding) > 0 && e.padding[0] == '"' {
		add(e.padding, hole{})
	}
	slices.SortFunc(spans[:n], func(a, b span) int { return a.from - b.from })
	end := 0
	for _, s := range spans[:n] {
		m.text = append(m.text, data[end:s.from]...)
		s.at, end = len(m.text), s.to
		m.holes = append(m.holes, s.hole)
	}
	m.text = append(m.text, data[end:]...)
}

// match returns the text of the piece of an event of the remembered form, and body, the part of data that stands for it; nil unless the piece is
// simple: see [Assembler.unquote]. The text is a part of data or of scratch, which match may use and returns.
func (m *memo) match(scratch, data []byte) (piece, body, used []byte, ok bool) {
	pos, text, i := 0, 0, 0
	var number [2]int // where it stands
	if n := len(m.head); n > 0 && m.count() && len(data) > n && string(data[:n]) == string(m.head) {
		pos, text, i = n, m.holes[m.piece].at, m.piece
	}
	fast := i > 0
	for ; i < len(m.holes); i++ {
		h := &m.holes[i]
		n := h.at - text
		if len(data)-pos <= n || string(data[pos:pos+n]) != string(m.text[text:h.at]) {
			return nil, nil, scratch, false
		}
		pos, text = pos+n, h.at
		if h.digit {
			end := digits(data, pos)
			if end == pos {
				return nil, nil, scratch, false
			}
			number = [2]int{pos, end}
			pos = end
			continue
		}
		if data[pos] != '"' {
			return nil, nil, scratch, false
		}
		if h.piece && !fast {
			m.keepHead(i, data[:pos], number)
		}
		end, plain := rawjson.PlainString(data, pos+1)
		switch {
		case plain && h.piece:
			piece = data[pos+1 : end-1]
			body = piece
		case plain:
		default:
			var simple bool
			if scratch, end, simple = rawjson.AppendSimple(scratch[:0], data, pos+1); !simple {
				var err error
				if end, err = rawjson.Scan(data, pos); err != nil {
					return nil, nil, scratch, false
				}
				scratch = rawjson.AppendUnquoteLossy(scratch[:0], data[pos:end])
			}
			if h.piece {
				if piece = scratch; simple {
					body = data[pos+1 : end-1]
				}
			} else if piece != nil { // it may stand in scratch
				return nil, nil, scratch, false
			}
		}
		pos = end
	}
	return piece, body, scratch, bytes.Equal(data[pos:], m.text[text:])
}

// keepHead stores the bytes before the piece, the i-th hole, if the number of the event is among them and nothing else that differs.
func (m *memo) keepHead(i int, head []byte, number [2]int) {
	m.head, m.piece, m.number = m.head[:0], i, number
	if i == 1 && m.holes[0].digit {
		m.head = append(m.head, head...)
	}
}

// count increments the number in the head. It returns false if the number needs one more digit: the head is then forgotten.
func (m *memo) count() bool {
	for i := m.number[1] - 1; i >= m.number[0]; i-- {
		if m.head[i] < '9' {
			m.head[i]++
			return true
		}
		m.head[i] = '0'
	}
	m.head = m.head[:0]
	return false
}

// again appends the delta of an event of the remembered form. ok is false if data is not one.
func (a *Assembler) again(dst []lathe.Delta, data []byte) (_ []lathe.Delta, ok bool) {
	m := &a.memo
	if m.kind == itemOpaque {
		return dst, false
	}
	piece, body, scratch, ok := m.match(a.scratch, data)
	if a.scratch = scratch; !ok {
		return dst, false
	}
	switch m.kind {
	case itemMessage:
		before := m.part.text.Len()
		if dst = a.appendText(dst, m.item, m.part, piece, false); body != nil {
			a.copied.extend(&m.part.text, before, body)
		}
	case itemReasoning:
		dst = a.appendReasoning(dst, m.item, m.from, m.index, piece)
	default:
		before := m.item.args.Len()
		if dst = a.appendArguments(dst, m.item, piece, false); body != nil && m.kind == itemCall {
			a.copied.extend(&m.item.args, before, body)
		}
	}
	return dst, true
}

// digits returns the end of the JSON integer without a sign that begins at b[i]; i if there is none.
func digits(b []byte, i int) int {
	if i < len(b) && b[i] == '0' {
		return i + 1
	}
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return i
}
