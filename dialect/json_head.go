package dialect

import (
	"bytes"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
)

// The head of a block, between its mark and the JSON, such as `NAME[CALL_ID]ID[ARGS]` after `[TOOL_CALLS]`, consists of parts: each is a word
// (NAME, ID) and one of its ends. It is read byte by byte: partial is the part so far, and wordEnd the offset in it at which the word ends.

// headByte reads one byte of the head of a block.
func (p *jsonParser) headByte(c byte) {
	part := &p.block.head[p.part]
	if len(p.partial) >= maxHeadBytes {
		p.markUnreadable(lathe.CodePayloadParseError)
		return
	}
	if part.json && p.startsJSON(c, part.field) {
		p.partial = p.partial[:0]
		p.state = blockOpen
		return
	}
	p.partial = append(p.partial, c)
	for _, e := range part.ends {
		word, ok := bytes.CutSuffix(p.partial, []byte(e.mark))
		if !ok {
			continue
		}
		word = bytes.TrimSpace(word)
		if len(word) == 0 && space(c) {
			break
		}
		if !p.setHeadWord(part.field, word) {
			p.noName()
			return
		}
		p.consume()
		p.partial, p.wordEnd = p.partial[:0], 0
		p.part = e.next
		if p.part == len(p.block.head) {
			p.endHead()
		}
		return
	}
	if !p.mayEnd(part, c) {
		p.noName()
		return
	}
	p.consume()
}

// startsJSON reports whether the JSON, or the mark that closes the block, begins at c, without one of the ends of the part. It records
// the word of the part if the JSON begins.
func (p *jsonParser) startsJSON(c byte, field headField) bool {
	word := bytes.TrimSpace(p.partial)
	switch {
	case c == '{' && len(word) > 0:
		return (p.wordEnd == 0 || p.wordEnd == len(p.partial)) && p.setHeadWord(field, word)
	case c == '{':
		return true
	case len(word) > 0:
		return false
	case c == '[':
		return p.part == 0
	}
	noArguments := p.block.close != "" && c == p.block.close[0] && len(p.object.name) > 0
	return noArguments
}

// mayEnd reports whether one of the part's ends may still follow after c, the last byte of partial. It sets wordEnd, the offset in partial
// from which the ends are compared; 0 means that the word continues.
func (p *jsonParser) mayEnd(part *headPart, c byte) bool {
	switch {
	case p.wordEnd == 0 && isWordByte(c):
		return true
	case space(c) && p.wordEnd == 0 && len(bytes.TrimSpace(p.partial)) == 0:
		return true
	case space(c) && (p.wordEnd == 0 || p.wordEnd == len(p.partial)-1):
		p.wordEnd = len(p.partial)
		return true
	case p.wordEnd == 0:
		p.wordEnd = len(p.partial) - 1
	}
	for _, e := range part.ends {
		if strings.HasPrefix(e.mark, string(p.partial[p.wordEnd:])) {
			return true
		}
	}
	return false
}

// isWordByte reports whether c is allowed in a name or an id.
func isWordByte(c byte) bool { return c > ' ' && strings.IndexByte("<>[]{}\"'`\x7f", c) < 0 }

// endHead selects the state after the head: the JSON, plain text, or an error if the name is not accepted.
func (p *jsonParser) endHead() {
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

// noName ends an attempt whose head contains no name of a tool.
func (p *jsonParser) noName() {
	p.partial = p.partial[:0]
	p.markUnreadable(lathe.CodePayloadParseError)
}

// setHeadWord records word, a part of the head. It returns false if word is not valid for the field.
func (p *jsonParser) setHeadWord(field headField, word []byte) bool {
	switch field {
	case headID:
		if len(word) > maxNameBytes {
			return false
		}
		p.object.id = append(p.object.id[:0], word...)
		return true
	case headIDName:
		p.object.id = append(p.object.id[:0], word...)
		if word = p.nameOfID(word); word == nil { // the tool is inferred from the arguments
			p.object.name = p.object.name[:0]
			return len(p.object.id) > 0
		}
	case headName:
		// A word "function" may precede the name. Another word in its place is an error.
		if len(p.object.name) > 0 && string(p.object.name) != "function" {
			return false
		}
	}
	p.object.name = append(p.object.name[:0], word...)
	return len(word) > 0 && len(word) <= maxNameBytes
}

// idPrefixes are the words that models and servers write before the name of a tool in an id.
var idPrefixes = [...]string{"", "functions", "call", "tool", "chatcmpl-tool"}

// nameOfID returns the name of the tool in an id: the NAME of functions.NAME:0 and NAME:0. In other spellings, such as functions_NAME_0,
// it is the longest name of an offered tool at the end of the id, before its number, if the text before that name is empty or one of
// idPrefixes. With another word before it, word and name together are returned, which name no offered tool. nil means that no offered
// name ends the id.
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

// accepts reports whether the name that was read may make a call in this block: in a quiet block it must name an offered tool.
func (p *jsonParser) accepts() bool {
	return !p.block.quiet || p.means(string(p.object.name))
}
