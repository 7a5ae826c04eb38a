package dialect

import "unicode/utf8"

// openString begins a string, of a key or a value, at its opening quote.
func (l *literal) openString(quote byte) {
	if l.state == literalBad {
		return
	}
	l.key = l.state == literalKey || l.state == literalNextKey
	l.quote, l.triple, l.ends = quote, false, 0
	if quote == '"' {
		l.i++
	} else {
		l.put(`"`, 1)
	}
	l.state = literalQuote
}

// stringMark handles a mark that surrounds strings in the brace syntax. It returns false if the mark is part of a string in quotes.
func (l *literal) stringMark() bool {
	l.s, l.i, l.from, l.mark = "", 0, 0, 0
	switch l.state {
	case literalRaw:
		l.emit(`"`)
		l.endString()
	case literalValue, literalFirst, literalNext, literalKey, literalNextKey:
		l.key = l.state == literalKey || l.state == literalNextKey
		if l.depth == 0 {
			l.bad()
			return true
		}
		l.emitGap()
		if l.state != literalBad {
			l.emit(`"`)
			l.state = literalRaw
		}
	default:
		if l.inString() {
			return false
		}
		l.bad()
	}
	return true
}

func (l *literal) endString() {
	if l.key {
		l.state = literalColon
		return
	}
	l.end()
}

// raw reads the text of a string between marks, which has no escapes.
func (l *literal) raw() {
	l.i += plainRun(l.s[l.i:])
	if l.i < len(l.s) {
		l.put(escaped(l.s[l.i:l.i+1]), 1)
	}
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

// escape reads the byte after a backslash, or after the first or second quote of a string.
func (l *literal) escape(c byte) {
	switch l.state {
	case literalQuote:
		l.state = literalString
		if c == l.quote {
			l.put("", 1)
			l.state = literalQuotes
		}
	case literalQuotes:
		if c == l.quote {
			l.triple = true
			l.put("", 1)
			l.state = literalString
			return
		}
		l.emit(`"`)
		l.endString()
	case literalEscape:
		l.escapedByte(c)
	case literalHex, literalByte, literalRune:
		d, ok := hexDigit(c)
		if !ok {
			l.bad()
			return
		}
		l.i++
		l.code = l.code<<4 | d
		if l.hex--; l.hex > 0 {
			if l.state == literalRune {
				l.from = l.i
			}
			return
		}
		if l.state == literalRune {
			l.from = l.i
			if !utf8.ValidRune(l.code) {
				l.bad()
				return
			}
			l.emit(escaped(string(l.code)))
		}
		l.state = literalString
	case literalOctal:
		if '0' <= c && c <= '7' && l.hex > 0 {
			l.code = l.code<<3 | rune(c-'0')
			l.hex--
			l.i++
			l.from = l.i
			return
		}
		l.emit(escaped(string(l.code)))
		l.state = literalString
	}
}

// escapedByte reads the byte after a backslash. Escapes of JSON are emitted unchanged.
func (l *literal) escapedByte(c byte) {
	split := l.mark == l.i // the backslash was the last byte of the piece before
	l.state = literalString
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't', 'u':
		if split {
			l.emit(`\`)
		}
		if l.i++; c == 'u' {
			l.state, l.hex, l.code = literalHex, 4, 0
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
		l.state, l.hex, l.code = literalByte, 2, 0
	case 'U':
		l.put("", 1)
		l.state, l.hex, l.code = literalRune, 8, 0
	case '0', '1', '2', '3', '4', '5', '6', '7':
		l.state, l.hex, l.code = literalOctal, 3, 0
	default: // in Python a backslash before another byte is text
		l.emit(`\\`)
	}
}

func hexDigit(c byte) (rune, bool) {
	switch {
	case '0' <= c && c <= '9':
		return rune(c - '0'), true
	case 'a' <= lower(c) && lower(c) <= 'f':
		return rune(lower(c)-'a') + 10, true
	}
	return 0, false
}
