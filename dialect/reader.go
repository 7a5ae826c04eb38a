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
	nrune      int  // bytes of a rune that the piece before began
	inPrefix   bool // what is read is the end of the prompt
	mended     int  // names of tools that had residue of the format
	thought    thought
}

func newReader(o Options, m *marks) reader {
	return reader{scanner: scanner{marks: m.made()}, opts: o, ends: true}
}

// feed hands text to run, but for tokens at its end that may end the turn: they come with the next text.
func (r *reader) feed(dst []lathe.Delta, text string, run func()) []lathe.Delta {
	if !r.ends || text == "" {
		return r.pass(dst, text, run)
	}
	switch {
	case r.tail == "":
	case continuesTurnEnd(r.tail, text):
		text = r.tail + text
	default:
		dst = r.pass(dst, r.tail, run)
	}
	n, _ := turnTail(text)
	r.tail = text[len(text)-n:]
	return r.pass(dst, text[:len(text)-n], run)
}

// pass hands text to run in one or two pieces that end at whole runes. Broken UTF-8 passes as it is.
func (r *reader) pass(dst []lathe.Delta, text string, run func()) []lathe.Delta {
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
			run()
		}
	}
	if text != "" && text[len(text)-1] >= utf8.RuneSelf {
		n := brokenTail(text)
		r.nrune = copy(r.rune[:], text[len(text)-n:])
		text = text[:len(text)-n]
	}
	if text != "" {
		r.in = text
		run()
	}
	r.flushJoined()
	dst, r.out = r.out, nil
	return dst
}

// runs is the short way of feed for the most frequent pieces, those without a mark. lead is what was buffered before text and
// turns out to be text, run is text but for the end that may begin a mark or a token that ends the turn, which runs buffers. Both
// are runs of text for the scanner. ok is false for all other pieces, of which runs buffers nothing.
func (r *reader) runs(text string) (lead, run string, ok bool) {
	n := len(text)
	if n == 0 || r.nrune > 0 || text[n-1] >= utf8.RuneSelf {
		return "", "", false
	}
	m := r.marks
	if r.held == "" && r.tail == "" {
		if !r.ends && m.lacks(text) {
			return "", text, true
		}
	} else {
		if lead = r.held; lead == "" {
			lead = r.tail
		}
		if lead[len(lead)-1] >= utf8.RuneSelf || r.tail != "" && (r.held != "" || continuesTurnEnd(r.tail, text)) {
			return "", "", false
		}
		for k := range len(lead) {
			if id, part := m.at(lead[k:], text); id >= 0 || part >= 0 {
				return "", "", false
			}
		}
	}
	ends := 0 // bytes at the end that may end the turn
	if r.ends {
		if turnEnd(text) > 0 {
			return "", "", false
		}
		if ends = cutTurnEnd(text); ends > 0 && turnEnd(text[:n-ends]) > 0 {
			return "", "", false
		}
	}
	run = text[:n-ends]
	held := ""
	if i := m.find(run); i < len(run) {
		id, part := m.at(run[i:], "")
		if id >= 0 {
			return "", "", false
		}
		run, held = run[:i], m.list[part][:len(run)-i]
		if m.fold {
			held = text[i : n-ends]
		}
	}
	r.held, r.tail = held, text[n-ends:]
	return lead, run, true
}

// alone reports whether text, the next piece, can be read without what came before and what follows: nothing is buffered,
// and text ends neither inside of a rune nor in what may end the turn.
func (r *reader) alone(text string) bool {
	n := len(text)
	if n == 0 || r.tail != "" || r.held != "" || r.nrune > 0 || text[n-1] >= utf8.RuneSelf {
		return false
	}
	return !r.ends || turnEnd(text) == 0 && cutTurnEnd(text) == 0
}

// direct calls read with the runs of text that runs has returned, and returns dst with the deltas that read emits.
func (r *reader) direct(dst []lathe.Delta, lead, run string, read func(text string, mark int)) []lathe.Delta {
	r.out, r.from = dst, len(dst)
	r.looked += len(lead) + len(run)
	if lead != "" {
		read(lead, -1)
	}
	if run != "" {
		read(run, -1)
	}
	r.flushJoined()
	dst, r.out = r.out, nil
	return dst
}

// finish hands run the tokens that were buffered, but for those that cut a call off, the rest of a rune that was cut
// off, and then what the scanner holds back.
func (r *reader) finish(dst []lathe.Delta, run, end func()) ([]lathe.Delta, error) {
	if tail := r.tail; tail != "" {
		if _, whole := turnTail(tail); !whole || !r.open {
			dst = r.pass(dst, tail, run)
		}
	}
	r.out, r.from = dst, len(dst)
	r.last = true
	r.in = string(r.rune[:r.nrune])
	r.nrune = 0
	run()
	end()
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
		kept = growKept(kept, len(s))
	}
	return append(kept, s...)
}

// growKept returns kept with room for n more bytes.
func growKept(kept []byte, n int) []byte { return slices.Grow(kept, max(n, cap(kept))) }

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
