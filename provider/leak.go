package provider

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
)

// maxMistaken is the maximal number of marks in a turn that open no call. After it, the rest of the turn is text: a model that writes so
// many marks writes about calls.
const maxMistaken = 64

// leaks parses the text of a server with native calls. A call of a tool that was not offered, and an unreadable call that names no
// offered tool, are text, byte for byte.
//
// To return such a call as text, raw stores the text that the parser has read and not returned, which begins with the call. Its first
// rune is returned as text, and a new parser reads the rest: of "<f>{}</f>", if no tool f is offered, "<" is text, and "f>{}</f>" is read
// again.
type leaks struct {
	r          *reading
	raw        []byte // text that the parser has read and not returned
	inCall     bool   // a call of an offered tool is open
	afterCall  bool   // a call has ended, and no text has followed
	mistaken   int    // number of marks that opened no call
	allText    bool   // the rest of the turn is text: mistaken exceeds maxMistaken
	unreadable []byte // text of an unreadable call, buffered until its name is known
}

// maxUnreadable is the maximal length of unreadable, in bytes; further text is not buffered.
const maxUnreadable = 64 << 10

// read passes text to the parser, in pieces that end where a call may end, so that raw contains no text from before a call.
func (l *leaks) read(text string) {
	for text != "" && !l.r.stopped {
		if l.allText {
			l.r.yieldParsed(&lathe.Delta{Kind: lathe.DeltaText, Text: text})
			return
		}
		n := strings.IndexAny(text, ">}])\n") + 1
		if n == 0 {
			n = len(text)
		}
		piece := text[:n]
		text = text[n:]
		if l.inCall {
			l.raw = l.raw[:0]
		}
		l.raw = append(l.raw, piece...)
		if again, mistaken := l.yieldUntilMistake(l.r.parser.Append(nil, piece)); mistaken {
			text = again + text
		}
	}
}

// flush ends the text.
func (l *leaks) flush() {
	for !l.allText && !l.r.stopped {
		deltas, _ := l.r.parser.Flush(nil) // the deltas report the same as the error
		again, mistaken := l.yieldUntilMistake(deltas)
		if !mistaken {
			return
		}
		l.read(again)
	}
}

// yieldUntilMistake yields deltas up to the first call of a tool that was not offered. In that case mistaken is true, and again is the text that must
// be read again.
func (l *leaks) yieldUntilMistake(deltas []lathe.Delta) (again string, mistaken bool) {
	for i := range deltas {
		d := &deltas[i]
		switch d.Kind {
		case lathe.DeltaText, lathe.DeltaReasoning, lathe.DeltaCommentary:
			l.consume(d.Text)
			if d.Unreadable && len(l.unreadable)+len(d.Text) <= maxUnreadable {
				l.unreadable = append(l.unreadable, d.Text...)
				continue
			}
			l.yieldUnreadable(lathe.Delta{Kind: lathe.DeltaText})
			d.Unreadable = false
		case lathe.DeltaCallStart:
			if !l.offered(d.Name) {
				return l.giveUp(), true
			}
			l.inCall = true
		case lathe.DeltaCallEnd:
			l.inCall, l.afterCall = false, true
			if i == len(deltas)-1 {
				l.raw = l.raw[:0]
			}
		case lathe.DeltaParseError:
			if d.Index < 0 && !l.offered(d.Name) {
				l.yieldUnreadable(lathe.Delta{Kind: lathe.DeltaText})
				continue
			}
			l.yieldUnreadable(lathe.Delta{Kind: lathe.DeltaText, Unreadable: true})
		}
		l.r.yieldParsed(d)
		if l.r.stopped {
			return "", false
		}
	}
	return "", false
}

// yieldUnreadable yields the buffered text of an unreadable call as d: Unreadable if the call names an offered tool, else ordinary text.
func (l *leaks) yieldUnreadable(d lathe.Delta) {
	if len(l.unreadable) > 0 {
		d.Text = string(l.unreadable)
		l.r.yieldParsed(&d)
		l.unreadable = l.unreadable[:0]
	}
}

// consume removes text, which the parser returned, from raw.
func (l *leaks) consume(text string) {
	at := bytes.Index(l.raw, []byte(text))
	if l.afterCall { // the same text may be part of the call before it
		at = bytes.LastIndex(l.raw, []byte(text))
	}
	l.afterCall = false
	if at >= 0 {
		l.raw = append(l.raw[:0], l.raw[at+len(text):]...)
	}
}

// giveUp yields the first rune of a call that does not count as text, and returns the rest of its text.
func (l *leaks) giveUp() string {
	l.mistaken++
	rest := string(l.raw)
	l.raw, l.afterCall = l.raw[:0], false
	l.r.opts.ThinkingStartsOpen = false // otherwise the call would have been part of the thought
	l.r.parser = l.r.newParser()
	if l.mistaken > maxMistaken {
		l.allText = true
		return rest
	}
	_, n := utf8.DecodeRuneInString(rest)
	if n > 0 {
		l.r.yieldParsed(&lathe.Delta{Kind: lathe.DeltaText, Text: rest[:n]})
	}
	return rest[n:]
}

func (l *leaks) offered(name string) bool {
	return slices.ContainsFunc(l.r.opts.Tools, func(t *lathe.ToolSpec) bool { return t.Name == name })
}
