package dialect

import "unicode/utf8"

// openString begins a string, of a key or a value, at its opening quote.
func (l *literal) openString(quote byte) {
	l.key = l.state == literalKey || l.state == literalNextKey
	l.quote, l.triple, l.ends = quote, false, 0
	if quote == '"' {
		l.i++
	} else {
		l.put(`"`, 1)
	}
	l.state = literalQuote
}

// stringMark reads a mark that surrounds strings in the brace syntax, outside of a string in quotes.
func (l *literal) stringMark() {
	l.s, l.i, l.from, l.mark = "", 0, 0, 0
	switch l.state {
	case literalRaw:
		l.emit(`"`)
		l.endString()
	case literalValue, literalFirst, literalNext, literalKey, literalNextKey:
		if l.depth == 0 {
			l.state = literalBad
			return
		}
		l.key = l.state == literalKey || l.state == literalNextKey
		l.emitHeld()
		l.emit(`"`)
		l.state = literalRaw
	default:
		l.state = literalBad
	}
}

// endString sets the state after a complete string.
func (l *literal) endString() {
	if l.key {
		l.state = literalColon
		return
	}
	l.end()
}

// text reads the text of a string in quotes.
func (l *literal) text() {
	if l.ends == 0 {
		l.i += plainRunTo(l.s[l.i:], l.quote)
		if l.i == len(l.s) {
			return
		}
	}
	c := l.s[l.i]
	switch {
	case c == l.quote && l.triple && l.ends < 2:
		l.put("", 1)
		l.ends++
	case c == l.quote:
		if l.quote == '"' && !l.triple {
			l.i++
		} else {
			l.put(`"`, 1)
		}
		l.endString()
	case l.ends > 0:
		for ; l.ends > 0; l.ends-- {
			l.emit(escaped(string(l.quote)))
		}
	case c == '\\':
		l.mark = l.i
		l.i++
		l.state = literalEscape
	default:
		l.put(escaped(string(c)), 1)
	}
}

// afterQuotes reads the byte after two opening quotes: an empty string, or the beginning of a triple-quoted one.
func (l *literal) afterQuotes(c byte) {
	if c == l.quote {
		l.triple = true
		l.put("", 1)
		l.state = literalString
		return
	}
	l.emit(`"`)
	l.endString()
}

// escape reads the byte after a backslash. Escapes of JSON are emitted unchanged.
func (l *literal) escape(c byte) {
	split := l.mark == l.i // the backslash was the last byte of the piece before
	l.state = literalString
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't', 'u':
		if split {
			l.emit(`\`)
		}
		l.i++
		if c == 'u' {
			l.state, l.digits = literalHex, 4
		}
		return
	}
	l.flush(l.mark)
	l.from = l.i
	switch c {
	case '\'':
		l.i++
	case '\n':
		l.put("", 1)
	case 'a':
		l.put(`\u0007`, 1)
	case 'v':
		l.put(`\u000b`, 1)
	case 'x':
		l.put(`\u00`, 1)
		l.state, l.digits = literalByte, 2
	case 'U':
		l.put("", 1)
		l.state, l.digits, l.code = literalRune, 8, 0
	case '0', '1', '2', '3', '4', '5', '6', '7':
		l.state, l.digits, l.code = literalOctal, 3, 0
	default: // in Python a backslash before another byte is text
		l.emit(`\\`)
	}
}

// hexDigit reads a hexadecimal digit of an escape.
func (l *literal) hexDigit(c byte) {
	digit, ok := hexValue(c)
	if !ok {
		l.state = literalBad
		return
	}
	l.i++
	l.digits--
	if l.state == literalRune {
		l.from = l.i
		l.code = l.code<<4 | digit
		if l.digits == 0 && !utf8.ValidRune(l.code) {
			l.state = literalBad
			return
		}
	}
	if l.digits > 0 {
		return
	}
	if l.state == literalRune {
		l.emit(escaped(string(l.code)))
	}
	l.state = literalString
}

// octalDigit reads an octal digit of an escape, which has one to three, or the byte after it.
func (l *literal) octalDigit(c byte) {
	if '0' <= c && c <= '7' && l.digits > 0 {
		l.code = l.code<<3 | rune(c-'0')
		l.digits--
		l.i++
		l.from = l.i
		return
	}
	l.emit(escaped(string(l.code)))
	l.state = literalString
}

func hexValue(c byte) (rune, bool) {
	switch {
	case '0' <= c && c <= '9':
		return rune(c - '0'), true
	case 'a' <= lower(c) && lower(c) <= 'f':
		return rune(lower(c)-'a') + 10, true
	}
	return 0, false
}
