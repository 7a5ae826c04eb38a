package dialect

import (
	"slices"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/text"
)

// maxExcerptBytes is the maximal length of the text of a ParseError.
const maxExcerptBytes = 200

// A reader is the common part of all parsers: the scanner, and the deltas that it returns.
type reader struct {
	scanner
	out   []lathe.Delta // the deltas of the current Append
	opts  Options
	calls int  // number of calls started
	open  bool // a call is open
	cut   bool // the text ended inside a call
	// unreadable is true while a call is read that is known to be unreadable: its text is emitted with Unreadable set, and its arguments
	// are dropped. fail resets it.
	unreadable bool
	inPrefix   bool    // the parser reads the end of the prompt
	mended     int     // number of tool names from which residue of the format was removed
	run        func()  // parses the field in
	close      func()  // closes what is open at the end of the text
	thought    thought // see Thinker

	// Small text deltas, which join merges: the delta at joint-1 gets its text, small, in flushJoined.
	joins bool   // merge many small text deltas into few
	from  int    // index in out of the first delta of this Append
	joint int    // index in out, plus 1, of the delta whose text is in small; 0 if none exists
	small []byte // small texts, concatenated

	// The end of the text so far, which is read with the next text.
	holdsEnds bool              // tokens that end the turn are buffered: they are not part of a call that they truncate
	tail      string            // buffered tokens at the end of the text so far that may end the turn
	rune      [utf8.UTFMax]byte // an incomplete rune at the end of the piece before
	nrune     int               // number of bytes in rune
}

func newReader(o Options, m *marks) reader {
	return reader{scanner: scanner{marks: m}, opts: o, holdsEnds: true, close: func() {}}
}

// Append implements [Parser]. Tokens at the end of text that may end the turn are buffered, and read with the next text.
func (r *reader) Append(dst []lathe.Delta, text string) []lathe.Delta {
	if !r.holdsEnds || text == "" {
		return r.pass(dst, text)
	}
	switch {
	case r.tail == "":
	case continuesTurnEnd(r.tail, text):
		text = r.tail + text
	default:
		dst = r.pass(dst, r.tail)
	}
	n, _ := turnTail(text)
	r.tail = text[len(text)-n:]
	return r.pass(dst, text[:len(text)-n])
}

// pass reads text in one or two pieces that end at whole runes. Invalid UTF-8 is passed on unchanged.
func (r *reader) pass(dst []lathe.Delta, text string) []lathe.Delta {
	r.out, r.from = dst, len(dst)
	if r.nrune > 0 && text != "" {
		for text != "" && r.nrune < utf8.UTFMax && !utf8.RuneStart(text[0]) && !utf8.FullRune(r.rune[:r.nrune]) {
			r.rune[r.nrune] = text[0]
			r.nrune++
			text = text[1:]
		}
		if text != "" || utf8.FullRune(r.rune[:r.nrune]) {
			r.in = string(r.rune[:r.nrune])
			r.nrune = 0
			r.run()
		}
	}
	if text != "" && text[len(text)-1] >= utf8.RuneSelf {
		n := brokenTail(text)
		r.nrune = copy(r.rune[:], text[len(text)-n:])
		text = text[:len(text)-n]
	}
	if text != "" {
		r.in = text
		r.run()
	}
	r.flushJoined()
	dst, r.out = r.out, nil
	return dst
}

// Flush implements [Parser]. It reads the buffered tokens, except tokens that end the turn inside a call, the buffered bytes of a
// truncated rune, and the text that the scanner has buffered.
func (r *reader) Flush(dst []lathe.Delta) ([]lathe.Delta, error) {
	if r.tail != "" {
		_, isWhole := turnTail(r.tail)
		endsCall := isWhole && r.open
		if !endsCall {
			dst = r.pass(dst, r.tail)
		}
	}
	r.out, r.from = dst, len(dst)
	r.last = true
	r.in = string(r.rune[:r.nrune])
	r.nrune = 0
	r.run()
	r.close()
	r.flushJoined()
	dst, r.out = r.out, nil
	if r.cut {
		return dst, ErrIncomplete
	}
	return dst, nil
}

// brokenTail returns the length of the incomplete rune at the end of s, or 0.
func brokenTail(s string) int {
	for n := 1; n < utf8.UTFMax && n <= len(s); n++ {
		if tail := s[len(s)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRuneInString(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}

// emit appends a delta of text, or joins text to the last one.
func (r *reader) emit(kind lathe.DeltaKind, text string) {
	if text == "" {
		return
	}
	hasMany := r.joins && kind == lathe.DeltaText && len(r.out)-r.from >= maxPieces
	if hasMany && r.join(text) {
		return
	}
	r.out = append(r.out, lathe.Delta{Kind: kind, Text: text, Unreadable: r.unreadable && kind == lathe.DeltaText})
}

// A long piece of text that is full of marks which open no call would produce a delta every few bytes. From maxPieces deltas on, texts of
// at most maxSmallBytes are joined, up to maxJointBytes.
const (
	maxPieces     = 16
	maxSmallBytes = 64
	maxJointBytes = 4096
)

// join joins text to the last delta, if both are small. It returns false if it did not.
func (r *reader) join(text string) bool {
	n := len(r.out)
	last := &r.out[n-1]
	switch {
	case len(text) > maxSmallBytes || last.Kind != lathe.DeltaText || last.Unreadable != r.unreadable:
		return false
	case r.joint == n:
		if len(r.small)+len(text) > maxJointBytes {
			return false
		}
	case len(last.Text) > maxSmallBytes:
		return false
	default:
		r.flushJoined()
		r.joint, r.small = n, append(r.small, last.Text...)
	}
	r.small = append(r.small, text...)
	return true
}

// flushJoined sets the joined text of its delta.
func (r *reader) flushJoined() {
	if r.joint > 0 {
		r.out[r.joint-1].Text = string(r.small)
		r.joint, r.small = 0, r.small[:0]
	}
}

// start opens a call. If id is "", it generates one.
func (r *reader) start(id, name string) {
	if id == "" {
		id = r.newID()
	}
	r.startWithID(id, name)
}

// startWithID opens a call with this id, "" if the id follows the arguments.
func (r *reader) startWithID(id, name string) {
	r.out = append(r.out, lathe.Delta{Kind: lathe.DeltaCallStart, Index: r.calls, ID: id, Name: name})
	r.calls++
	r.open = true
}

// args emits the next piece of the open call's arguments, unless the call is unreadable.
func (r *reader) args(text string) {
	if text != "" && !r.unreadable {
		r.out = append(r.out, lathe.Delta{Kind: lathe.DeltaCallArgs, Index: r.calls - 1, Text: text})
	}
}

// How a call ends, for the methods end and close.
const (
	whole     = false
	truncated = true // the text of the model ended inside the call
)

// end closes the open call.
func (r *reader) end(incomplete bool) {
	r.out = append(r.out, lathe.Delta{Kind: lathe.DeltaCallEnd, Index: r.calls - 1, Incomplete: incomplete})
	r.open = false
	r.cut = r.cut || incomplete
}

// fail emits a ParseError. If a call is open, the ParseError revokes it and CallEnd follows. excerpt is the beginning of the call's text,
// n the length of the whole.
func (r *reader) fail(code lathe.Code, name, excerpt string, n int) {
	r.unreadable = false
	index := -1
	if r.open {
		index = r.calls - 1
	}
	r.out = append(r.out, lathe.Delta{Kind: lathe.DeltaParseError, Index: index, Name: name, Code: code,
		Text: head(excerpt), Bytes: n})
	if r.open {
		r.out = append(r.out, lathe.Delta{Kind: lathe.DeltaCallEnd, Index: index, Incomplete: true})
		r.open = false
	}
}

// head returns the beginning of s, at most maxExcerptBytes long, cut between runes.
func head(s string) string {
	if len(s) < maxExcerptBytes {
		return s
	}
	s = s[:maxExcerptBytes]
	return s[:len(s)-brokenTail(s)]
}

// toolName returns the name of the offered tool that name denotes, with or without residue of the format. If none exists, it returns
// name without the residue.
func (r *reader) toolName(name []byte) string {
	if r.knows(string(name)) {
		return string(name)
	}
	meant, ok := text.ResolveToolName(string(name), r.knows)
	if ok {
		r.mended++
	}
	return meant
}

// means reports whether name denotes an offered tool once residue of the format is removed.
func (r *reader) means(name string) bool {
	_, ok := text.ResolveToolName(name, r.knows)
	return ok
}

// Anomalies returns the deviations that the parser has tolerated so far.
func (r *reader) Anomalies() Anomalies { return Anomalies{ToolName: r.mended} }

// WritesArguments returns false: the arguments are the text of the model.
func (r *reader) WritesArguments() bool { return false }

// knows reports whether a tool of that name was offered.
func (r *reader) knows(name string) bool { return offered(r.opts.Tools, name) }

func offered(tools []*lathe.ToolSpec, name string) bool {
	return slices.ContainsFunc(tools, func(t *lathe.ToolSpec) bool { return t.Name == name })
}
