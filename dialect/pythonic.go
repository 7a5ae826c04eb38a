package dialect

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
)

// A pythonicForm is the row of a dialect that writes calls in the syntax of Python: `[f(a=1), g(), h(**{"a key": 2})]`.
type pythonicForm struct {
	open, close string // marks around the calls; "" if none exist
	// bare accepts a list without marks, if it begins a line with the name of an offered tool.
	bare  bool
	drops []string // marks without content, which the parser removes

	list         []string
	openID, shut int // indexes of the marks around the calls; -1 if none exist
	marks        *marks
}

// newPythonicForm numbers the marks: first drops, then those around calls. The parser appends the openings of bare lists, which depend on
// the tools.
func newPythonicForm(f pythonicForm) *pythonicForm {
	f.list, f.openID, f.shut = f.drops, -1, -1
	if f.open != "" {
		f.openID, f.shut = len(f.drops), len(f.drops)+1
		f.list = append(slices.Clip(f.list), f.open, f.close)
	}
	f.marks = newMarks(false, withThink(f.list, plainThink)...)
	return &f
}

func (f *pythonicForm) parser(o Options) Parser {
	list, set := f.list, f.marks
	if f.bare && len(o.Tools) > 0 {
		list = slices.Clip(list)
		for _, t := range o.Tools {
			list = append(list, "["+t.Name+"(")
		}
		set = newMarks(false, withThink(list, plainThink)...)
	}
	p := &pythonic{attempt: attempt{reader: newReader(o, set)}, form: f}
	p.reader.run, p.reader.close = func() { p.readTokens(p) }, p.finish
	p.prose = newProse(&p.reader, len(list))
	p.lit.emit = p.args
	return p
}

// pythonic is the parser of a pythonicForm: calls with keyword arguments whose values are Python or JSON literals. It emits arguments as
// they arrive.
type pythonic struct {
	attempt
	form    *pythonicForm // the row of the dialect
	state   pythonicState
	wrapped bool       // the calls are between marks
	list    bool       // the calls are in brackets
	token   []byte     // the name or key being read
	params  parameters // the parameters of the call so far
	lit     literal    // reads the values
	dict    bool       // the value is `**{…}` and contains all arguments of the call
}

type pythonicState uint8

const (
	pythonBegin pythonicState = iota // before the first call
	pythonName
	pythonKey   // before an argument, or in its name
	pythonEq    // after the name of an argument, before "="
	pythonDict  // after `**`
	pythonValue // in the value of an argument
	pythonNext  // after the value of an argument
	pythonAfter // after a call, which is open until the next byte confirms it
	pythonTail  // after the list of calls
)

// outside reads a token between calls.
func (p *pythonic) outside(text string, mark int) {
	switch inked := p.prose.mask.inked; {
	case mark < 0:
		p.prose.text(text)
	case p.prose.mark(mark, text):
	case mark == p.form.openID:
		p.begin(text)
		p.place, p.state, p.wrapped, p.list = insideCall, pythonBegin, true, false
		p.opens, p.closes = p.form.openID, p.form.shut
	case mark < len(p.form.list): // a closing mark without an opening one, or the end of the turn
		p.leave()
		p.place = afterCall
	case inked:
		p.prose.text(text)
	default:
		p.begin(text)
		p.place, p.wrapped, p.list = insideCall, false, true
		p.opens, p.closes = noMark, noMark
		p.call(text[1 : len(text)-1])
	}
}

// call opens a call of the tool with this name.
func (p *pythonic) call(name string) {
	p.name = p.toolName([]byte(name))
	p.start("", p.name)
	p.params.reset()
	p.dict = false
	p.token = p.token[:0]
	p.state = pythonKey
}

// inside reads a token inside an attempt.
func (p *pythonic) inside(text string, mark int) {
	switch {
	case mark != p.form.shut || !p.wrapped || p.state == pythonValue && p.lit.inString():
		p.structure(text, mark)
	case p.state == pythonAfter && !p.list || p.state == pythonTail || p.state == pythonBegin && !p.list:
		p.confirm()
		p.leave()
		p.place = afterCall
	default:
		p.reject(text, mark)
	}
}

// structure reads the text of calls, up to a byte that the syntax does not allow.
func (p *pythonic) structure(text string, mark int) {
	for text != "" {
		if p.state == pythonValue {
			n := p.lit.scan(text[:p.fit(text)])
			p.keep(text[:n])
			text = text[n:]
			switch p.lit.state {
			case literalDone:
				p.state = pythonNext
			case literalBad:
				p.reject(text, mark)
				return
			}
			continue
		}
		if p.full(text[:1]) {
			p.becomeUnreadable(lathe.CodePayloadTooLarge)
			p.keep(text)
			return
		}
		_, size := utf8.DecodeRuneInString(text)
		afterList := p.state == pythonTail && !space(text[0])
		if afterList || !p.rune(text[:size]) {
			p.reject(text, mark)
			return
		}
		if p.state == pythonValue && p.dict {
			continue // the brace is read again, as part of the value
		}
		p.keep(text[:size])
		text = text[size:]
		if p.state == pythonTail && !p.wrapped {
			p.confirm()
			p.leave()
			if text == "" || p.blank(text) {
				p.place = afterCall
			} else {
				p.prose.text(text)
			}
			return
		}
	}
}

// rune reads one rune outside of a value. It returns false if the syntax does not allow the rune.
func (p *pythonic) rune(s string) bool {
	for i := range len(s) {
		if !p.byte(s[i]) {
			return false
		}
	}
	return true
}

// byte reads one byte outside of a value. It returns false if the syntax does not allow the byte.
func (p *pythonic) byte(c byte) bool {
	switch p.state {
	case pythonBegin:
		return p.beginByte(c)
	case pythonName:
		return p.nameByte(c)
	case pythonKey:
		return p.keyByte(c)
	case pythonEq:
		return space(c) || c == '=' && p.param()
	case pythonDict:
		if space(c) {
			return true
		}
		p.dict = true
		p.lit.reset()
		p.state = pythonValue
		return c == '{'
	case pythonNext:
		switch {
		case space(c):
		case c == ',' && !p.dict:
			p.state, p.token = pythonKey, p.token[:0]
		case c == ')':
			p.state = pythonAfter
		default:
			return false
		}
	case pythonAfter:
		return p.afterByte(c)
	}
	return true
}

// beginByte reads one byte before the first call.
func (p *pythonic) beginByte(c byte) bool {
	switch {
	case space(c):
	case c == '[' && !p.list:
		p.list = true
	case c == ']' && p.list:
		p.state = pythonTail
	default:
		p.state, p.token = pythonName, p.token[:0]
		return p.nameByte(c)
	}
	return true
}

// nameByte reads one byte of the name of a tool, or the parenthesis after it.
func (p *pythonic) nameByte(c byte) bool {
	if c == '(' {
		name := strings.TrimSpace(string(p.token))
		if !isPythonName(name) && !p.knows(name) {
			return false
		}
		p.call(name)
		return true
	}
	p.token = append(p.token, c)
	return len(p.token) <= maxNameBytes && strings.IndexByte(")[]{}=,'\"<>", c) < 0
}

// keyByte reads one byte before or in the name of an argument, or the byte after it. `**` in place of a name precedes a dict.
func (p *pythonic) keyByte(c byte) bool {
	switch {
	case space(c):
		if len(p.token) > 0 {
			p.state = pythonEq
		}
		return true
	case c == '=' && len(p.token) > 0:
		return p.param()
	case c == ')' && len(p.token) == 0:
		p.state = pythonAfter
		return true
	}
	p.token = append(p.token, c)
	if len(p.params.ends) == 0 && string(p.token) == "**" {
		p.state = pythonDict
	}
	return len(p.token) <= maxNameBytes && keywordByte(c)
}

// afterByte reads one byte after a call: what may follow shows that the call is complete.
func (p *pythonic) afterByte(c byte) bool {
	switch {
	case space(c):
	case c == ']' && p.list:
		p.state = pythonTail
	case c == ',' && p.open:
		p.confirm()
	case p.wrapped || !p.open:
		p.confirm()
		p.state, p.token = pythonName, append(p.token[:0], c)
		return isNameByte(c) || c >= 0x80
	default:
		return false
	}
	return true
}

// keywordByte reports whether c is allowed in the name of an argument. Models write the names of a tool's schema unchanged, with
// punctuation that Python does not allow.
func keywordByte(c byte) bool {
	return c > ' ' && c != 0x7f && strings.IndexByte("=,()[]{}'\"`<>\\", c) < 0
}

// isPythonName reports whether s can be the name of a tool; bytes beyond ASCII are allowed.
func isPythonName(s string) bool {
	for i := range len(s) {
		if !isNameByte(s[i]) && s[i] < 0x80 || s[i] == ':' {
			return false
		}
	}
	return s != ""
}

// param begins the value of the argument whose name is in token. It returns false if the name is invalid or a duplicate.
func (p *pythonic) param() bool {
	if last := p.token[len(p.token)-1]; strings.IndexByte("!+*/%&|^:@", last) >= 0 && !declares(p.schema(p.name), string(p.token)) {
		return false // an operator such as !=
	}
	prefix, ok := p.params.add(p.token)
	if !ok {
		return false
	}
	p.args(prefix)
	p.lit.reset()
	p.state = pythonValue
	return true
}

// confirm closes the open call, which is complete.
func (p *pythonic) confirm() {
	if !p.open {
		return
	}
	if !p.dict {
		p.args(p.params.end())
	}
	p.end(whole)
	p.begin("")
}

// finish ends the text: it closes or reports the call that is open.
func (p *pythonic) finish() {
	switch {
	case p.place == insideUnreadable:
		p.endUnreadable()
	case p.place != insideCall:
	case p.state == pythonAfter || p.state == pythonTail:
		p.confirm()
	case p.open:
		p.end(truncated)
	default:
		p.cut = true
		p.becomeUnreadable(lathe.CodeIncompleteCall)
		p.endUnreadable()
	}
}
