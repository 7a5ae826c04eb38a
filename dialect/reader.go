package dialect

import (
	"slices"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/delta"
	"github.com/lathe-run/lathe/internal/text"
)

// maxExcerptBytes bounds the text of a ParseError.
const maxExcerptBytes = 200

// A reader is what all parsers are built on: the scanner, and the deltas that it says.
type reader struct {
	scanner
	out   []lathe.Delta
	opts  Options
	calls int  // calls started
	open  bool // a call is open
	cut   bool // the text ended inside a call
	// unreadable is set while a call is read that is known to be unreadable: its text is said as such, and its
	// arguments are not said. fail ends it.
	unreadable bool
	joins      bool   // many small texts become few
	from       int    // the first delta of this piece
	joint      int    // the delta whose text stands in small, from 1; 0: none
	small      []byte // small texts one after another
	ends       bool   // a token that ends the turn is no part of a call that it cuts off
	tail       string // such tokens at the end of the text so far: buffered
	rune       [utf8.UTFMax]byte
	nrune      int    // bytes of a rune that the piece before began
	inPrefix   bool   // what is read is the end of the prompt
	mended     int    // names of tools that had residue of the format
	run        func() // reads what is in in
	close      func() // ends what is open at the end of the text
	thought    thought
}

func newReader(o Options, m *marks) reader {
	return reader{scanner: scanner{marks: m}, opts: o, ends: true, close: func() {}}
}

// Append implements [Parser]. Tokens at the end of text that may end the turn are read with the next text.
func (r *reader) Append(dst []lathe.Delta, text string) []lathe.Delta {
	if !r.ends || text == "" {
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

// pass reads text in one or two pieces that end at whole runes. Broken UTF-8 passes as it is.
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

// Flush implements [Parser]. It reads the tokens that were buffered, but for those that cut a call off, the rest of a rune that was cut
// off, and then what the scanner holds back.
func (r *reader) Flush(dst []lathe.Delta) ([]lathe.Delta, error) {
	if tail := r.tail; tail != "" {
		if _, whole := turnTail(tail); !whole || !r.open {
			dst = r.pass(dst, tail)
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

// brokenTail returns the length of the beginning of a rune at the end of s.
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

// appendKept appends s to the kept text of a call. It doubles the capacity, since the text arrives in many small pieces: append
// grows a large slice by a quarter only.
func appendKept(kept []byte, s string) []byte {
	if len(s) > cap(kept)-len(kept) {
		kept = slices.Grow(kept, max(len(s), cap(kept)))
	}
	return append(kept, s...)
}

// emit appends a delta of text.
func (r *reader) emit(kind lathe.DeltaKind, text string) {
	if text == "" || r.joins && kind == lathe.DeltaText && len(r.out)-r.from >= maxPieces && r.join(text) {
		return
	}
	r.out = delta.Append(r.out, kind, 0, text)
	if r.unreadable && kind == lathe.DeltaText {
		r.out[len(r.out)-1].Unreadable = true
	}
}

// A long piece of text that is full of what could be a call and is none would make a delta of
// every few bytes. From maxPieces on, small ones are joined.
const (
	maxPieces     = 16
	maxSmallBytes = 64
	maxJointBytes = 4096
)

// join makes text a part of the delta before it, if both are small.
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

// flushJoined gives the joined texts to their delta.
func (r *reader) flushJoined() {
	if r.joint > 0 {
		r.out[r.joint-1].Text = string(r.small)
		r.joint, r.small = 0, r.small[:0]
	}
}

// start opens a call.
func (r *reader) start(id, name string, deprecated bool) {
	if id == "" {
		id = r.newID()
	}
	r.out = append(r.out, lathe.Delta{Kind: lathe.DeltaCallStart, Index: r.calls, ID: id, Name: name, Deprecated: deprecated})
	r.calls++
	r.open = true
}

// quotedArgs emits text with the escapes of a JSON string, without the quotes, as argument text of the open call. The pieces are
// parts of text or constants.
func (r *reader) quotedArgs(text string) {
	for text != "" {
		n := plainRun(text)
		if n > 0 {
			emitUTF8(r.args, text[:n])
		}
		if n == len(text) {
			return
		}
		r.args(escapes[text[n]])
		text = text[n+1:]
	}
}

// args gives the next piece of the open call's argument text.
func (r *reader) args(text string) {
	if text != "" && !r.unreadable {
		r.out = delta.Append(r.out, lathe.DeltaCallArgs, r.calls-1, text)
	}
}

// end closes the open call.
func (r *reader) end(incomplete bool) {
	r.out = append(r.out, lathe.Delta{Kind: lathe.DeltaCallEnd, Index: r.calls - 1, Incomplete: incomplete})
	r.open = false
	r.cut = r.cut || incomplete
}

// fail says that a call could not be read; the open call, if there is one, is taken back.
// excerpt is the beginning of what was read, n its whole length.
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

// head returns the front of s, at most maxExcerptBytes long, cut between runes.
func head(s string) string {
	if len(s) < maxExcerptBytes {
		return s
	}
	s = s[:maxExcerptBytes]
	return s[:len(s)-brokenTail(s)]
}

// toolName returns the name of the offered tool that name stands for, with or without residue of the format; else name.
func (r *reader) toolName(name []byte) string {
	for _, t := range r.opts.Tools {
		if t.Name == string(name) {
			return t.Name
		}
	}
	meant, ok := text.ResolveToolName(string(name), r.knows)
	if ok {
		r.mended++
	}
	return meant
}

// means reports whether name stands for an offered tool, as toolName finds it.
func (r *reader) means(name string) bool {
	_, ok := text.ResolveToolName(name, r.knows)
	return ok
}

// Anomalies returns what was tolerated so far.
func (r *reader) Anomalies() Anomalies { return Anomalies{ToolName: r.mended} }

// knows reports whether a tool of that name was offered.
func (r *reader) knows(name string) bool { return offered(r.opts.Tools, name) }

func offered(tools []*lathe.ToolSpec, name string) bool {
	for _, t := range tools {
		if t.Name == name {
			return true
		}
	}
	return false
}
