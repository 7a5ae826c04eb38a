package dialect

const (
	maxCommaBytes = 1024 // of a comma and the white space after it
	maxBareBytes  = 256  // of a value that stands without quotes where strings may
)

// A literal reads one value that comes in pieces, as models write it in their calls, and says it
// as JSON: JSON itself, character for character, and Python's strings, numbers, True, False, None,
// lists and dicts with strings for keys. A comma before a closing bracket is left out.
//
// With bare set it reads the brace syntax of Gemma: keys without quotes, strings between marks,
// which come by way of mark, and words that are no literals taken as strings.
type literal struct {
	emit func(string) // the next piece of the JSON; what it is given is a part of the text or constant
	bare bool

	state  literalState
	depth  int
	object [maxJSONDepth / 64]uint64 // one bit a level: dict or list
	key    bool                      // the string being read is a key
	quote  byte                      // that ends the string; 0: a mark does
	triple bool
	ends   int      // quotes read in a row inside of a triple string
	num    jsonScan // of a number
	word   string   // what is missing of True, False, None
	none   bool     // the word is None
	hex    int      // digits missing of an escape
	code   rune     // the value of an escape
	held   []byte   // a comma and white space after it, or a bare word

	s    string // the piece being read
	i    int    // where
	from int    // what is not said yet begins here
	mark int    // where in s the escape, the gap or the word begins
}

type literalState uint8

const (
	literalValue literalState = iota // a value must come
	literalFirst                     // a value or ]
	literalNext                      // after a comma: a value or ]
	literalKey                       // a key or }
	literalNextKey
	literalColon
	literalAfter  // a comma or the end of the list or dict
	literalQuote  // after the quote that opens a string
	literalQuotes // after two of them
	literalString
	literalRaw // between marks
	literalEscape
	literalHex   // \uXXXX, whose digits pass
	literalByte  // \xXX, whose digits pass
	literalRune  // \UXXXXXXXX
	literalOctal // \ooo
	literalNumber
	literalWord
	literalBare    // a word that may be anything
	literalBareKey // a key without quotes
	literalDone
	literalBad
)

func (l *literal) reset() {
	l.state, l.depth, l.held = literalValue, 0, l.held[:0]
}

// inString reports whether the next byte belongs to a string.
func (l *literal) inString() bool {
	return l.state >= literalQuote && l.state <= literalOctal && l.state != literalQuotes
}

// scan reads the front of s and returns how much. It stops early when the value is whole or broken.
func (l *literal) scan(s string) int {
	l.s, l.i, l.from, l.mark = s, 0, 0, 0
	for l.i < len(s) && l.state < literalDone {
		l.step(s[l.i])
	}
	switch l.state {
	case literalEscape:
		l.flush(l.mark)
	case literalNext, literalNextKey, literalBare:
		l.flush(l.mark)
		l.buffer(s[l.mark:l.i])
	case literalWord:
		if l.none {
			l.from = l.i
		}
		l.flush(l.i)
	case literalQuotes:
	default:
		l.flush(l.i)
	}
	l.s = ""
	return l.i
}

// finish ends the text and reports whether the value is whole.
func (l *literal) finish() bool {
	switch l.state {
	case literalNumber:
		return l.depth == 0 && l.num.whole()
	case literalQuotes:
		l.emit(`"`)
		return l.depth == 0
	}
	return l.state == literalDone
}

func (l *literal) bad() { l.state = literalBad }

// flush says what was read up to i.
func (l *literal) flush(i int) {
	if l.from < i {
		emitUTF8(l.emit, l.s[l.from:i])
	}
	l.from = i
}

// put says text in place of the n bytes that come next.
func (l *literal) put(text string, n int) {
	l.flush(l.i)
	if text != "" {
		l.emit(text)
	}
	l.i += n
	l.from = l.i
}

// buffer keeps s, which its piece ends in.
func (l *literal) buffer(s string) { l.held = append(l.held, s...) }

func (l *literal) step(c byte) {
	switch l.state {
	case literalString:
		l.text()
	case literalRaw:
		l.raw()
	case literalValue, literalFirst, literalNext:
		switch {
		case space(c):
			l.blank()
			if l.depth == 0 {
				l.from = l.i
			}
		case c == ']' && l.state != literalValue && l.depth > 0:
			l.dropGap()
			l.close(false)
		default:
			l.emitGap()
			l.value(c)
		}
	case literalKey, literalNextKey:
		switch {
		case space(c):
			l.blank()
		case c == '}':
			l.dropGap()
			l.close(true)
		case c == '"' || c == '\'':
			l.emitGap()
			l.open(c, true)
		case l.bare && keyByte(c):
			l.emitGap()
			l.put(`"`, 0)
			l.state = literalBareKey
		case l.state == literalNextKey:
			l.drop()
		default:
			l.bad()
		}
	case literalBareKey:
		switch {
		case separates(c):
			l.put(`"`, 0)
			l.state = literalColon
		case keyByte(c) || c == '\'':
			l.i++
		case c == '"' || c == '\\':
			l.put(escapes[c], 1)
		default:
			l.bad()
		}
	case literalColon:
		l.colon(c)
	case literalAfter:
		l.after(c)
	case literalNumber:
		l.i += l.num.scan(l.s[l.i:])
		switch l.num.state {
		case jsonDone:
			l.end()
		case jsonBad:
			l.bad()
		}
	case literalWord:
		l.literalWord(c)
	case literalBare:
		l.bareWord(c)
	default:
		l.escape(c)
	}
}

// separates reports whether c stands between a key without quotes and its value: the same model writes both.
func separates(c byte) bool { return c == ':' || c == '=' }

// colon reads what stands between a key and its value.
func (l *literal) colon(c byte) {
	switch {
	case c == ':':
		l.i++
		l.state = literalValue
	case c == '=' && l.bare:
		l.put(":", 1)
		l.state = literalValue
	case space(c):
		l.i++
	default:
		l.bad()
	}
}

// blank reads white space before a value or a key.
func (l *literal) blank() {
	if (l.state == literalNext || l.state == literalNextKey) && len(l.held)+l.i-l.mark >= maxCommaBytes {
		l.drop()
		return
	}
	l.i++
}

// drop leaves out what is buffered, which is broken.
func (l *literal) drop() {
	l.flush(l.mark)
	l.from = l.i
	l.bad()
}

// emitGap says the comma and the white space before a value.
func (l *literal) emitGap() {
	if len(l.held) == 0 {
		return
	}
	switch gap := string(l.held); gap {
	case ",":
		l.emit(",")
	case ", ":
		l.emit(", ")
	default:
		l.emit(gap)
	}
	l.held = l.held[:0]
}

// dropGap leaves out the comma before a closing bracket.
func (l *literal) dropGap() {
	if l.state != literalNext && l.state != literalNextKey {
		return
	}
	if len(l.held) == 0 {
		l.flush(l.mark)
	}
	l.held = l.held[:0]
	l.from = l.i
}

func (l *literal) after(c byte) {
	switch {
	case space(c):
		l.i++
	case c == ',':
		l.mark = l.i
		l.i++
		l.state = literalNext
		if l.inObject() {
			l.state = literalNextKey
		}
	case c == ']' || c == '}':
		l.close(c == '}')
	case l.bare && l.inObject() && (isLetter(c) || c == '_'):
		// Small models leave the comma out after a string.
		l.put(",", 0)
		l.state = literalKey
	default:
		l.bad()
	}
}

func (l *literal) inObject() bool {
	return l.object[(l.depth-1)/64]&(1<<((l.depth-1)%64)) != 0
}

func (l *literal) close(object bool) {
	if l.state == literalBad || l.inObject() != object {
		l.bad()
		return
	}
	l.i++
	l.depth--
	l.end()
}

// end ends a value.
func (l *literal) end() {
	l.state = literalAfter
	if l.depth == 0 {
		l.state = literalDone
	}
}
