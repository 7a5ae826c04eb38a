package dialect

import (
	"github.com/lathe-run/lathe"
)

// An attempt is the state of one call for parsers that write the arguments themselves. It keeps the text of the
// call, so that the parser can emit it as text if the call is unreadable.
//
// If a call exceeds max_payload_bytes, the parser stays in its state, so that it finds the end of the call where a
// shorter one would end: keep emits the text of the call as unreadable, args drops the arguments, and end reports
// the error in place of the call's end.
type attempt struct {
	reader
	prose prose
	name  string     // of the tool, once it is known
	raw   []byte     // the text; after a failure its beginning only
	total int        // its length
	bad   lathe.Code // why it cannot be read
}

// WritesArguments reports that the argument text is JSON that the parser writes.
func (a *attempt) WritesArguments() bool { return true }

// begin begins an attempt with its first text.
func (a *attempt) begin(text string) {
	a.raw, a.total, a.bad, a.name = a.raw[:0], 0, "", ""
	a.keep(text)
}

// full reports whether s is too much for an attempt whose call is not open yet.
func (a *attempt) full(s string) bool {
	return !a.open && len(a.raw)+len(s) > a.opts.MaxPayloadBytes+maxTagBytes
}

// fit returns how many bytes of s, which is not empty, may be read at once: those that max_payload_bytes
// leaves room for, at the end of a rune, or all of s in a call that is too long already.
func (a *attempt) fit(s string) int {
	if a.bad != "" || !a.open {
		return len(s)
	}
	n := runeCut(s, min(len(s), max(0, a.opts.MaxPayloadBytes-a.total)))
	if n == 0 {
		a.ruin(lathe.CodePayloadTooLarge)
		return len(s)
	}
	return n
}

// keep counts s as a part of the attempt. It keeps s for the case that the attempt cannot be read, and gives s as
// text if that is known.
func (a *attempt) keep(s string) {
	a.total += len(s)
	if a.open && a.bad == "" && a.total > a.opts.MaxPayloadBytes {
		a.ruin(lathe.CodePayloadTooLarge)
	}
	if a.bad != "" {
		a.emit(lathe.DeltaText, s)
		s = s[:min(len(s), max(0, maxExcerptBytes-len(a.raw)))]
	}
	a.raw = appendKept(a.raw, s)
}

// ruin gives the attempt as text; the ParseError follows where it ends. The first code counts.
func (a *attempt) ruin(code lathe.Code) {
	if a.bad != "" {
		return
	}
	a.bad, a.unreadable, a.joins = code, true, true
	a.emit(lathe.DeltaText, string(a.raw))
	a.raw = a.raw[:min(len(a.raw), maxExcerptBytes)]
}

// end closes the open call, or reports why it cannot be read.
func (a *attempt) end(incomplete bool) {
	if a.open && a.total > a.opts.MaxPayloadBytes {
		a.ruin(lathe.CodePayloadTooLarge)
	}
	if a.bad != "" {
		a.report()
		return
	}
	a.reader.end(incomplete)
}

// report says that the attempt could not be read.
func (a *attempt) report() {
	a.fail(a.bad, a.name, string(a.raw), a.total)
	a.bad = ""
}

// giveUp ends an attempt that cannot be read.
func (a *attempt) giveUp() {
	a.report()
	a.leave()
}

// leave goes back to the text between calls.
func (a *attempt) leave() {
	a.raw = a.raw[:0]
	a.prose.mask.fresh()
}

// blank takes white space after a call, which is text only if text follows; false: it is text.
func (a *attempt) blank(text string) bool {
	if trimSpace(text) != "" || len(a.raw)+len(text) > maxGapBytes {
		return false
	}
	a.raw = append(a.raw, text...)
	return true
}

// spill gives the white space after a call as text.
func (a *attempt) spill() {
	a.prose.text(string(a.raw))
	a.raw = a.raw[:0]
}

// parameters are the names of the parameters that a call has so far.
type parameters struct {
	names []byte // one after another
	ends  []int
}

// maxParameters bounds the parameters of one call.
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

// add takes the next name and returns what stands before its value in the arguments. ok is false
// for a name that cannot be one or that comes twice: which value counts is not guessed.
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

// end returns what ends the arguments.
func (p *parameters) end() string {
	if len(p.ends) == 0 {
		return "{}"
	}
	return "}"
}
