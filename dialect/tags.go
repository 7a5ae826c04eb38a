package dialect

import (
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
)

// maxTagBytes is the maximal length, in bytes, of an opening tag; a longer one is text.
const maxTagBytes = 512

// maxShutSpaceBytes is the maximal number of bytes of white space between a call of the short form and its closing tag.
const maxShutSpaceBytes = 16

// The marks of tags, by their index in the list.
const (
	tagClose = iota
	tagOpen  // the first of four, one for each kind of white space
	tagShort = tagOpen + 4
)

var (
	tagOpenings = []string{"<tool ", "<tool\n", "<tool\t", "<tool\r"}
	tagsCalls   = append([]string{"</tool>"}, tagOpenings...)
	tagsMarks   = newMarks(true, withThink(tagsCalls, plainThink)...)
	// Including the deprecated short form.
	oldTagsCalls = append(slices.Clip(tagsCalls), "<tool:")
	oldTagsMarks = newMarks(true, withThink(oldTagsCalls, plainThink)...)
)

// tags is the parser of `<tool name="NAME" args>{JSON}</tool>` and, if allowed, the short form `<tool:NAME>{JSON}`. In Markdown code, and
// after a backslash, both are text. The scanner finds the marks between calls (token); the opening tag and the arguments are read byte by
// byte (readTag).
type tags struct {
	attempt
	state   tagsState
	short   bool     // the open tag has the short form
	quote   byte     // the quote that is open in a tag; 0 if none is
	written string   // the name in the tag
	js      jsonScan // scanner of the arguments
}

// WritesArguments returns false: the arguments are the JSON of the model.
func (*tags) WritesArguments() bool { return false }

type tagsState uint8

const (
	tagsText tagsState = iota
	tagsHead           // in the opening tag
	tagsBody           // before the arguments
	tagsArgs
	tagsEnd  // after the arguments
	tagsShut // after a call of the short form: an optional closing tag may follow
	tagsBad  // in an unreadable attempt, up to its closing tag
)

func newTags(o Options) fullParser {
	t := &tags{attempt: attempt{reader: newReader(o, tagsMarks)}}
	t.reader.run, t.reader.close = t.read, t.finish
	t.prose = newProse(&t.reader, len(tagsCalls))
	if o.AllowDeprecatedSyntax {
		t.marks, t.prose.base = oldTagsMarks, len(oldTagsCalls)
	}
	return t
}

func (t *tags) read() {
	for {
		switch t.state {
		case tagsHead, tagsBody, tagsArgs, tagsShut:
			if t.in == "" {
				return
			}
			t.readTag()
		default:
			text, mark, ok := t.next()
			if !ok {
				return
			}
			t.token(text, mark)
		}
	}
}

// token reads a token of the scanner outside of a tag and its arguments.
func (t *tags) token(text string, mark int) {
	opens := mark >= tagOpen && mark < t.prose.base
	switch t.state {
	case tagsText:
		switch {
		case mark < 0:
			t.prose.text(text)
		case t.prose.mark(mark, text): // the mark belongs to the prose, which has read it
		case opens:
			t.begin(text)
			t.state, t.short, t.quote, t.written = tagsHead, mark == tagShort, 0, ""
		default:
			t.prose.text(text)
		}
	case tagsEnd:
		cutClose := t.last && mark < 0 && begins(tagsCalls[tagClose], text) // the end of the text truncates the closing tag
		switch {
		case mark == tagClose, cutClose:
			if t.bad != "" {
				t.keep(text)
			}
			t.end(whole)
			t.toText()
		case mark < 0 && trimSpace(text) == "":
			t.keep(text)
		default:
			t.becomeUnreadable(lathe.CodePayloadParseError)
			t.token(text, mark)
		}
	case tagsBad:
		t.keep(text)
		if opens {
			t.depth++
		} else if mark == tagClose {
			t.depth--
		}
		if t.depth == 0 {
			t.endUnreadable()
		}
	}
}

// begins reports whether mark begins with s, without white space before it.
func begins(mark, s string) bool {
	return strings.HasPrefix(mark, strings.ToLower(trimSpace(s)))
}

// toText returns to the text between calls.
func (t *tags) toText() {
	t.state = tagsText
	t.prose.mask.fresh()
}

// readTag reads the next part of a tag or its arguments.
func (t *tags) readTag() {
	switch t.state {
	case tagsHead:
		t.head()
	case tagsBody:
		switch c := t.in[0]; {
		case c == '{':
			t.js = jsonScan{lax: true}
			t.start("", t.name)
			t.out[len(t.out)-1].Deprecated = t.short
			t.state = tagsArgs
		case space(c) && t.total < t.limit():
			t.keep(t.take(1))
		default:
			t.becomeUnreadable(lathe.CodePayloadParseError)
		}
	case tagsArgs:
		part := t.take(t.js.scan(t.in[:t.checkLimit(t.in)]))
		t.keep(part)
		t.args(part)
		switch t.js.state {
		case jsonDone:
			t.state = tagsEnd
			t.exempt += 2 * maxTagBytes // white space before the closing tag
			if t.short {
				t.end(whole)
				t.afterShort()
			}
		case jsonBad:
			t.becomeUnreadable(lathe.CodePayloadParseError)
		}
	case tagsShut:
		t.shortClose()
	}
}

// afterShort sets the state after a call of the short form, in which an optional closing tag is read.
func (t *tags) afterShort() {
	t.state, t.raw = tagsShut, t.raw[:0]
}

// shortClose reads the closing tag after a call of the short form, and white space before it. Other bytes are text.
func (t *tags) shortClose() {
	for t.in != "" {
		t.raw = append(t.raw, t.in[0])
		complete, begun := t.closesShort()
		switch {
		case complete:
			t.in = t.in[1:]
			t.toText()
			return
		case !begun:
			t.in = string(t.raw[:len(t.raw)-1]) + t.in
			t.toText()
			return
		}
		t.in = t.in[1:]
	}
}

// closesShort reports whether raw is white space and a closing tag of the call (complete), or the beginning of it (begun).
func (t *tags) closesShort() (complete, begun bool) {
	tag := strings.ToLower(trimSpace(string(t.raw)))
	if tag == "" {
		return false, len(t.raw) <= maxShutSpaceBytes
	}
	for _, shut := range [...]string{"</tool>", "</tool_call>", "</tool:" + strings.ToLower(t.written) + ">"} {
		complete = complete || tag == shut
		begun = begun || strings.HasPrefix(shut, tag)
	}
	return complete, begun
}

// head reads the next part of the opening tag.
func (t *tags) head() {
	for t.in != "" {
		c := t.in[0]
		opensOther := c == '<' && t.quote == 0
		invalid := t.short && c != '>' && !isNameByte(c)
		switch {
		case opensOther, invalid, len(t.raw) >= maxTagBytes:
			t.notATag(lathe.CodePayloadParseError)
			return
		case t.quote != 0:
			if c == t.quote {
				t.quote = 0
			}
		case c == '"' || c == '\'':
			t.quote = c
		case c == '>':
			t.keep(t.take(1))
			t.endHead()
			return
		}
		t.keep(t.take(1))
	}
}

// endHead parses the complete opening tag.
func (t *tags) endHead() {
	t.exempt = t.total
	inner := string(t.raw[len("<tool") : len(t.raw)-1])
	if t.short {
		t.written = inner[1:]
		if isToolName(t.written) {
			t.name, t.state = t.toolName([]byte(t.written)), tagsBody
		} else {
			t.notATag(notACall)
		}
		return
	}
	tag := readTag(inner)
	t.written, t.name = tag.name, t.toolName([]byte(tag.name))
	switch {
	case tag.name != "" && !tag.broken && !tag.closed:
		t.state = tagsBody
	case tag.closed && tag.looksLikeCall():
		t.becomeUnreadable(lathe.CodePayloadParseError)
		t.endUnreadable()
	case tag.looksLikeCall():
		t.becomeUnreadable(lathe.CodePayloadParseError)
	default:
		t.notATag(notACall)
	}
}

// notATag emits, as text, the beginning of a tag that does not end. If the text looks like a call, a ParseError with the code follows, unless
// code is notACall.
func (t *tags) notATag(code lathe.Code) {
	inner := string(t.raw[len("<tool"):])
	t.state = tagsText
	if t.short || code == notACall || !readTag(inner).looksLikeCall() {
		t.prose.text(string(t.raw))
		return
	}
	t.cut = t.cut || code == lathe.CodeIncompleteCall
	t.becomeUnreadable(code)
	t.endUnreadable()
}

// becomeUnreadable marks the attempt as unreadable. The ParseError follows at the closing tag, or at once for the short form.
func (t *tags) becomeUnreadable(code lathe.Code) {
	t.markUnreadable(code)
	t.depth, t.state = 1, tagsBad
	if t.short {
		t.endUnreadable()
	}
}

// endUnreadable emits the ParseError of the attempt and returns to the text between calls.
func (t *tags) endUnreadable() {
	t.attempt.endUnreadable()
	t.state = tagsText
	if t.short {
		t.afterShort()
	}
}

// finish ends the text: it closes or reports the call that is open.
func (t *tags) finish() {
	switch t.state {
	case tagsHead:
		t.notATag(lathe.CodeIncompleteCall)
	case tagsBody:
		t.cut = true
		t.becomeUnreadable(lathe.CodeIncompleteCall)
		if t.state == tagsBad {
			t.endUnreadable()
		}
	case tagsArgs:
		t.end(truncated)
	case tagsEnd:
		t.end(whole)
	case tagsShut:
		t.toText()
		t.prose.text(string(t.raw))
	case tagsBad:
		t.endUnreadable()
	}
}
