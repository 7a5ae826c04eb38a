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

	// Set by newPythonicForm:
	texts        []string // the texts of the marks, except those of thinking, by index
	openID, shut int      // indexes of the marks around the calls; -1 if none exist
	marks        *marks
}

// newPythonicForm numbers the marks: first drops, then those around calls. The parser appends the openings of bare lists, which depend on
// the tools.
func newPythonicForm(f pythonicForm) *pythonicForm {
	f.texts, f.openID, f.shut = f.drops, -1, -1
	if f.open != "" {
		f.openID, f.shut = len(f.drops), len(f.drops)+1
		f.texts = append(slices.Clip(f.texts), f.open, f.close)
	}
	f.marks = newMarks(false, withThink(f.texts, plainThink)...)
	return &f
}

func (f *pythonicForm) parser(o Options) fullParser {
	texts, set := f.texts, f.marks
	if f.bare && len(o.Tools) > 0 {
		texts = slices.Clip(texts)
		for _, t := range o.Tools {
			texts = append(texts, "["+t.Name+"(")
		}
		set = newMarks(false, withThink(texts, plainThink)...)
	}
	p := &pythonic{attempt: attempt{reader: newReader(o, set)}, form: f}
	p.reader.run, p.reader.close = func() { p.readTokens(p) }, p.finish
	p.prose = newProse(&p.reader, len(texts))
	p.lit.emit = p.args
	return p
}

// pythonic is the parser of a pythonicForm: calls with keyword arguments whose values are Python or JSON literals. It emits arguments as
// they arrive. Each call is an attempt of its own: it is open from its "(" on, which ends the name, and confirm closes it once what follows
// its ")" shows that it is complete.
type pythonic struct {
	attempt
	form  *pythonicForm // the row of the dialect
	state pythonicState

	// Set at the beginning of a sequence of calls, which has marks, brackets or both.
	wrapped  bool // the calls are between marks
	brackets bool // the calls are in brackets; with marks, set when "[" is read

	token  []byte     // the name or key being read
	params parameters // the parameters of the call so far
	lit    literal    // reads the values
	dict   bool       // the value is `**{…}` and contains all arguments of the call
}

type pythonicState uint8

const (
	pythonBegin pythonicState = iota // before the first call
	pythonName
	pythonKey   // before an argument, or in its name
	pythonEq    // after the name of an argument, before "="
	pythonDict  // after `**`, before "{"
	pythonValue // in the value of an argument
	pythonNext  // after the value of an argument
	pythonAfter // after a call, which is open until the next byte confirms it
	pythonTail  // after the closing bracket of the calls
)

// outside reads a token between calls: text if mark is negative.
func (p *pythonic) outside(text string, mark int) {
	inLine := p.prose.mask.hasText // read before prose.mark, which may change it
	switch {
	case mark < 0:
		p.prose.text(text)
	case p.prose.mark(mark, text): // the mark belongs to the prose, which has read it
	case mark == p.form.openID:
		p.begin(text)
		p.place, p.state = insideCall, pythonBegin
		p.wrapped, p.brackets = true, false
		p.opens, p.closes = p.form.openID, p.form.shut
	case mark < len(p.form.texts): // a closing mark without an opening one, or the end of the turn
		p.leave()
		p.place = afterCall
	case inLine: // a bare list must begin its line
		p.prose.text(text)
	default: // "[NAME(", the beginning of a bare list
		p.begin(text)
		p.place = insideCall
		p.wrapped, p.brackets = false, true
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
	closes := p.wrapped && mark == p.form.shut
	inString := p.state == pythonValue && p.lit.inString()
	switch {
	case !closes, inString:
		p.syntax(text, mark)
	case p.complete():
		p.confirm()
		p.leave()
		p.place = afterCall
	default:
		p.reject(text, mark)
	}
}

// complete reports whether the closing mark may follow: the brackets are closed, or there are none and no call is unfinished.
func (p *pythonic) complete() bool {
	if p.brackets {
		return p.state == pythonTail
	}
	return p.state == pythonBegin || p.state == pythonAfter
}

// syntax reads the text of calls, up to a byte that the syntax does not allow, or to the end of a bare list.
func (p *pythonic) syntax(text string, mark int) {
	for text != "" {
		if p.state == pythonValue {
			n := p.lit.scan(text[:p.checkLimit(text)])
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
		if p.state == pythonDict && text[0] == '{' {
			p.dict = true
			p.lit.reset()
			p.state = pythonValue // which begins with the brace
			continue
		}
		_, size := utf8.DecodeRuneInString(text)
		if !p.rune(text[:size]) {
			p.reject(text, mark)
			return
		}
		p.keep(text[:size])
		text = text[size:]
		if p.state == pythonTail && !p.wrapped {
			p.endBareList(text)
			return
		}
	}
}

// endBareList ends a list without marks; next is the text after its closing bracket.
func (p *pythonic) endBareList(next string) {
	p.confirm()
	p.leave()
	if next == "" || p.bufferBlank(next) {
		p.place = afterCall
	} else {
		p.prose.text(next)
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
	case pythonDict, pythonTail:
		return space(c) // syntax reads the brace of a dict
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
	case c == '[' && !p.brackets:
		p.brackets = true
	case c == ']' && p.brackets:
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
	case c == ']' && p.brackets:
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

// confirm closes the open call, which is complete, and begins the attempt of the next one. It does nothing if no call is open.
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
