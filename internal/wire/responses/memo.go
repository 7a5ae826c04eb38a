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
	m.text, m.holes = m.text[:0], m.holes[:0]
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

// match returns the text of the piece of an event of the remembered form. It is a part of data or of scratch, which match may use and returns.
func (m *memo) match(scratch, data []byte) (piece, used []byte, ok bool) {
	pos, text := 0, 0
	for _, h := range m.holes {
		n := h.at - text
		if len(data)-pos <= n || string(data[pos:pos+n]) != string(m.text[text:h.at]) {
			return nil, scratch, false
		}
		pos, text = pos+n, h.at
		if h.digit {
			end := digits(data, pos)
			if end == pos {
				return nil, scratch, false
			}
			pos = end
			continue
		}
		if data[pos] != '"' {
			return nil, scratch, false
		}
		end, plain := rawjson.PlainString(data, pos+1)
		switch {
		case plain && h.piece:
			piece = data[pos+1 : end-1]
		case plain:
		default:
			var simple bool
			if scratch, end, simple = rawjson.AppendSimple(scratch[:0], data, pos+1); !simple {
				var err error
				if end, err = rawjson.Scan(data, pos); err != nil {
					return nil, scratch, false
				}
				scratch = rawjson.AppendUnquoteLossy(scratch[:0], data[pos:end])
			}
			if h.piece {
				piece = scratch
			} else if piece != nil { // it may stand in scratch
				return nil, scratch, false
			}
		}
		pos = end
	}
	return piece, scratch, bytes.Equal(data[pos:], m.text[text:])
}

// again appends the delta of an event of the remembered form. ok is false if data is not one.
func (a *Assembler) again(dst []lathe.Delta, data []byte) (_ []lathe.Delta, ok bool) {
	m := &a.memo
	if m.kind == itemOpaque {
		return dst, false
	}
	piece, scratch, ok := m.match(a.scratch, data)
	if a.scratch = scratch; !ok {
		return dst, false
	}
	switch m.kind {
	case itemMessage:
		dst = a.appendText(dst, m.item, m.part, piece, false)
	case itemReasoning:
		dst = a.appendReasoning(dst, m.item, m.from, m.index, piece)
	default:
		dst = a.appendArguments(dst, m.item, piece, false)
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
