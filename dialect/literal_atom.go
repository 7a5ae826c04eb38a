package dialect

import "github.com/lathe-run/lathe/internal/rawjson"

// keyByte reports whether c is allowed in a key without quotes.
func keyByte(c byte) bool {
	switch c {
	case '{', '}', '[', ']', ',', ':', '=', '"', '\'', '\\', '<', '>':
		return false
	}
	return c > ' '
}

// value reads the first byte of a value.
func (l *literal) value(c byte) {
	switch {
	case l.state == literalBad:
	case c == '{' || c == '[':
		if !l.open(c == '{') {
			l.bad()
			return
		}
		l.state = literalFirst
		if c == '{' {
			l.state = literalKey
		}
		l.i++
	case c == '"' || c == '\'':
		l.openString(c, false)
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
		l.bad()
	}
}

// literalWord reads the next byte of true, false, null, True, False or None.
func (l *literal) literalWord(c byte) {
	if c != l.word[0] {
		if l.none {
			l.from = l.i
		}
		l.bad()
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

// bareWord reads the next part of an unquoted value, up to a comma or a bracket.
func (l *literal) bareWord(c byte) {
	switch c {
	case ',', '}', ']':
	case '{', '[', '"', '\'', '\n':
		l.drop()
		return
	default:
		if len(l.held)+l.i-l.mark >= maxBareBytes {
			l.drop()
			return
		}
		l.i++
		return
	}
	word := l.s[l.mark:l.i]
	whole := len(l.held) == 0
	if !whole {
		word = string(append(l.held, word...))
		l.held = l.held[:0]
	}
	for word != "" && space(word[len(word)-1]) {
		word = word[:len(word)-1]
	}
	number := jsonScan{}
	switch n := number.scan(word); {
	case word == "":
		l.drop()
		return
	case n == len(word) && number.whole():
		if whole {
			l.end()
			return
		}
	case word == "None", word == "<nil>": // templates in Go render null as <nil>
		word = "null"
	case word == "True":
		word = "true"
	case word == "False":
		word = "false"
	default:
		word = string(rawjson.AppendQuote(nil, word))
	}
	l.flush(l.mark)
	l.emit(word)
	l.from = l.i
	l.end()
}
