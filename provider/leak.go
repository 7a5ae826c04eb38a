package provider

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
)

// maxMistaken bounds how often in one turn a mark may turn out to open no call. Past it, the rest
// of the turn is text: a model that writes so many marks writes about calls.
const maxMistaken = 64

// leaks reads the text of a server that has calls of its own. A call to a tool that was not
// offered, and one that cannot be read and names none that was, is text, to the byte.
//
// To give such a call as text, what the parser was handed and has not given back is kept in raw:
// it begins where the call does. Its first rune is given as text and a new parser reads the rest.
type leaks struct {
	r        *reading
	raw      []byte
	open     bool // a call that is taken
	closed   bool // a call was taken, and no text has come since
	mistaken int
	off      bool
	bad      []byte // text of a call that cannot be read, until its name is known
}

// maxBad bounds bad, in bytes; more of it is text.
const maxBad = 64 << 10

// read hands text to the parser, in pieces that end where calls may end, so that it is known where
// the text goes on after one.
func (l *leaks) read(text string) {
	for text != "" && !l.r.stopped {
		if l.off {
			l.r.sayOne(&lathe.Delta{Kind: lathe.DeltaText, Text: text})
			return
		}
		n := strings.IndexAny(text, ">}])\n") + 1
		if n == 0 {
			n = len(text)
		}
		piece := text[:n]
		text = text[n:]
		if l.open {
			l.raw = l.raw[:0]
		}
		l.raw = append(l.raw, piece...)
		if again, mistaken := l.said(l.r.parser.Append(nil, piece)); mistaken {
			text = again + text
		}
	}
}

// flush ends the text.
func (l *leaks) flush() {
	for !l.off && !l.r.stopped {
		deltas, _ := l.r.parser.Flush(nil) // the deltas say the same as the error
		again, mistaken := l.said(deltas)
		if !mistaken {
			return
		}
		l.read(again)
	}
}

// said gives deltas up to the first call that is none. again is what is to be read once more then.
func (l *leaks) said(deltas []lathe.Delta) (again string, mistaken bool) {
	for i := range deltas {
		d := &deltas[i]
		switch d.Kind {
		case lathe.DeltaText, lathe.DeltaReasoning, lathe.DeltaCommentary:
			l.pass(d.Text)
			if d.Unreadable && len(l.bad)+len(d.Text) <= maxBad {
				l.bad = append(l.bad, d.Text...)
				continue
			}
			l.sayBad(false)
			d.Unreadable = false
		case lathe.DeltaCallStart:
			if !l.offered(d.Name) {
				return l.giveUp(), true
			}
			l.open = true
		case lathe.DeltaCallEnd:
			l.open, l.closed = false, true
			if i == len(deltas)-1 {
				l.raw = l.raw[:0]
			}
		case lathe.DeltaParseError:
			if d.Index < 0 && !l.offered(d.Name) {
				l.sayBad(false)
				continue
			}
			l.sayBad(true)
		}
		l.r.sayOne(d)
		if l.r.stopped {
			return "", false
		}
	}
	return "", false
}

// sayBad gives the text of a call that could not be read: unreadable, if the call was to a tool that was offered,
// else as any other text.
func (l *leaks) sayBad(unreadable bool) {
	if len(l.bad) > 0 {
		l.r.sayOne(&lathe.Delta{Kind: lathe.DeltaText, Text: string(l.bad), Unreadable: unreadable})
		l.bad = l.bad[:0]
	}
}

// pass takes text that came back out of raw.
func (l *leaks) pass(text string) {
	find := bytes.Index
	if l.closed { // the same text may stand in the call
		find = bytes.LastIndex
	}
	at := find(l.raw, []byte(text))
	l.closed = false
	if at >= 0 {
		l.raw = append(l.raw[:0], l.raw[at+len(text):]...)
	}
}

// giveUp gives the first rune of a call that is none as text, and returns the rest.
func (l *leaks) giveUp() string {
	l.mistaken++
	rest := string(l.raw)
	l.raw, l.closed = l.raw[:0], false
	l.r.opts.ThinkingStartsOpen = false // or it would have stood in the thought
	l.r.parser = l.r.newParser()
	if l.mistaken > maxMistaken {
		l.off = true
		return rest
	}
	_, n := utf8.DecodeRuneInString(rest)
	if n > 0 {
		l.r.sayOne(&lathe.Delta{Kind: lathe.DeltaText, Text: rest[:n]})
	}
	return rest[n:]
}

func (l *leaks) offered(name string) bool {
	for _, t := range l.r.opts.Tools {
		if t.Name == name {
			return true
		}
	}
	return false
}
