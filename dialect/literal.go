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
type literal struct {
	rewriter
	bare bool

	state  literalState
	levels      // dicts and lists
	key    bool // the string being read is a key
	quote  byte // the quote that ends the string; unused between marks
	triple bool
	ends   int      // number of consecutive quotes read in a triple-quoted string, which may end it
	num    jsonScan // scanner of a number
	word   string   // the rest of True, False or None that must follow
	none   bool     // the word is None
	digits int      // number of digits missing in an escape
	code   rune     // the value of an escape so far
}

// A rewriter emits the input with changes, as late as possible. The bytes s[:from] of the piece s were emitted, replaced or omitted, and
// s[from:i] were read and not emitted yet. A byte that is replaced or omitted first flushes what precedes it.
//
// What becomes of a comma, an unquoted word or a backslash depends on later bytes. It begins at mark, and ends at i while it is read. If it
// is not complete at the end of the piece, the comma or the word is moved to held, and continues at offset 0 of the next piece.
type rewriter struct {
	emit func(string) // receives the next piece of the output, which is a part of the input or a constant
	s    string       // the piece being read
	i    int          // offset in s of the next byte
	from int          // offset in s of the first byte that was not emitted
	mark int          // offset in s of the beginning of the escape, the comma or the word; 0 if it began in an earlier piece
	held []byte       // what earlier pieces have of the comma and the white space after it, or of the unquoted word
}

// flush emits the bytes read up to offset i.
func (r *rewriter) flush(i int) {
	if r.from < i {
		r.emit(string([]rune(r.s[r.from:i]))) // each byte that is not UTF-8 becomes U+FFFD
	}
	r.from = i
}

// put emits text instead of the next n bytes.
func (r *rewriter) put(text string, n int) {
	r.flush(r.i)
	if text != "" {
		r.emit(text)
	}
	r.i += n
	r.from = r.i
}

// emitHeld emits the buffered comma and white space, because a value follows.
func (r *rewriter) emitHeld() {
	if len(r.held) > 0 {
		r.emit(string(r.held))
		r.held = r.held[:0]
	}
}

// dropHeld discards the comma and the white space after it, or the unquoted word: the buffered bytes and those from mark on.
func (r *rewriter) dropHeld() {
	r.flush(r.mark)
	r.held = r.held[:0]
	r.from = r.i
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
	case literalEscape: // escape emits the backslash if the next byte shows that it stays
		l.flush(l.mark)
	case literalNext, literalNextKey, literalBare: // later bytes decide how the comma or the word is emitted
		l.flush(l.mark)
		l.held = append(l.held, s[l.mark:l.i]...)
	case literalWord:
		if !l.none { // None is omitted, and literalWord emits null at its end
			l.flush(l.i)
		}
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

// step reads at c, the byte at offset i.
func (l *literal) step(c byte) {
	switch l.state {
	case literalString:
		l.text()
	case literalRaw:
		l.i += plainRun(l.s[l.i:])
		if l.i < len(l.s) {
			l.put(escaped(l.s[l.i:l.i+1]), 1)
		}
	case literalValue, literalFirst, literalNext:
		l.beforeValue(c)
	case literalKey, literalNextKey:
		l.beforeKey(c)
	case literalBareKey:
		l.bareKey(c)
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
			l.state = literalBad
		}
	case literalWord:
		l.literalWord(c)
	case literalBare:
		l.bareWord(c)
	case literalQuote:
		l.state = literalString
		if c == l.quote {
			l.put("", 1)
			l.state = literalQuotes
		}
	case literalQuotes:
		l.afterQuotes(c)
	case literalEscape:
		l.escape(c)
	case literalHex, literalByte, literalRune:
		l.hexDigit(c)
	case literalOctal:
		l.octalDigit(c)
	}
}

// beforeValue reads one byte before a value, or the first of the value.
func (l *literal) beforeValue(c byte) {
	switch {
	case space(c):
		l.blank()
		if l.depth == 0 {
			l.from = l.i
		}
	case c == ']' && l.state != literalValue && l.depth > 0:
		l.close(c)
	default:
		l.emitHeld()
		l.value(c)
	}
}

// beforeKey reads one byte before a key, or the first of the key.
func (l *literal) beforeKey(c byte) {
	switch {
	case space(c):
		l.blank()
	case c == '}':
		l.close(c)
	case c == '"' || c == '\'':
		l.emitHeld()
		l.openString(c)
	case l.bare && keyByte(c):
		l.emitHeld()
		l.put(`"`, 0)
		l.state = literalBareKey
	case l.state == literalNextKey:
		l.rejectHeld()
	default:
		l.state = literalBad
	}
}

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
		l.state = literalBad
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

// rejectHeld discards the comma or the word, as dropHeld does, and marks the value as invalid.
func (l *literal) rejectHeld() {
	l.dropHeld()
	l.state = literalBad
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
		l.state = literalBad
	}
}

// close ends the innermost list or dict at bracket, '}' or ']'. A comma before it is omitted.
func (l *literal) close(bracket byte) {
	if l.state == literalNext || l.state == literalNextKey { // else no comma precedes the bracket
		l.dropHeld()
	}
	if l.inObject() != (bracket == '}') {
		l.state = literalBad
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
