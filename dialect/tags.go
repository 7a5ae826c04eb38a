package dialect

import (
	"strings"

	"github.com/lathe-run/lathe"
)

// maxTagBytes bounds an opening tag; beyond it, it is text.
const maxTagBytes = 512

// maxShutSpaceBytes bounds the white space between a call of the short form and a closing tag that belongs to it.
const maxShutSpaceBytes = 16

// The marks of tags, by their place in the list.
const (
	tagClose = iota
	tagOpen  // the first of four, one for each kind of white space
	tagShort = tagOpen + 4
)

var (
	tagOpenings = []string{"<tool ", "<tool\n", "<tool\t", "<tool\r"}
	tagsCalls   = append([]string{"</tool>"}, tagOpenings...)
	tagsMarks   = newMarks(true, withThink(tagsCalls, plainThink)...)
	// With the deprecated short form.
	oldTagsCalls = append(tagsCalls[:len(tagsCalls):len(tagsCalls)], "<tool:")
	oldTagsMarks = newMarks(true, withThink(oldTagsCalls, plainThink)...)
)

// tags reads `<tool name="NAME" args>{JSON}</tool>` and, where it is allowed, `<tool:NAME>{JSON}`.
// In Markdown code, and after a backslash, both are text.
type tags struct {
	reader
	prose prose
	state tagsState
	short bool // the open tag is of the short form
	quote byte // the open quote in a tag
	name  string
	raw   []byte // the attempt from its `<` on; after a failure its beginning only
	body  int    // bytes of the body
	js    jsonScan

	bad   lathe.Code // why the attempt cannot be read
	total int        // its length
	depth int        // tags open in it
}

type tagsState uint8

const (
	tagsText tagsState = iota
	tagsHead           // inside the opening tag
	tagsBody           // before the arguments
	tagsArgs
	tagsOver // inside arguments that are too large
	tagsEnd  // after them
	tagsShut // after a call of the short form: a closing tag, which it does not need, may follow
	tagsBad  // inside an attempt that cannot be read, up to its closing tag
)

func newTags(o Options) Parser {
	t := &tags{reader: newReader(o, tagsMarks)}
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
		case tagsHead, tagsBody, tagsArgs, tagsOver, tagsShut:
			if t.in == "" {
				return
			}
			t.attempt()
		default:
			text, mark, ok := t.next()
			if !ok {
				return
			}
			t.token(text, mark)
		}
	}
}

// token takes what the scanner found outside of a tag and its arguments.
func (t *tags) token(text string, mark int) {
	opens := mark >= tagOpen && mark < t.prose.base
	switch t.state {
	case tagsText:
		switch {
		case mark < 0:
			t.prose.text(text)
		case t.prose.mark(mark, text):
		case opens:
			t.state, t.short = tagsHead, mark == tagShort
			t.raw = append(t.raw[:0], text...)
			t.quote, t.name, t.body = 0, "", 0
		default:
			t.prose.text(text)
		}
	case tagsEnd:
		switch {
		case mark == tagClose, t.last && mark < 0 && begins(tagsCalls[tagClose], text):
			t.end(false)
			t.text()
		case mark < 0 && trimSpace(text) == "" && len(t.raw)+len(text) <= t.limit():
			t.raw = append(t.raw, text...)
		default:
			t.spoil(lathe.CodePayloadParseError)
			t.token(text, mark)
		}
	case tagsBad:
		t.more(text)
		if opens {
			t.depth++
		} else if mark == tagClose {
			t.depth--
		}
		if t.depth == 0 {
			t.giveUp()
		}
	}
}

// begins reports whether s, but for white space before it, is a beginning of mark.
func begins(mark, s string) bool {
	return strings.HasPrefix(mark, strings.ToLower(trimSpace(s)))
}

// limit bounds raw: the largest payload, and what may stand around it.
func (t *tags) limit() int { return t.opts.MaxPayloadBytes + 2*maxTagBytes }

// text goes back to the text between calls.
func (t *tags) text() {
	t.state = tagsText
	t.prose.mask.fresh()
}

// attempt reads on in a tag or its arguments.
func (t *tags) attempt() {
	switch t.state {
	case tagsHead:
		t.head()
	case tagsBody:
		c := t.in[0]
		switch {
		case c == '{':
			t.js = jsonScan{lax: true}
			t.start("", t.toolName([]byte(t.name)), t.short)
			t.state = tagsArgs
		case space(c) && t.body < t.opts.MaxPayloadBytes:
			t.raw = append(t.raw, c)
			t.body++
			t.in = t.in[1:]
		default:
			t.spoil(lathe.CodePayloadParseError)
		}
	case tagsArgs:
		n := t.js.scan(t.in[:min(len(t.in), t.opts.MaxPayloadBytes-t.body)])
		part := t.take(n)
		t.body += n
		t.raw = appendKept(t.raw, part)
		t.args(part)
		switch {
		case t.js.state == jsonDone:
			t.state = tagsEnd
			if t.short {
				t.end(false)
				t.after()
			}
		case t.js.state == jsonBad:
			t.spoil(lathe.CodePayloadParseError)
		case t.in != "":
			t.spoil(lathe.CodePayloadTooLarge)
		}
	case tagsShut:
		t.shut()
	case tagsOver:
		t.more(t.take(t.js.scan(t.in)))
		if t.js.state == jsonDone || t.js.state == jsonBad {
			t.state = tagsBad
			if t.short {
				t.giveUp()
			}
		}
	}
}

// after begins to look for a closing tag that a call of the short form does not need.
func (t *tags) after() {
	t.state, t.raw = tagsShut, t.raw[:0]
}

// shut reads the closing tag after a call of the short form, and white space before it. Anything else is text.
func (t *tags) shut() {
	for t.in != "" {
		t.raw = append(t.raw, t.in[0])
		switch whole, begun := t.closesShort(); {
		case whole:
			t.in = t.in[1:]
			t.text()
			return
		case !begun:
			t.in = string(t.raw[:len(t.raw)-1]) + t.in
			t.text()
			return
		}
		t.in = t.in[1:]
	}
}

// closesShort reports whether raw is a closing tag of the call after white space, or the beginning of one.
func (t *tags) closesShort() (whole, begun bool) {
	tag := strings.ToLower(trimSpace(string(t.raw)))
	if tag == "" {
		return false, len(t.raw) <= maxShutSpaceBytes
	}
	for _, shut := range [...]string{"</tool>", "</tool_call>", "</tool:" + strings.ToLower(t.name) + ">"} {
		whole = whole || tag == shut
		begun = begun || strings.HasPrefix(shut, tag)
	}
	return whole, begun
}

// head reads on in the opening tag.
func (t *tags) head() {
	for t.in != "" {
		c := t.in[0]
		switch {
		case len(t.raw) >= maxTagBytes, c == '<' && t.quote == 0, t.short && c != '>' && !isNameByte(c):
			t.notATag(lathe.CodePayloadParseError)
			return
		case t.quote != 0:
			if c == t.quote {
				t.quote = 0
			}
		case c == '"' || c == '\'':
			t.quote = c
		case c == '>':
			t.raw = append(t.raw, c)
			t.in = t.in[1:]
			t.headDone()
			return
		}
		t.raw = append(t.raw, c)
		t.in = t.in[1:]
	}
}

// headDone reads the opening tag, which is whole.
func (t *tags) headDone() {
	inner := string(t.raw[len("<tool") : len(t.raw)-1])
	if t.short {
		if t.name = inner[1:]; isToolName(t.name) {
			t.state = tagsBody
			return
		}
		t.name = ""
		t.notATag("")
		return
	}
	tag := readTag(inner)
	t.name = tag.name
	switch {
	case tag.name != "" && !tag.broken && !tag.closed:
		t.state = tagsBody
	case tag.closed && tag.looksLikeCall():
		t.spoil(lathe.CodePayloadParseError)
		t.giveUp()
	case tag.looksLikeCall():
		t.spoil(lathe.CodePayloadParseError)
	default:
		t.notATag("")
	}
}

// notATag emits as text what began like an opening tag. If code is set, the text was meant as a tag, and it reports an error.
func (t *tags) notATag(code lathe.Code) {
	inner := string(t.raw[len("<tool"):])
	t.state = tagsText
	if t.short || code == "" || !readTag(inner).looksLikeCall() {
		t.prose.text(string(t.raw))
		return
	}
	t.cut = t.cut || code == lathe.CodeIncompleteCall
	t.spoil(code)
	t.giveUp()
}

// spoil turns the attempt into text; the ParseError follows where it ends.
func (t *tags) spoil(code lathe.Code) {
	t.bad, t.depth, t.total, t.unreadable = code, 1, len(t.raw), true
	t.emit(lathe.DeltaText, string(t.raw))
	t.raw = t.raw[:min(len(t.raw), maxExcerptBytes)]
	t.state = tagsBad
	switch {
	case code == lathe.CodePayloadTooLarge:
		t.state = tagsOver
	case t.short:
		t.giveUp()
	}
}

// more reads on in an attempt that cannot be read.
func (t *tags) more(s string) {
	t.total += len(s)
	t.raw = append(t.raw, s[:min(len(s), max(0, maxExcerptBytes-len(t.raw)))]...)
	t.emit(lathe.DeltaText, s)
}

// giveUp ends the attempt.
func (t *tags) giveUp() {
	t.fail(t.bad, t.toolName([]byte(t.name)), string(t.raw), t.total)
	if t.text(); t.short {
		t.after()
	}
}

// close ends the text.
func (t *tags) finish() {
	switch t.state {
	case tagsHead:
		t.notATag(lathe.CodeIncompleteCall)
	case tagsBody:
		t.cut = true
		t.spoil(lathe.CodeIncompleteCall)
		if t.state == tagsBad {
			t.giveUp()
		}
	case tagsArgs:
		t.end(true)
	case tagsEnd:
		t.end(false)
	case tagsShut:
		t.text()
		t.prose.text(string(t.raw))
	case tagsOver, tagsBad:
		t.giveUp()
	}
}
