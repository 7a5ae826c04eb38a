package dialect

const (
	maxCommaBytes = 1024 // maximal length of a comma and the white space after it
	maxBareBytes  = 256  // maximal length of an unquoted value where strings are allowed
)

// A literal reads one value in pieces, as models write it in calls, and emits it as JSON. It accepts JSON, which it emits unchanged, and
// Python's strings, numbers, True, False, None, lists and dicts with strings as keys. It omits a comma before a closing bracket:
//
//	{'on': True, "list": [1, 2,]}    becomes    {"on": true, "list": [1, 2]}
//
// If bare is true, it reads the brace syntax of Gemma: keys without quotes, strings between marks (the caller passes the marks to
// stringMark), and unquoted words, which become strings if not literals:
//
//	{on:true,name:<|"|>a b<|"|>}    becomes    {"on":true,"name":"a b"}
//
// The input is emitted as late as possible: s[from:i] is what the piece s has that was read and not emitted. A byte that is replaced or
// omitted first flushes what precedes it.
type literal struct {
	emit func(string) // receives the next piece of the JSON, which is a part of the input or a constant
	bare bool

	state  literalState
	levels      // dicts and lists
	key    bool // the string being read is a key
	quote  byte // the quote that ends the string; unused between marks
	triple bool
	ends   int      // number of consecutive quotes read in a triple-quoted string
	num    jsonScan // scanner of a number
	word   string   // the rest of True, False or None that must follow
	none   bool     // the word is None
	hex    int      // number of digits missing in an escape
	code   rune     // the value of an escape so far
	held   []byte   // a comma and the white space after it, or an unquoted word, from earlier pieces

	s    string // the piece being read
	i    int    // offset in s of the next byte
	from int    // offset in s of the first byte that was not emitted
	mark int    // offset in s of the beginning of the escape, the comma or the word
}

type literalState uint8

const (
	literalValue literalState = iota // a value must follow
	literalFirst                     // a value or ] must follow
	literalNext                      // after a comma: a value or ] must follow
	literalKey                       // a key or } must follow
	literalNextKey
	literalColon
	literalAfter  // a comma or the end of the list or dict
	literalQuote  // after the quote that opens a string
	literalQuotes // after two opening quotes: an empty string, or the third quote of a triple-quoted one
	literalString
	literalRaw // in a string between marks
	literalEscape
	literalHex   // \u and four hexadecimal digits, which are emitted unchanged
	literalByte  // \xXX, whose digits are emitted unchanged
	literalRune  // \U and eight hexadecimal digits
	literalOctal // \ooo
	literalNumber
	literalWord
	literalBare    // in an unquoted value
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

// scan reads the beginning of s and returns the number of bytes read. It stops before the end of s if the value is complete or invalid.
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
		l.held = append(l.held, s[l.mark:l.i]...)
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

// finish ends the text and reports whether the value is complete.
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

// flush emits the bytes read up to offset i.
func (l *literal) flush(i int) {
	if l.from < i {
		l.emit(string([]rune(l.s[l.from:i]))) // each byte that is not UTF-8 becomes U+FFFD
	}
	l.from = i
}

// put emits text instead of the next n bytes.
func (l *literal) put(text string, n int) {
	l.flush(l.i)
	if text != "" {
		l.emit(text)
	}
	l.i += n
	l.from = l.i
}

// step reads at c, the byte at offset i.
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
			l.close(c)
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
			l.close(c)
		case c == '"' || c == '\'':
			l.emitGap()
			l.openString(c)
		case l.bare && keyByte(c):
			l.emitGap()
			l.put(`"`, 0)
			l.state = literalBareKey
		case l.state == literalNextKey:
			l.rejectHeld()
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
			l.put(escaped(string(c)), 1)
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

// separates reports whether c separates an unquoted key from its value; models write both `:` and `=`.
func separates(c byte) bool { return c == ':' || c == '=' }

// colon reads one byte between a key and its value.
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

// blank reads one byte of white space before a value or a key. More than maxCommaBytes make the value invalid.
func (l *literal) blank() {
	if (l.state == literalNext || l.state == literalNextKey) && len(l.held)+l.i-l.mark >= maxCommaBytes {
		l.rejectHeld()
		return
	}
	l.i++
}

// rejectHeld discards the buffered bytes and marks the value as invalid.
func (l *literal) rejectHeld() {
	l.flush(l.mark)
	l.from = l.i
	l.bad()
}

// emitGap emits the buffered comma and white space, because a value follows.
func (l *literal) emitGap() {
	if len(l.held) > 0 {
		l.emit(string(l.held))
		l.held = l.held[:0]
	}
}

// dropGap discards the comma before a closing bracket.
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

// after reads one byte after a value in a list or dict.
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
		l.close(c)
	case l.bare && l.inObject() && (isLetter(c) || c == '_'):
		// Small models omit the comma after a string.
		l.put(",", 0)
		l.state = literalKey
	default:
		l.bad()
	}
}

// close ends the innermost list or dict at bracket, '}' or ']'.
func (l *literal) close(bracket byte) {
	if l.state == literalBad || l.inObject() != (bracket == '}') {
		l.bad()
		return
	}
	l.i++
	l.depth--
	l.end()
}

// end sets the state after a complete value.
func (l *literal) end() {
	l.state = literalAfter
	if l.depth == 0 {
		l.state = literalDone
	}
}
