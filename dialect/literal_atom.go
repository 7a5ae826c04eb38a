package dialect

import "strings"

// keyByte reports whether c is allowed in a key without quotes.
func keyByte(c byte) bool {
	switch c {
	case '{', '}', '[', ']', ',', ':', '=', '"', '\'', '\\', '<', '>':
		return false
	}
	return c > ' '
}

// bareKey reads one byte of a key without quotes, or the byte after it. Models write both `:` and `=` before the value.
func (l *literal) bareKey(c byte) {
	switch {
	case c == ':' || c == '=':
		l.put(`"`, 0)
		l.state = literalColon
	case keyByte(c) || c == '\'':
		l.i++
	case c == '"' || c == '\\':
		l.put(escaped(string(c)), 1)
	default:
		l.state = literalBad
	}
}

// value reads the first byte of a value.
func (l *literal) value(c byte) {
	switch {
	case c == '{' || c == '[':
		if !l.open(c) {
			l.state = literalBad
			return
		}
		l.state = literalFirst
		if c == '{' {
			l.state = literalKey
		}
		l.i++
	case c == '"' || c == '\'':
		l.openString(c)
	case l.bare && l.depth > 0:
		l.mark = l.i
		l.state = literalBare
	case c == '-' || '0' <= c && c <= '9':
		l.num.state, l.num.depth = jsonValue, 0
		l.state = literalNumber
	case wordRest(c) != "":
		l.state, l.word, l.none = literalWord, wordRest(c), c == 'N'
		switch c {
		case 'T':
			l.put("t", 1)
		case 'F':
			l.put("f", 1)
		case 'N':
			l.put("", 1)
		default:
			l.i++
		}
	default:
		l.state = literalBad
	}
}

// literalWord reads the next byte of true, false, null, True, False or None.
func (l *literal) literalWord(c byte) {
	if c != l.word[0] {
		if l.none {
			l.from = l.i
		}
		l.state = literalBad
		return
	}
	l.i++
	if l.word = l.word[1:]; l.word != "" {
		return
	}
	if l.none {
		l.from = l.i
		l.emit("null")
	}
	l.end()
}

// bareWord reads one byte of an unquoted value such as the word of {on:word}, or the comma or bracket after it.
func (l *literal) bareWord(c byte) {
	switch c {
	case ',', '}', ']':
		l.endBareWord()
	case '{', '[', '"', '\'', '\n':
		l.rejectHeld()
	default:
		if len(l.held)+l.i-l.mark >= maxBareBytes {
			l.rejectHeld()
			return
		}
		l.i++
	}
}

// endBareWord emits the unquoted value that ends before the next byte.
func (l *literal) endBareWord() {
	word := strings.TrimRight(string(l.held)+l.s[l.mark:l.i], " \n\t\r")
	if word == "" {
		l.rejectHeld()
		return
	}
	value := bareJSON(word)
	if value != word || len(l.held) > 0 { // else the word is emitted with the bytes around it
		l.flush(l.mark)
		l.emit(value)
		l.from = l.i
	}
	l.held = l.held[:0]
	l.end()
}

// bareJSON returns an unquoted value as JSON: a number, true, false and null unchanged, any other word as a string.
func bareJSON(word string) string {
	switch word {
	case "None", "<nil>": // templates in Go render null as <nil>
		return "null"
	case "True":
		return "true"
	case "False":
		return "false"
	}
	js := jsonScan{}
	if js.scan(word) == len(word) && js.whole() {
		return word
	}
	return quoteJSON(word)
}
