package transform

import (
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/internal/text"
)

// faultTagCall counts the calls that were found in the text of an answer.
const faultTagCall = "tag_call"

const (
	tagOpen    = "<tool_call>"
	tagClose   = "</tool_call>"
	tagDialect = "hermes" // whose tag it is

	maxExcerpt  = 200      // bytes of what could not be read, in a ParseError
	maxGap      = 256      // bytes of white space after a call that wait for what follows
	maxBuffered = 64 << 10 // bytes of text from the first call on that wait for calls of the server's own
)

// A tagReader finds `<tool_call>…</tool_call>` in text that comes in pieces. Which tag is one, and
// not code, thinking or escaped, it learns from the dialect's own parser: that one gives the tag
// back where it is text. From a tag on the text is held, at most to the limit of a payload, up to
// the closing tag outside of JSON strings; see readCalls for what may stand between the two.
//
// What cannot be parsed stays text, byte for byte, and is reported as a ParseError. A body without its
// closing tag is a call if it is whole at the end of the text, and else incomplete.
type tagReader struct {
	tools   []*lathe.ToolSpec
	max     int
	emit    func(*lathe.Delta)
	dialect string // of the call that is being said
	found   []byte // the text from the first call on

	parser dialect.Parser
	deltas []lathe.Delta
	tail   string // of the text between tags: the beginning of an opening tag
	off    bool   // text is only text: the server has calls of its own
	gap    string // white space after a call
	after  bool   // nothing but white space came since a call

	inside  bool
	body    []byte // what is held, from the opening tag on
	state   bodyScan
	over    bool   // the body is beyond the limit: it is text that is being given, and body its end only
	excerpt string // its beginning
	total   int    // its whole length
	calls   int
}

func newTagReader(tools []*lathe.ToolSpec, limit int, emit func(*lathe.Delta)) *tagReader {
	t := &tagReader{tools: tools, max: limit, emit: emit}
	t.restart()
	return t
}

// restart begins a line of its own after a tag.
func (t *tagReader) restart() {
	d, _ := dialect.Lookup(tagDialect)
	t.parser = d.NewParser(nil)
	t.tail = ""
}

// stop takes all that follows for text.
func (t *tagReader) stop() {
	if !t.off {
		t.flush()
		t.off = true
	}
}

// takeBack takes all from the first call on for text, and returns what there is of it.
func (t *tagReader) takeBack() string {
	t.off, t.gap, t.after = true, "", false
	return string(t.found)
}

// read takes the next piece.
func (t *tagReader) read(text string) {
	if t.off {
		t.give(text)
		return
	}
	for text != "" {
		n := strings.IndexByte(text, '>') + 1
		if n == 0 {
			n = len(text)
		}
		found := t.calls > 0
		if t.inside {
			n = t.bodyPiece(text)
		} else {
			t.piece(text[:n])
		}
		switch {
		case found && len(t.found) <= maxBuffered: // past that it is not asked for
			t.found = append(t.found, text[:n]...)
		case !found && t.calls > 0:
			t.found = append(t.found, t.body...)
		}
		text = text[n:]
	}
}

// piece reads text between tags. It ends with the first > in it, if there is one.
func (t *tagReader) piece(s string) {
	t.deltas = t.parser.Append(t.deltas[:0], s)
	kept := t.passAll(t.deltas)
	t.tail += s
	t.tail = t.tail[max(0, len(t.tail)-len(tagOpen)):]
	if t.tail != tagOpen || kept {
		return
	}
	t.inside, t.over, t.total = true, false, len(tagOpen)
	t.body = append(t.body[:0], tagOpen...)
	t.state = bodyScan{}
}

// passAll gives what the parser says and reports whether it said the opening tag.
func (t *tagReader) passAll(deltas []lathe.Delta) (tag bool) {
	for i := range deltas {
		d := &deltas[i]
		if tag = strings.HasSuffix(d.Text, tagOpen); d.Kind == lathe.DeltaText {
			t.give(d.Text)
			continue
		}
		t.spillGap()
		t.emit(d)
	}
	return tag
}

// give gives text. White space after a call waits for what follows.
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

// giveBad gives text of a call that cannot be read.
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

// bodyPiece reads on inside of a tag and returns how much.
func (t *tagReader) bodyPiece(text string) int {
	for i := range len(text) {
		mark := t.state.next(text[i], t.body)
		t.total++
		if t.over && len(t.body) >= t.max {
			t.body = append(t.body[:0], t.body[len(t.body)-len(tagClose):]...)
		}
		t.body = append(t.body, text[i])
		switch {
		case mark == bodyEnds:
			if t.over {
				t.giveBad(text[:i+1])
				t.emitFailure(lathe.CodePayloadTooLarge, "")
			} else {
				t.end()
			}
			t.leave()
			return i + 1
		case mark == bodyBegins && !t.over: // another tag: the one before was none
			t.body = t.body[:len(t.body)-len(tagOpen)]
			t.total -= len(tagOpen)
			t.fail(lathe.CodePayloadParseError)
			t.body = append(t.body[:0], tagOpen...)
			t.total, t.state = len(tagOpen), bodyScan{}
		case !t.over && len(t.body) > t.max+len(tagOpen)+len(tagClose):
			t.giveBad(string(t.body))
			t.excerpt = t.head()
			t.over = true
			return i + 1
		}
	}
	if t.over {
		t.giveBad(text)
	}
	return len(text)
}

func (t *tagReader) leave() {
	t.inside = false
	t.restart()
}

// end reads the body, which is whole.
func (t *tagReader) end() {
	inner := string(t.body[len(tagOpen):])
	inner = strings.TrimSuffix(inner, tagClose)
	calls, ok := readCalls(inner, t.tools, t.max)
	if !ok {
		t.fail(lathe.CodePayloadParseError)
		return
	}
	t.emitCalls(calls)
}

func (t *tagReader) emitCalls(calls []tagCall) {
	t.gap = "" // between two calls
	for i := range calls {
		c := &calls[i]
		t.calls++
		t.dialect = c.dialect
		id := c.id
		if id == "" {
			id = tagCallID(t.calls)
		}
		t.emit(&lathe.Delta{Kind: lathe.DeltaCallStart, ID: id, Name: c.name})
		if c.args != "" {
			t.emit(&lathe.Delta{Kind: lathe.DeltaCallArgs, Text: c.args})
		}
		t.emit(&lathe.Delta{Kind: lathe.DeltaCallEnd})
	}
	t.after = true
}

// fail emits the body as text and reports that it cannot be read.
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

// head returns the beginning of the body, cut between runes.
func (t *tagReader) head() string {
	return string(text.Cut(t.body, maxExcerpt))
}

// flush ends the text.
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
	default:
		if calls, ok := readCalls(string(t.body[len(tagOpen):]), t.tools, t.max); ok && t.state.closed() {
			t.emitCalls(calls)
		} else {
			t.fail(lathe.CodeIncompleteCall)
		}
	}
	t.leave()
	t.gap, t.after = "", false
}
