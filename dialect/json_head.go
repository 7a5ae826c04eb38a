package dialect

import (
	"bytes"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
)

// The head of a block, between its mark and the JSON, such as `NAME[CALL_ID]ID[ARGS]` after `[TOOL_CALLS]`, consists of parts: each is a
// word (NAME, ID) and one of its ends. It is read byte by byte: partial is the part so far, and wordEnd the offset in it from which the ends
// are compared; 0: the word continues.

// headByte reads one byte of the head of a block.
func (p *jsonParser) headByte(c byte) {
	part := &p.block.head[p.part]
	if len(p.partial) >= maxHeadBytes {
		p.reject()
		return
	}
	if part.json && p.startsJSON(c) {
		word := bytes.TrimSpace(p.partial)
		if len(word) > 0 && !p.object.setHeadWord(part.field, word) {
			p.reject()
			return
		}
		p.beginPart(len(p.block.head))
		return
	}
	p.partial = append(p.partial, c)
	end, word := part.end(p.partial)
	switch {
	case end == nil, len(word) == 0 && space(c):
		if !p.extendPart(part, c) {
			p.reject()
			return
		}
		p.consume()
	case !p.object.setHeadWord(part.field, word):
		p.reject()
	default:
		p.consume()
		p.beginPart(end.next)
	}
}

// end returns the end of the part that text ends with, and the word before it; nil if text ends with none.
func (part *headPart) end(text []byte) (end *headEnd, word []byte) {
	for i := range part.ends {
		word, ok := bytes.CutSuffix(text, []byte(part.ends[i].mark))
		if ok {
			return &part.ends[i], bytes.TrimSpace(word)
		}
	}
	return nil, nil
}

// beginPart begins part n of the head, or ends the head after its last part.
func (p *jsonParser) beginPart(n int) {
	p.partial, p.wordEnd, p.part = p.partial[:0], 0, n
	if n == len(p.block.head) {
		p.endHead()
	}
}

// startsJSON reports whether the JSON, or the mark that closes the block, begins at c, without one of the ends of the part.
func (p *jsonParser) startsJSON(c byte) bool {
	hasWord := len(bytes.TrimSpace(p.partial)) > 0
	switch {
	case c == '{' && hasWord:
		return p.wordEnd == 0 || p.wordEnd == len(p.partial) // only white space follows the word
	case c == '{':
		return true
	case hasWord:
		return false
	case c == '[':
		return p.part == 0
	}
	noArguments := p.block.close != "" && c == p.block.close[0] && len(p.object.name) > 0
	return noArguments
}

// extendPart extends the part by c, the last byte of partial, and sets wordEnd. It returns false if none of the part's ends may follow.
func (p *jsonParser) extendPart(part *headPart, c byte) bool {
	last := len(p.partial) - 1
	if p.wordEnd == 0 {
		isLeading := space(c) && len(bytes.TrimSpace(p.partial)) == 0 // before the word
		if isLeading || isWordByte(c) {
			return true
		}
		p.wordEnd = last
	}
	if space(c) && p.wordEnd == last { // the ends may follow white space
		p.wordEnd = len(p.partial)
		return true
	}
	begun := string(p.partial[p.wordEnd:])
	return slices.ContainsFunc(part.ends, func(e headEnd) bool { return strings.HasPrefix(e.mark, begun) })
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
		p.reject()
	}
}

// setHeadWord records word, a part of the head. It returns false if word is not valid for the field.
func (o *callObject) setHeadWord(field headField, word []byte) bool {
	switch field {
	case headID:
		if len(word) > maxNameBytes {
			return false
		}
		o.id = append(o.id[:0], word...)
		return true
	case headIDName:
		o.id = append(o.id[:0], word...)
		word = nameOfID(word, o.r.opts.Tools)
		if word == nil { // the tool is inferred from the arguments
			o.name = o.name[:0]
			return len(o.id) > 0
		}
	case headName:
		// A word "function" may precede the name. Another word in its place is an error.
		if len(o.name) > 0 && string(o.name) != "function" {
			return false
		}
	}
	o.name = append(o.name[:0], word...)
	return len(word) > 0 && len(word) <= maxNameBytes
}

// idPrefixes are the words that models and servers write before the name of a tool in an id.
var idPrefixes = [...]string{"", "functions", "call", "tool", "chatcmpl-tool"}

// nameOfID returns the name of the tool in an id: the NAME of functions.NAME:0 and NAME:0. In other spellings, such as functions_NAME_0,
// it is the longest name of an offered tool at the end of the id, before its number, if the text before that name is empty or one of
// idPrefixes. With another word before it, word and name together are returned, which name no offered tool. nil means that no offered
// name ends the id.
func nameOfID(id []byte, tools []*lathe.ToolSpec) []byte {
	name := bytes.TrimPrefix(id, []byte("functions."))
	front := bytes.TrimRight(name, "0123456789")
	if i := len(front) - 1; i > 0 && i+1 < len(name) && front[i] == ':' {
		return name[:i]
	}
	best, found := 0, []byte(nil)
	for _, end := range [...][]byte{name, front, bytes.TrimRight(front, ":_-.")} {
		for _, t := range tools {
			before, ok := bytes.CutSuffix(end, []byte(t.Name))
			word := bytes.TrimRight(before, ":_-.")
			separators := len(before) - len(word)
			isInWord := len(before) > 0 && separators == 0 // the name is only the end of a longer word
			if !ok || isInWord || len(t.Name) <= best {
				continue
			}
			best, found = len(t.Name), end
			if separators <= 1 && slices.Contains(idPrefixes[:], string(word)) {
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
