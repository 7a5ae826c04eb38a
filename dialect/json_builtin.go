package dialect

import (
	"bytes"
	"cmp"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
)

// A builtinCall reads what models write in place of JSON for tools that they were trained with:
// NAME.call(KEY=VALUE, …), with Python's literals. Only a tool that was offered makes a call: the
// same mark stands before code.
type builtinCall struct {
	p      *jsonParser
	state  builtinState
	token  []byte // the name or key being read
	params parameters
	lit    literal
	wrote  bool // there was such a call
}

type builtinState uint8

const (
	builtinName  builtinState = iota
	builtinKey                // before an argument, or in its name
	builtinEq                 // after its name
	builtinValue              //
	builtinNext               // after it
	builtinEnd                // after the call
)

func (b *builtinCall) init(p *jsonParser) {
	b.p = p
	b.lit.emit = p.args
}

// WritesArguments reports whether the parser has met arguments that are no JSON.
func (p *jsonParser) WritesArguments() bool { return p.builtin.wrote }

// begin begins to read at a name.
func (b *builtinCall) begin() {
	b.state, b.token = builtinName, b.token[:0]
	b.params.reset()
	b.p.bad = ""
}

// read reads on.
func (b *builtinCall) read() {
	p := b.p
	in := p.in[:b.fit()]
	if b.state == builtinValue {
		b.keep(b.lit.scan(in))
		switch b.lit.state {
		case literalDone:
			b.state = builtinNext
		case literalBad:
			p.spoil(cmp.Or(p.bad, lathe.CodePayloadParseError))
		}
		return
	}
	_, size := utf8.DecodeRuneInString(in)
	for i := range size {
		if !b.byte(in[i]) {
			p.spoil(cmp.Or(p.bad, lathe.CodePayloadParseError))
			return
		}
	}
	b.keep(size)
	if b.state == builtinEnd {
		b.end()
	}
}

// fit returns how many bytes may be read at once. Once the open call is longer than max_payload_bytes, its text
// is given as unreadable, and it is read on to its end.
func (b *builtinCall) fit() int {
	p := b.p
	if !p.reader.open || p.bad != "" {
		return len(p.in)
	}
	n := runeCut(p.in, min(len(p.in), max(0, p.opts.MaxPayloadBytes-p.total)))
	if n == 0 {
		p.bad, p.unreadable = lathe.CodePayloadTooLarge, true
		p.prose.text(string(p.raw))
		p.lose()
		return len(p.in)
	}
	return n
}

// keep takes n bytes of the call.
func (b *builtinCall) keep(n int) {
	p := b.p
	if s := p.take(n); p.bad != "" {
		p.more(s)
	} else {
		p.keep(s)
	}
}

// end ends the call.
func (b *builtinCall) end() {
	p := b.p
	if p.bad != "" {
		p.giveUp()
		return
	}
	p.args(b.params.end())
	p.pending = true
	p.confirm()
	p.state = blockNext
}

// byte takes one byte outside of a value; false: it cannot stand there.
func (b *builtinCall) byte(c byte) bool {
	switch {
	case b.state != builtinName && space(c):
		if b.state == builtinKey && len(b.token) > 0 {
			b.state = builtinEq
		}
		return true
	case b.state == builtinName && c == '(':
		return b.named()
	case b.state == builtinName && isNameByte(c), b.state == builtinKey && (isNameByte(c) && c != '.' && c != ':' || c >= 0x80):
		b.token = append(b.token, c)
		return len(b.token) <= maxNameBytes
	case (b.state == builtinKey || b.state == builtinEq) && c == '=' && len(b.token) > 0:
		return b.param()
	case b.state == builtinNext && c == ',':
		b.state, b.token = builtinKey, b.token[:0]
		return true
	case c == ')' && (b.state == builtinNext || b.state == builtinKey && len(b.token) == 0):
		b.state = builtinEnd
		return true
	}
	return false
}

// named opens the call of the tool in token. It returns false if no such tool was offered.
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

// param begins the value of the argument in token.
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
