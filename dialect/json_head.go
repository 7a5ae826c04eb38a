package dialect

import (
	"bytes"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
)

// headByte reads the head of a block, one part after the other. A part is a word and one of its ends.
func (p *jsonParser) headByte(c byte) {
	part := &p.block.head[p.part]
	if len(p.seg) >= maxHeadBytes {
		p.spoil(lathe.CodePayloadParseError)
		return
	}
	if part.json && p.startsJSON(c, part.field) {
		p.seg = p.seg[:0]
		p.state = blockOpen
		return
	}
	p.seg = append(p.seg, c)
	for _, e := range part.ends {
		word, ok := bytes.CutSuffix(p.seg, []byte(e.mark))
		if !ok {
			continue
		}
		word = bytes.TrimSpace(word)
		if len(word) == 0 && space(c) {
			break
		}
		if !p.setHead(part.field, word) {
			p.noName()
			return
		}
		p.eat()
		p.seg, p.wordEnd = p.seg[:0], 0
		if p.part = e.next; p.part == len(p.block.head) {
			p.headDone()
		}
		return
	}
	if !p.mayEnd(part, c) {
		p.noName()
		return
	}
	p.eat()
}

// startsJSON reports whether c is where the JSON begins without one of the part's ends.
func (p *jsonParser) startsJSON(c byte, field headField) bool {
	first := c == '{' || c == '[' || p.block.close != "" && c == p.block.close[0]
	if !first {
		return false
	}
	switch word := bytes.TrimSpace(p.seg); {
	case c == '{':
		return len(word) == 0 || (p.wordEnd == 0 || p.wordEnd == len(p.seg)) && p.setHead(field, word)
	case len(word) > 0:
		return false
	case c == '[':
		return p.part == 0
	}
	return len(p.object.name) > 0 // no arguments at all
}

// mayEnd takes c, the last byte of the part so far; false: no end can follow. wordEnd is where in
// seg the beginning of an end is looked for, 0: the word still goes on.
func (p *jsonParser) mayEnd(part *headPart, c byte) bool {
	switch {
	case p.wordEnd == 0 && isWordByte(c):
		return true
	case space(c) && p.wordEnd == 0 && len(bytes.TrimSpace(p.seg)) == 0:
		return true
	case space(c) && (p.wordEnd == 0 || p.wordEnd == len(p.seg)-1):
		p.wordEnd = len(p.seg)
		return true
	case p.wordEnd == 0:
		p.wordEnd = len(p.seg) - 1
	}
	for _, e := range part.ends {
		if strings.HasPrefix(e.mark, string(p.seg[p.wordEnd:])) {
			return true
		}
	}
	return false
}

// isWordByte reports whether c can stand in a name or an id.
func isWordByte(c byte) bool { return c > ' ' && strings.IndexByte("<>[]{}\"'`\x7f", c) < 0 }

// headDone goes on after the head, whose name is known.
func (p *jsonParser) headDone() {
	switch {
	case p.block.plain != "" && p.block.plain == string(p.object.name):
		p.state = blockNone
		p.swallow = false
	case p.accepts():
		p.state = blockOpen
	default:
		p.noName()
	}
}

// noName ends a head that holds no tool's name.
func (p *jsonParser) noName() {
	p.seg = p.seg[:0]
	p.spoil(lathe.CodePayloadParseError)
}

// setHead takes a part of the head; false: it cannot be what it should.
func (p *jsonParser) setHead(field headField, word []byte) bool {
	switch field {
	case headID:
		if len(word) > maxNameBytes {
			return false
		}
		p.object.id = append(p.object.id[:0], word...)
		return true
	case headIDName:
		p.object.id = append(p.object.id[:0], word...)
		if word = p.nameOfID(word); word == nil { // the arguments tell the tool
			p.object.name = p.object.name[:0]
			return len(p.object.id) > 0
		}
	case headName:
		// After a word before the name: it says that a function is called.
		if len(p.object.name) > 0 && string(p.object.name) != "function" {
			return false
		}
	}
	p.object.name = append(p.object.name[:0], word...)
	return len(word) > 0 && len(word) <= maxNameBytes
}

// idPrefixes are the words that models and servers write before the name in an id.
var idPrefixes = [...]string{"", "functions", "call", "tool", "chatcmpl-tool"}

// nameOfID returns the name in functions.NAME:0 or NAME:0. Of an id in another spelling, such as functions_NAME_0, it returns the longest
// name of an offered tool that the id ends with, before its number, if nothing or one of idPrefixes stands before that; with another word
// there the two are the name, of a tool that was not offered. nil: the id ends with no tool's name.
func (p *jsonParser) nameOfID(id []byte) []byte {
	name := bytes.TrimPrefix(id, []byte("functions."))
	front := bytes.TrimRight(name, "0123456789")
	if i := len(front) - 1; i > 0 && i+1 < len(name) && front[i] == ':' {
		return name[:i]
	}
	best, found := 0, []byte(nil)
	for _, end := range [...][]byte{name, front, bytes.TrimRight(front, ":_-.")} {
		for _, t := range p.opts.Tools {
			before, ok := bytes.CutSuffix(end, []byte(t.Name))
			word := bytes.TrimRight(before, ":_-.")
			if !ok || len(t.Name) <= best || len(before) > 0 && len(word) == len(before) {
				continue
			}
			best, found = len(t.Name), end
			if len(before)-len(word) <= 1 && slices.Contains(idPrefixes[:], string(word)) {
				found = []byte(t.Name)
			}
		}
	}
	return found
}

// accepts reports whether the name that was read may make a call in this block.
func (p *jsonParser) accepts() bool {
	return !p.block.quiet || p.means(string(p.object.name))
}
