package dialect

import (
	"github.com/lathe-run/lathe"
)

// An attempt is one call while it is read, by the parsers that write the arguments themselves. It stores the text of the call, so that
// the parser can return it as text if the call is unreadable.
//
// An attempt begins with begin. All its text is passed to keep; in an open call, checkLimit first says how much may be read at once. A readable
// attempt ends with end. An unreadable one has two steps: markUnreadable emits its text so far as text, and keep emits the rest; at its end,
// report emits the ParseError. becomeUnreadable and reject are markUnreadable for parsers that then only search for the end of the call,
// where endUnreadable reports it.
//
// If a call exceeds max_payload_bytes, the parser continues in its state, so that it finds the same end of the call as it would in a
// shorter one: keep emits the text of the call as unreadable, args drops the arguments, and end reports the error instead of closing the
// call.
type attempt struct {
	reader
	prose  prose
	name   string     // the name of the tool; "" before it is read
	raw    []byte     // the text of the call; once bad is set, only its first maxExcerptBytes
	total  int        // the length of the call so far, in bytes
	bad    lathe.Code // why the call is unreadable; "" while it is readable
	depth  int        // number of open marks in an unreadable call
	exempt int        // number of bytes of the call that do not count against max_payload_bytes

	// For the parsers that use readTokens:
	place         place
	opens, closes int // the marks around a call; both noMark if the call has none
}

// A place is the position of a token relative to the calls.
type place uint8

const (
	betweenCalls place = iota
	afterCall          // after a call, where white space is buffered
	insideCall
	insideUnreadable // in an unreadable call, up to its closing mark
)

const noMark = -2 // the index of no mark; that of text is -1

// A callSyntax reads the tokens of the scanner: runs of text (mark is negative) and marks.
type callSyntax interface {
	outside(text string, mark int) // between calls
	inside(text string, mark int)  // inside a call that is readable so far
}

// readTokens reads the input.
func (a *attempt) readTokens(s callSyntax) {
	for {
		text, mark, ok := a.next()
		if !ok {
			return
		}
		if a.place == afterCall {
			if mark < 0 && a.bufferBlank(text) {
				continue
			}
			a.endGap(mark)
		}
		switch a.place {
		case insideCall:
			s.inside(text, mark)
		case insideUnreadable:
			a.keep(text)
			a.nest(mark)
		default:
			s.outside(text, mark)
		}
	}
}

// reject marks the attempt as unreadable because of text or mark, which the syntax does not allow here.
func (a *attempt) reject(text string, mark int) {
	a.becomeUnreadable(lathe.CodePayloadParseError)
	a.keep(text)
	a.nest(mark)
}

// becomeUnreadable marks the attempt as unreadable. It ends at the closing mark that matches its first, or at the end of the text if it has no marks.
func (a *attempt) becomeUnreadable(code lathe.Code) {
	a.markUnreadable(code)
	a.depth, a.place = 1, insideUnreadable
}

// nest counts the nested marks in an unreadable attempt, and ends the attempt after the last.
func (a *attempt) nest(mark int) {
	switch mark {
	case a.opens:
		a.depth++
	case a.closes:
		a.depth--
	}
	if a.depth == 0 {
		a.endUnreadable()
	}
}

// WritesArguments returns true: the parser writes the arguments of calls as JSON.
func (a *attempt) WritesArguments() bool { return true }

// begin starts a new attempt, whose text begins with text.
func (a *attempt) begin(text string) {
	a.raw, a.total, a.exempt, a.bad, a.name = a.raw[:0], 0, 0, "", ""
	a.keep(text)
}

// full reports whether the attempt would become too long with s, before the call is open: the limit is max_payload_bytes and maxTagBytes.
func (a *attempt) full(s string) bool {
	return !a.open && len(a.raw)+len(s) > a.opts.MaxPayloadBytes+maxTagBytes
}

// limit returns the maximal length of the call, in bytes.
func (a *attempt) limit() int { return a.opts.MaxPayloadBytes + a.exempt }

// checkLimit returns how many bytes of s, which is not empty, the parser may read at once: as many as max_payload_bytes leaves room for, up
// to the end of a rune, or all of s if the call already exceeds the limit. If there is no room, it marks the call as unreadable.
func (a *attempt) checkLimit(s string) int {
	if a.bad != "" || !a.open {
		return len(s)
	}
	n := runeCut(s, min(len(s), max(0, a.limit()-a.total)))
	if n == 0 {
		a.markUnreadable(lathe.CodePayloadTooLarge)
		return len(s)
	}
	return n
}

// keep appends s to the text of the attempt and counts it. If the attempt is unreadable, it emits s as text and stores only the excerpt.
func (a *attempt) keep(s string) {
	a.total += len(s)
	if a.open && a.bad == "" && a.total > a.limit() {
		a.markUnreadable(lathe.CodePayloadTooLarge)
	}
	if a.bad != "" {
		a.emit(lathe.DeltaText, s)
		s = s[:min(len(s), max(0, maxExcerptBytes-len(a.raw)))]
	}
	a.raw = append(a.raw, s...)
}

// markUnreadable marks the attempt as unreadable and emits its text as text. The ParseError follows at the end of the attempt, with the code of the
// first call.
func (a *attempt) markUnreadable(code lathe.Code) {
	if a.bad != "" {
		return
	}
	a.bad, a.unreadable, a.joins = code, true, true
	a.emit(lathe.DeltaText, string(a.raw))
	a.raw = a.raw[:min(len(a.raw), maxExcerptBytes)]
}

// end closes the open call, or emits its ParseError if it is unreadable. incomplete says that the text of the model ended inside the
// call.
func (a *attempt) end(incomplete bool) {
	if a.open && a.total > a.limit() {
		a.markUnreadable(lathe.CodePayloadTooLarge)
	}
	if a.bad != "" {
		a.report()
		return
	}
	a.reader.end(incomplete)
}

// report emits the ParseError of the attempt.
func (a *attempt) report() {
	a.fail(a.bad, a.name, string(a.raw), a.total)
	a.bad = ""
}

// endUnreadable emits the ParseError of the attempt and returns to the text between calls.
func (a *attempt) endUnreadable() {
	a.report()
	a.leave()
}

// leave clears the text of the attempt; what follows is text between calls.
func (a *attempt) leave() {
	a.raw, a.place = a.raw[:0], betweenCalls
	a.prose.mask.fresh()
}

// bufferBlank buffers white space after a call, which is emitted only if text follows it. It returns false if text is not white space or the
// buffered part would exceed maxGapBytes.
func (a *attempt) bufferBlank(text string) bool {
	if trimSpace(text) != "" || len(a.raw)+len(text) > maxGapBytes {
		return false
	}
	a.raw = append(a.raw, text...)
	return true
}

// endGap returns to the text between calls at a token after a call. The buffered white space is text unless a mark of a call follows.
func (a *attempt) endGap(mark int) {
	if mark < 0 || mark >= a.prose.base {
		a.spill()
	}
	a.place = betweenCalls
}

// spill emits the white space buffered by bufferBlank as text.
func (a *attempt) spill() {
	a.prose.text(string(a.raw))
	a.raw = a.raw[:0]
}

// parameters are the names of the parameters that a call has so far, to find duplicates.
type parameters struct {
	names []byte // the names, concatenated
	ends  []int  // for each name, the offset in names of its end
}

// maxParameters is the maximal number of parameters of one call.
const maxParameters = 256

func (p *parameters) reset() { p.names, p.ends = p.names[:0], p.ends[:0] }

func (p *parameters) has(name string) bool {
	from := 0
	for _, to := range p.ends {
		if string(p.names[from:to]) == name {
			return true
		}
		from = to
	}
	return false
}

// add records the next name and returns the JSON that precedes its value in the arguments: "{" or ",", the name and ":". ok is false if
// the name is empty, longer than maxNameBytes or a duplicate, or if there are maxParameters already.
func (p *parameters) add(name []byte) (prefix string, ok bool) {
	if len(name) == 0 || len(name) > maxNameBytes || len(p.ends) == maxParameters || p.has(string(name)) {
		return "", false
	}
	before := ","
	if len(p.ends) == 0 {
		before = "{"
	}
	p.names = append(p.names, name...)
	p.ends = append(p.ends, len(p.names))
	return memberPrefix(before, name), true
}

// end returns the JSON that ends the arguments.
func (p *parameters) end() string {
	if len(p.ends) == 0 {
		return "{}"
	}
	return "}"
}
