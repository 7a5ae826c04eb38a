package openai

import "github.com/lathe-run/lathe/internal/rawjson"

// A span is a part of the line that is being walked: a value, with its quotes if it is a string.
// The zero span is none: a line starts with a brace.
type span struct{ lo, hi int }

func (s span) ok() bool { return s.hi > 0 }

// A walker takes a chunk or a whole completion apart, in one pass over its bytes: it holds the
// whole line to JSON's grammar and remembers where the members lie that count. Of a member that
// comes twice in one object the last counts.
type walker struct {
	b    []byte
	dups int // members that came twice
	// badCalls counts values of a wrong type: tool_calls itself, or elements of it.
	badCalls int

	id, model, usage, xgroq, failure, object span
	hasChoices                               bool
	extraChoices                             int

	taken bool // a choice was taken
	choice
}

// A choice is what counts of the first choice.
type choice struct {
	index, finish, choiceUsage, choiceError span
	hasDelta, whole, emptyDelta             bool
	content, refusal, role                  span
	hasLegacy                               bool
	legacy                                  piece // function_call
	reasoning                               [len(reasoningFields)]span
	pieces                                  []piece
	extra                                   []extraMember
}

// reasoningFields are the members that servers send reasoning in, the likeliest first.
var reasoningFields = [...]string{"reasoning_content", "reasoning", "thinking"}

// A piece is one element of tool_calls.
type piece struct {
	index, id, typ, name, args span
	extraLo, extraHi           int // in choice.extra
}

type extraMember struct {
	key    string
	value  span
	ofCall bool
}

// level says which object a member belongs to.
type level uint8

const (
	inTop level = iota
	inChoice
	inDelta
	inCall
	inFunction
	inLegacy
)

// walk takes the line b apart. It reports whether b is one JSON object of the known shape; only
// then may the spans be used.
func (w *walker) walk(b []byte) bool {
	pieces, extra := w.pieces[:0], w.extra[:0]
	*w = walker{b: b}
	w.pieces, w.extra = pieces, extra
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '{' {
		return false
	}
	if i = w.members(i, inTop); i < 0 {
		return false
	}
	return rawjson.SkipSpace(b, i) == len(b)
}

// members walks the object that opens at b[i] and returns its end, -1 for what is none.
func (w *walker) members(i int, lv level) int {
	b := w.b
	var seen uint16
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1
	}
	for i < len(b) && b[i] == '"' {
		end, plain := stringEnd(b, i+1)
		if end < 0 {
			return -1
		}
		key := b[i+1 : end]
		if !plain {
			key = unquoted(b[i : end+1])
		}
		i = skipSpace(b, end+1)
		if i >= len(b) || b[i] != ':' {
			return -1
		}
		i = skipSpace(b, i+1)
		var bit uint16
		switch lv {
		case inTop:
			i, bit = w.top(key, i)
		case inChoice:
			i, bit = w.inChoice(key, i)
		case inDelta:
			i, bit = w.inDelta(key, i)
		case inCall:
			i, bit = w.inCall(key, i)
		case inFunction:
			i, bit = w.inFunction(key, i, w.last())
		case inLegacy:
			i, bit = w.inFunction(key, i, &w.legacy)
		}
		if i < 0 {
			return -1
		}
		if seen&bit != 0 {
			w.dups++
		}
		seen |= bit
		i = skipSpace(b, i)
		if i >= len(b) {
			return -1
		}
		if b[i] == '}' {
			return i + 1
		}
		if b[i] != ',' {
			return -1
		}
		i = skipSpace(b, i+1)
	}
	return -1
}

// elements walks the array that opens at b[i] with each.
func (w *walker) elements(i int, each func(*walker, int) int) int {
	b := w.b
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == ']' {
		return i + 1
	}
	for {
		if i = each(w, i); i < 0 {
			return -1
		}
		i = skipSpace(b, i)
		if i >= len(b) {
			return -1
		}
		if b[i] == ']' {
			return i + 1
		}
		if b[i] != ',' {
			return -1
		}
		i = skipSpace(b, i+1)
	}
}

// value remembers the value at b[i] in s and returns its end. null is none.
func (w *walker) value(i int, s *span) int {
	end := valueEnd(w.b, i)
	if end > 0 && w.b[i] != 'n' {
		*s = span{i, end}
	} else {
		*s = span{}
	}
	return end
}

func (w *walker) at(i int, c byte) bool { return i < len(w.b) && w.b[i] == c }

func (w *walker) top(key []byte, i int) (end int, bit uint16) {
	switch string(key) {
	case "choices":
		if w.hasChoices {
			w.resetChoice()
			w.taken, w.extraChoices = false, 0
		}
		w.hasChoices = true
		if w.at(i, '[') {
			return w.elements(i, (*walker).element), 1
		}
		w.hasChoices = false
		return valueEnd(w.b, i), 1
	case "id":
		return w.value(i, &w.id), 2
	case "model":
		return w.value(i, &w.model), 4
	case "usage":
		return w.value(i, &w.usage), 8
	case "error":
		return w.value(i, &w.failure), 16
	case "object":
		return w.value(i, &w.object), 32
	case "x_groq":
		return w.value(i, &w.xgroq), 64
	}
	return valueEnd(w.b, i), 0
}

func (w *walker) resetChoice() { w.choice = choice{pieces: w.pieces[:0], extra: w.extra[:0]} }

// element walks one element of choices. The first whose index is 0 or not said is taken.
func (w *walker) element(i int) int {
	if w.taken || !w.at(i, '{') {
		w.extraChoices++
		return valueEnd(w.b, i)
	}
	end := w.members(i, inChoice)
	if end < 0 {
		return end
	}
	if s := w.index; s.ok() && string(w.b[s.lo:s.hi]) != "0" && string(w.b[s.lo:s.hi]) != `"0"` {
		w.resetChoice()
		w.extraChoices++
		return end
	}
	w.taken = true
	return end
}

func (w *walker) inChoice(key []byte, i int) (end int, bit uint16) {
	switch string(key) {
	case "delta":
		if w.at(i, '{') {
			w.resetDelta(false)
			end = w.members(i, inDelta)
			w.emptyDelta = end > 0 && skipSpace(w.b, i+1) == end-1
			return end, 1
		}
		return valueEnd(w.b, i), 1
	case "message":
		if w.at(i, '{') && (!w.hasDelta || w.whole) {
			w.resetDelta(true)
			return w.members(i, inDelta), 2
		}
		return valueEnd(w.b, i), 2
	case "index":
		return w.value(i, &w.index), 4
	case "finish_reason":
		return w.value(i, &w.finish), 8
	case "usage":
		return w.value(i, &w.choiceUsage), 16
	case "error":
		return w.value(i, &w.choiceError), 32
	}
	return valueEnd(w.b, i), 0
}

func (w *walker) resetDelta(whole bool) {
	c := &w.choice
	if !c.hasDelta {
		c.hasDelta, c.whole = true, whole
		return
	}
	w.choice = choice{index: c.index, finish: c.finish, choiceUsage: c.choiceUsage, choiceError: c.choiceError,
		hasDelta: true, whole: whole, pieces: c.pieces[:0], extra: c.extra[:0]}
}

func (w *walker) inDelta(key []byte, i int) (end int, bit uint16) {
	switch string(key) {
	case "content":
		return w.value(i, &w.content), 1
	case "tool_calls":
		w.pieces = w.pieces[:0]
		if w.at(i, '[') {
			return w.elements(i, (*walker).call), 2
		}
		if w.at(i, '{') {
			return w.call(i), 2
		}
		if !w.at(i, 'n') {
			w.badCalls++
		}
		return valueEnd(w.b, i), 2
	case "reasoning_content":
		return w.value(i, &w.reasoning[0]), 4
	case "reasoning":
		return w.value(i, &w.reasoning[1]), 8
	case "thinking":
		return w.value(i, &w.reasoning[2]), 16
	case "refusal":
		return w.value(i, &w.refusal), 32
	case "function_call":
		w.legacy, w.hasLegacy = piece{}, w.at(i, '{')
		if w.hasLegacy {
			return w.members(i, inLegacy), 64
		}
		return valueEnd(w.b, i), 64
	case "role":
		return w.value(i, &w.role), 128
	case "index", "name":
		return valueEnd(w.b, i), 0
	}
	return w.extraMember(key, i, false), 0
}

func (w *walker) extraMember(key []byte, i int, ofCall bool) int {
	var s span
	end := w.value(i, &s)
	if s.ok() {
		w.extra = append(w.extra, extraMember{string(key), s, ofCall})
	}
	return end
}

// call walks one element of tool_calls.
func (w *walker) call(i int) int {
	if !w.at(i, '{') {
		w.badCalls++
		return valueEnd(w.b, i)
	}
	w.pieces = append(w.pieces, piece{extraLo: len(w.extra)})
	end := w.members(i, inCall)
	w.last().extraHi = len(w.extra)
	return end
}

func (w *walker) last() *piece { return &w.pieces[len(w.pieces)-1] }

func (w *walker) inCall(key []byte, i int) (end int, bit uint16) {
	p := w.last()
	switch string(key) {
	case "index":
		return w.value(i, &p.index), 1
	case "id":
		return w.value(i, &p.id), 2
	case "type":
		return w.value(i, &p.typ), 4
	case "function":
		if w.at(i, '{') {
			p.name, p.args = span{}, span{}
			return w.members(i, inFunction), 8
		}
		return valueEnd(w.b, i), 8
	case "name":
		return w.value(i, &p.name), 16
	case "arguments":
		return w.value(i, &p.args), 32
	}
	return w.extraMember(key, i, true), 0
}

func (w *walker) inFunction(key []byte, i int, p *piece) (end int, bit uint16) {
	switch string(key) {
	case "name":
		return w.value(i, &p.name), 1
	case "arguments":
		return w.value(i, &p.args), 2
	}
	return valueEnd(w.b, i), 0
}

// unquoted returns the text of a string literal.
func unquoted(quoted []byte) []byte { return rawjson.AppendUnquoteLossy(nil, quoted) }
