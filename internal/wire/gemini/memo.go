package gemini

import (
	"bytes"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// A memo stores the form of the last event that was one part with text. If the next event differs only in the text and in the
// usage, the assembler does not need to parse the rest.
type memo struct {
	known   bool
	thought bool

	// Of the event that is being read: the text of its part, its usage, the number of its parts, and whether it has anything else.
	text, usage []byte
	parts       int
	other       bool

	// before, between and after are the event without its text and usage; if usageFirst is set, the usage is before the text.
	before, between, after []byte
	hasUsage, usageFirst   bool
}

// read begins another event.
func (m *memo) read() {
	m.known, m.text, m.usage, m.parts, m.other = false, nil, nil, 0, false
}

// learn stores the form of the event data.
func (m *memo) learn(data []byte) {
	if m.parts != 1 || m.other || len(m.text) == 0 || m.text[0] != '"' {
		return
	}
	from := place(data, m.text)
	to := from + len(m.text)
	if from < 0 {
		return
	}
	if m.hasUsage = m.usage != nil; !m.hasUsage {
		m.before, m.after = append(m.before[:0], data[:from]...), append(m.after[:0], data[to:]...)
		m.known = true
		return
	}
	first := place(data, m.usage)
	last := first + len(m.usage)
	if first < 0 {
		return
	}
	if m.usageFirst = first < from; m.usageFirst {
		from, to, first, last = first, last, from, to
	}
	m.before = append(m.before[:0], data[:from]...)
	m.between = append(m.between[:0], data[to:first]...)
	m.after = append(m.after[:0], data[last:]...)
	m.known = true
}

// place returns the index of a value in the event; -1 if the value occurs more than once.
func place(data, value []byte) int {
	if i := bytes.Index(data, value); i == bytes.LastIndex(data, value) {
		return i
	}
	return -1
}

// match returns the text, a JSON string, and the usage of an event of the remembered form.
func (m *memo) match(data []byte) (text, usage []byte, ok bool) {
	if !m.known || !bytes.HasPrefix(data, m.before) {
		return nil, nil, false
	}
	end, err := rawjson.Scan(data, len(m.before))
	if err != nil {
		return nil, nil, false
	}
	text, data = data[len(m.before):end], data[end:]
	if m.hasUsage {
		if !bytes.HasPrefix(data, m.between) {
			return nil, nil, false
		}
		if end, err = rawjson.Scan(data, len(m.between)); err != nil {
			return nil, nil, false
		}
		usage, data = data[len(m.between):end], data[end:]
		if m.usageFirst {
			text, usage = usage, text
		}
		if usage[0] != '{' || rawjson.Check(usage, answerLimits) != nil {
			return nil, nil, false
		}
	}
	ok = text[0] == '"' && bytes.Equal(data, m.after) && rawjson.Check(text, answerLimits) == nil
	return text, usage, ok
}
