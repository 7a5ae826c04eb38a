package dialect

import (
	"bytes"
	"cmp"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
)

// A builtinCall reads calls in the form NAME.call(KEY=VALUE, …) with Python literals, which models write instead of JSON for tools that
// they were trained with. Only the name of an offered tool makes a call, because the same mark also precedes code.
type builtinCall struct {
	p      *jsonParser
	state  builtinState
	token  []byte // the name or key being read
	params parameters
	lit    literal
	wrote  bool // the text had at least one such call
}

type builtinState uint8

const (
	builtinName  builtinState = iota // in the name of the tool
	builtinKey                       // before an argument, or in its name
	builtinEq                        // after the name of an argument, before "="
	builtinValue                     // in the value of an argument
	builtinNext                      // after the value of an argument
	builtinEnd                       // after the closing parenthesis
)

func (b *builtinCall) init(p *jsonParser) {
	b.p = p
	b.lit.emit = p.args
}

// WritesArguments reports whether the parser has read arguments that were not JSON.
func (p *jsonParser) WritesArguments() bool { return p.builtin.wrote }

// begin starts a call at the name of its tool.
func (b *builtinCall) begin() {
	b.state, b.token = builtinName, b.token[:0]
	b.params.reset()
	b.p.errorCode = ""
}

// read reads the next part of the call: a part of a value, or one rune.
func (b *builtinCall) read() {
	p := b.p
	in := p.in[:b.checkLimit()]
	if b.state == builtinValue {
		b.keep(b.lit.scan(in))
		switch b.lit.state {
		case literalDone:
			b.state = builtinNext
		case literalBad:
			p.markUnreadable(cmp.Or(p.errorCode, lathe.CodePayloadParseError))
		}
		return
	}
	_, size := utf8.DecodeRuneInString(in)
	for i := range size {
		if !b.byte(in[i]) {
			p.markUnreadable(cmp.Or(p.errorCode, lathe.CodePayloadParseError))
			return
		}
	}
	b.keep(size)
	if b.state == builtinEnd {
		b.end()
	}
}

// checkLimit returns how many bytes of the input may be read at once. If the open call exceeds max_payload_bytes, it emits the text of the
// call as unreadable; the call is then read to its end without that limit.
func (b *builtinCall) checkLimit() int {
	p := b.p
	if !p.reader.open || p.errorCode != "" {
		return len(p.in)
	}
	n := runeCut(p.in, min(len(p.in), max(0, p.opts.MaxPayloadBytes-p.total)))
	if n == 0 {
		p.errorCode, p.unreadable = lathe.CodePayloadTooLarge, true
		p.prose.text(string(p.raw))
		p.shortenRaw()
		return len(p.in)
	}
	return n
}

// keep consumes n bytes of the input and records them as text of the call.
func (b *builtinCall) keep(n int) {
	p := b.p
	s := p.take(n)
	if p.errorCode != "" {
		p.emitUnreadable(s)
	} else {
		p.keep(s)
	}
}

// end closes the call, or emits its ParseError.
func (b *builtinCall) end() {
	p := b.p
	if p.errorCode != "" {
		p.reportUnreadable()
		return
	}
	p.args(b.params.end())
	p.unconfirmed = true
	p.confirm()
	p.state = blockNext
}

// byte reads one byte outside of a value. It returns false if the syntax does not allow the byte.
func (b *builtinCall) byte(c byte) bool {
	switch b.state {
	case builtinName:
		if c == '(' {
			return b.named()
		}
		return b.addToken(c) && isNameByte(c)
	case builtinKey:
		return b.keyByte(c)
	case builtinEq:
		return space(c) || c == '=' && b.param()
	case builtinNext:
		switch c {
		case ',':
			b.state, b.token = builtinKey, b.token[:0]
		case ')':
			b.state = builtinEnd
		default:
			return space(c)
		}
		return true
	}
	return false
}

// keyByte reads one byte before or in the name of an argument, or the byte after it.
func (b *builtinCall) keyByte(c byte) bool {
	switch {
	case space(c):
		if len(b.token) > 0 {
			b.state = builtinEq
		}
		return true
	case c == '=' && len(b.token) > 0:
		return b.param()
	case c == ')' && len(b.token) == 0:
		b.state = builtinEnd
		return true
	}
	return b.addToken(c) && (c >= utf8.RuneSelf || isNameByte(c) && c != '.' && c != ':')
}

// addToken appends c to the name or key being read. It returns false if that becomes too long.
func (b *builtinCall) addToken(c byte) bool {
	b.token = append(b.token, c)
	return len(b.token) <= maxNameBytes
}

// named opens the call of the tool in token. It returns false if token is not the name of an offered tool and ".call".
func (b *builtinCall) named() bool {
	name, ok := bytes.CutSuffix(b.token, []byte(".call"))
	if !ok || !b.p.knows(string(name)) {
		return false
	}
	b.p.object.name = append(b.p.object.name[:0], name...)
	b.p.opens()
	b.wrote = true
	b.state, b.token = builtinKey, b.token[:0]
	return true
}

// param begins the value of the argument whose name is in token. It returns false if the name is invalid or a duplicate.
func (b *builtinCall) param() bool {
	prefix, ok := b.params.add(b.token)
	if !ok {
		return false
	}
	b.p.args(prefix)
	b.lit.reset()
	b.state = builtinValue
	return true
}
