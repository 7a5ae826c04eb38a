// Package visible computes the text of an assistant message that clients show. A model without native tool calls writes
// its calls in the text of a message. The visible text leaves out these calls, the white space around them, and calls
// that could not be parsed. The message itself does not change, because the model gets it again in the next request.
package visible

import (
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
)

// maxSpace is the largest number of bytes of white space that a [Text] buffers on each side of a call.
const maxSpace = 4 << 10

// A Text receives the text of one message in pieces and returns the visible part. The joined results do not depend on how the text is split
// into pieces. The zero value is ready for the beginning of a message.
//
// Text without calls is visible unchanged. If a call was removed, the white space on one of its sides is visible: the side with more line
// ends, or the one before the call. White space at the beginning and at the end of a message is not visible, except the indentation of the
// first line.
type Text struct {
	begun   bool   // visible text has been returned
	removed bool   // a call was removed after the last visible text
	before  string // buffered white space; before the call if one was removed
	after   string // buffered white space after the removed call
}

// Add receives the next piece of text and returns the text to show now.
func (t *Text) Add(s string) string {
	start, end := len(s)-len(strings.TrimLeft(s, space)), len(strings.TrimRight(s, space))
	shown := t.blank(s[:start])
	if start == len(s) {
		return shown
	}
	if t.removed {
		shown += t.join()
	} else {
		shown += t.before
	}
	*t = Text{begun: true}
	return shown + s[start:end] + t.blank(s[end:])
}

// space has the characters that count as white space.
const space = " \t\r\n"

// blank buffers white space, and returns the part that exceeds maxSpace before a call.
func (t *Text) blank(s string) string {
	switch {
	case s == "":
		return ""
	case t.removed:
		t.after += s[:min(len(s), maxSpace-len(t.after))]
		return ""
	case len(t.before)+len(s) <= maxSpace:
		t.before += s
		return ""
	}
	t.begun = true
	all := t.before + s
	t.before = all[len(all)-maxSpace:]
	return all[:len(all)-maxSpace]
}

// join returns the visible white space in place of a removed call.
func (t *Text) join() string {
	before, after := strings.Count(t.before, "\n"), strings.Count(t.after, "\n")
	indentation := t.after[strings.LastIndexByte(t.after, '\n')+1:] // of the text after the call, if after is not 0
	switch {
	case !t.begun && after == 0:
		return ""
	case !t.begun:
		return indentation
	case after > 0 && after >= before:
		return t.after
	case after > 0: // more line ends precede the call
		return t.before[:strings.LastIndexByte(t.before, '\n')+1] + indentation
	case t.before != "":
		return t.before
	}
	return t.after
}

// Remove records that a call was removed at this position.
func (t *Text) Remove() {
	t.removed, t.after = true, ""
}

// End ends the message and returns the remaining visible text.
func (t *Text) End() string {
	s := t.before
	if t.removed {
		s = ""
	}
	*t = Text{}
	return s
}

// Parts returns the visible parts of an assistant message. Parts other than text are unchanged. If the text contains no calls, it returns
// the parts of m itself.
func Parts(m *lathe.Message) []lathe.Part {
	if !slices.ContainsFunc(m.Parts, removed) {
		return m.Parts
	}
	var t Text
	out := make([]lathe.Part, 0, len(m.Parts)+1)
	last := -1 // index of the last text in out
	for _, p := range m.Parts {
		text, ok := p.(lathe.Text)
		switch {
		case removed(p):
			t.Remove()
			if !ok {
				out = append(out, p)
			}
		case ok && !text.Commentary:
			if s := t.Add(text.Text); s != "" {
				last = len(out)
				out = append(out, lathe.Text{Text: s})
			}
		default:
			out = append(out, p)
		}
	}
	if s := t.End(); s != "" {
		if last < 0 {
			return append(out, lathe.Text{Text: s})
		}
		text := out[last].(lathe.Text)
		text.Text += s
		out[last] = text
	}
	return out
}

// removed reports whether p is a call that was part of the text.
func removed(p lathe.Part) bool {
	switch p := p.(type) {
	case lathe.Text:
		return p.Unreadable
	case lathe.ToolCall:
		return p.Dialect != "" && p.ParseError == ""
	default:
		return false
	}
}

// String returns the visible text of a message without commentary.
func String(m *lathe.Message) string {
	shown := lathe.Message{Parts: Parts(m)}
	return shown.Text()
}

// A Stream passes on the deltas of a parser, with the visible text in place of the full text. The zero value is ready for the beginning of
// a message.
type Stream struct {
	// ShowUnreadable shows the text of unreadable calls like other text.
	ShowUnreadable bool

	text   Text
	failed bool // the current call is unreadable
}

// Pass calls give with d, or with d and its visible text, or buffers the text of d.
func (s *Stream) Pass(d *lathe.Delta, give func(lathe.Delta)) {
	out := *d
	switch d.Kind {
	case lathe.DeltaText:
		if d.Unreadable {
			s.text.Remove()
			return
		}
		if out.Text = s.text.Add(d.Text); out.Text == "" {
			return
		}
	case lathe.DeltaCallStart:
		s.failed = false
	case lathe.DeltaParseError:
		s.failed = true
	case lathe.DeltaCallEnd:
		if !s.failed {
			s.text.Remove()
		}
	default: // is no text of the answer
	}
	give(out)
}

// Mark clears Unreadable of d if ShowUnreadable is set. The caller calls it before it collects d into a message and passes d on.
func (s *Stream) Mark(d *lathe.Delta) {
	if s.ShowUnreadable {
		d.Unreadable = false
	}
}

// End ends the message and passes the buffered text to give.
func (s *Stream) End(give func(lathe.Delta)) {
	if text := s.text.End(); text != "" {
		give(lathe.Delta{Kind: lathe.DeltaText, Text: text})
	}
}

// ReplaceText returns the parts of an answer with read, which a parser found in its text, in place of the first text or call, and without
// the other texts. Commentary is not text here. If recovered is set, the calls in read are marked as recovered.
func ReplaceText(given, read []lathe.Part, recovered bool) []lathe.Part {
	for i, p := range read {
		if c, ok := p.(lathe.ToolCall); ok && recovered {
			c.Recovered = true
			read[i] = c
		}
	}
	out := make([]lathe.Part, 0, len(given)+len(read))
	done := false
	for _, p := range given {
		t, isText := p.(lathe.Text)
		isText = isText && !t.Commentary
		if _, isCall := p.(lathe.ToolCall); !done && (isText || isCall) {
			out = append(out, read...)
			done = true
		}
		if !isText {
			out = append(out, p)
		}
	}
	if !done {
		out = append(out, read...)
	}
	return out
}
