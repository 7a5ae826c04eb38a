package transform

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/internal/text"
)

// faultTagCall is the fault that counts calls found in the text of an answer.
const faultTagCall = "tag_call"

const (
	tagOpen    = "<tool_call>"
	tagClose   = "</tool_call>"
	tagDialect = "hermes" // the dialect whose calls are in these tags

	maxExcerpt  = 200      // bytes of unreadable text in a ParseError
	maxGap      = 256      // bytes of white space after a call that are buffered until other text follows
	maxBuffered = 64 << 10 // bytes of text from the first call on that are stored in case the server also sends calls
)

// A tagReader finds `<tool_call>…</tool_call>` in text that is received in pieces. The parser of the dialect decides which tags are real,
// not part of code, thinking or an escape: where a tag is text, the parser returns it as text. From a real tag on, the text is buffered up
// to the closing tag outside of JSON strings, at most to the limit of a payload; readCalls lists the forms that the body may have.
//
// What cannot be parsed stays text, byte for byte, and is reported as a ParseError. If the text ends before the closing tag, a complete
// body is a call, and any other body is reported as incomplete.
type tagReader struct {
	tools   []*lathe.ToolSpec
	max     int
	emit    func(*lathe.Delta)
	dialect string // dialect of the call being emitted
	stored  []byte // the text from the first call on, up to maxBuffered
	calls   int    // number of calls found
	off     bool   // calls in the text are not read, because the server sends calls itself

	// Between tags.
	parser dialect.Parser
	deltas []lathe.Delta
	tail   string // end of the text between tags, at most as long as an opening tag
	gap    string // white space after a call, buffered
	after  bool   // since the last call only white space was received

	// Inside a tag, from its opening tag on.
	inside  bool
	body    []byte // the buffered text, from the opening tag on
	state   bodyScan
	over    bool   // the body is beyond the limit: it is emitted as text, and body has only its last bytes
	excerpt string // the beginning of a body that is beyond the limit
	total   int    // length of the body in bytes, with its tags
}

func newTagReader(tools []*lathe.ToolSpec, limit int, emit func(*lathe.Delta)) *tagReader {
	t := &tagReader{tools: tools, max: limit, emit: emit}
	t.restart()
	return t
}

// restart sets a new parser, so that the text after a tag is parsed like the start of a line.
func (t *tagReader) restart() {
	d, _ := dialect.Lookup(tagDialect)
	t.parser = d.NewParser(nil)
	t.tail = ""
}

// stop ends the search for calls: all text that follows is plain text.
func (t *tagReader) stop() {
	if !t.off {
		t.flush()
		t.off = true
	}
}

// takeBack makes plain text of all text from the first call on. It returns the part of it that was stored, at most about maxBuffered bytes.
func (t *tagReader) takeBack() string {
	t.off, t.gap, t.after = true, "", false
	return string(t.stored)
}

// read reads the next piece of the text.
func (t *tagReader) read(text string) {
	if t.off {
		t.give(text)
		return
	}
	for text != "" {
		hadCalls := t.calls > 0
		n := t.readPiece(text)
		switch {
		case hadCalls && len(t.stored) <= maxBuffered: // beyond that limit it is never returned
			t.stored = append(t.stored, text[:n]...)
		case !hadCalls && t.calls > 0: // body is that of the first call
			t.stored = append(t.stored, t.body...)
		}
		text = text[n:]
	}
}

// readPiece reads the beginning of text, inside or outside of a tag, and returns its length in bytes.
func (t *tagReader) readPiece(text string) int {
	if t.inside {
		return t.bodyPiece(text)
	}
	n := strings.IndexByte(text, '>') + 1
	if n == 0 {
		n = len(text)
	}
	t.piece(text[:n])
	return n
}

// piece reads text between tags. text ends with its first > if it has one, so that an opening tag can only be at its end.
func (t *tagReader) piece(s string) {
	t.deltas = t.parser.Append(t.deltas[:0], s)
	isText := t.passAll(t.deltas)
	t.tail += s
	t.tail = t.tail[max(0, len(t.tail)-len(tagOpen)):]
	if t.tail != tagOpen || isText {
		return
	}
	t.inside = true
	t.beginBody()
}

// beginBody begins the body at an opening tag.
func (t *tagReader) beginBody() {
	t.body = append(t.body[:0], tagOpen...)
	t.total, t.over, t.state = len(tagOpen), false, bodyScan{}
}

// passAll emits the deltas of the parser. It reports whether the last one ends with an opening tag, which is then text.
func (t *tagReader) passAll(deltas []lathe.Delta) (endsInTag bool) {
	for i := range deltas {
		d := &deltas[i]
		endsInTag = strings.HasSuffix(d.Text, tagOpen)
		if d.Kind == lathe.DeltaText {
			t.give(d.Text)
			continue
		}
		t.spillGap()
		t.emit(d)
	}
	return endsInTag
}

// give emits text. White space after a call is buffered until other text follows.
func (t *tagReader) give(s string) {
	if s == "" {
		return
	}
	if t.after && len(t.gap)+len(s) <= maxGap && strings.TrimSpace(s) == "" {
		t.gap += s
		return
	}
	t.spillGap()
	t.emit(&lathe.Delta{Kind: lathe.DeltaText, Text: s})
}

// giveBad emits text of a call that cannot be read.
func (t *tagReader) giveBad(s string) {
	t.spillGap()
	if s != "" {
		t.emit(&lathe.Delta{Kind: lathe.DeltaText, Text: s, Unreadable: true})
	}
}

func (t *tagReader) spillGap() {
	gap := t.gap
	t.gap, t.after = "", false
	if gap != "" {
		t.emit(&lathe.Delta{Kind: lathe.DeltaText, Text: gap})
	}
}

// bodyPiece reads the part of text that belongs to the body of a tag and returns its length in bytes.
func (t *tagReader) bodyPiece(text string) int {
	for i := range len(text) {
		mark := t.addByte(text[i])
		switch {
		case mark == bodyEnds:
			t.endBody(text[:i+1])
			return i + 1
		case t.over: // no other mark counts
		case mark == bodyBegins:
			t.beginAgain()
		case len(t.body) > t.max+len(tagOpen)+len(tagClose):
			t.giveBad(string(t.body))
			t.excerpt, t.over = t.head(), true
			return i + 1
		}
	}
	if t.over {
		t.giveBad(text)
	}
	return len(text)
}

// addByte appends c to the body and returns what it means there. Of a body beyond the limit it stores only the end, to find a closing tag.
func (t *tagReader) addByte(c byte) bodyMark {
	mark := t.state.next(c, t.body)
	t.total++
	if t.over && len(t.body) >= t.max {
		t.body = append(t.body[:0], t.body[len(t.body)-len(tagClose):]...)
	}
	t.body = append(t.body, c)
	return mark
}

// endBody ends the body at its closing tag. last is the end of it that giveBad has not emitted, if the body is beyond the limit.
func (t *tagReader) endBody(last string) {
	if t.over {
		t.giveBad(last)
		t.emitFailure(lathe.CodePayloadTooLarge, "")
	} else {
		t.readInner(strings.TrimSuffix(string(t.body[len(tagOpen):]), tagClose), lathe.CodePayloadParseError)
	}
	t.leave()
}

// beginAgain begins the body at a second opening tag: the text from the first one on was no call.
func (t *tagReader) beginAgain() {
	t.body = t.body[:len(t.body)-len(tagOpen)]
	t.total -= len(tagOpen)
	t.fail(lathe.CodePayloadParseError)
	t.beginBody()
}

func (t *tagReader) leave() {
	t.inside = false
	t.restart()
}

// readInner reads inner, the body without its tags: it emits its calls or, if inner cannot be read, a failure with code.
func (t *tagReader) readInner(inner string, code lathe.Code) {
	calls, ok := readCalls(inner, t.tools, t.max)
	if ok {
		t.emitCalls(calls)
	} else {
		t.fail(code)
	}
}

func (t *tagReader) emitCalls(calls []tagCall) {
	t.gap = "" // between two calls
	for i := range calls {
		c := &calls[i]
		t.calls++
		t.dialect = c.dialect
		t.emit(&lathe.Delta{Kind: lathe.DeltaCallStart, ID: cmp.Or(c.id, "tag_call_"+strconv.Itoa(t.calls)), Name: c.name})
		if c.args != "" {
			t.emit(&lathe.Delta{Kind: lathe.DeltaCallArgs, Text: c.args})
		}
		t.emit(&lathe.Delta{Kind: lathe.DeltaCallEnd})
	}
	t.after = true
}

// fail emits the body as text and reports a ParseError with code.
func (t *tagReader) fail(code lathe.Code) {
	t.giveBad(string(t.body))
	t.emitFailure(code, nameIn(string(t.body[len(tagOpen):])))
}

func (t *tagReader) emitFailure(code lathe.Code, name string) {
	t.spillGap()
	if !t.over {
		t.excerpt = t.head()
	}
	t.emit(&lathe.Delta{Kind: lathe.DeltaParseError, Index: -1, Code: code, Name: name, Text: t.excerpt, Bytes: t.total})
}

// head returns the first maxExcerpt bytes of the body, without a rune cut in two.
func (t *tagReader) head() string {
	return string(text.Cut(t.body, maxExcerpt))
}

// flush ends the text: it emits what is buffered, as a call if the body is complete.
func (t *tagReader) flush() {
	if t.off {
		return
	}
	switch {
	case !t.inside:
		t.deltas, _ = t.parser.Flush(t.deltas[:0]) // it is inside of no call
		t.passAll(t.deltas)
	case t.over:
		t.emitFailure(lathe.CodePayloadTooLarge, "")
	case t.state.closed():
		t.readInner(string(t.body[len(tagOpen):]), lathe.CodeIncompleteCall)
	default:
		t.fail(lathe.CodeIncompleteCall)
	}
	t.leave()
	t.gap, t.after = "", false
}
