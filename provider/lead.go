package provider

import (
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
)

// thinkClose is the mark that servers leave at the beginning of the text when they separate the thinking before it.
const thinkClose = "</think>"

// faultThinkingMark is the kind of the fault for a thinkClose that was removed from a text.
const faultThinkingMark = "thinking_mark"

// leadSpace is the white space around a thinkClose, which is removed with it.
const leadSpace = " \t\r\n"

// A lead buffers the beginning of an answer's text while it may be a closing mark of thinking, which is not part of the text. Of the deltas
// "\n</th", "ink>" and "\n\nHello", only "Hello" is yielded.
type lead struct {
	over bool   // the beginning was read, and the rest passes unchanged
	mark bool   // the beginning was a thinkClose; white space may follow
	text string // buffered text
}

// lead returns the lead of an answer to req. It buffers nothing if the bytes are relayed, if the caller parses thinking itself, or on
// another wire.
func (v *modelCall) lead(req *lathe.Request) lead {
	return lead{over: req.Relay != nil || req.TextCalls.ReadsThinking || v.chat.wire.Wire() != lathe.WireOpenAIChat}
}

// take reads the next delta. It returns false if the delta is buffered or has become empty.
func (l *lead) take(a *attempt, d *lathe.Delta) bool {
	if d.Kind == lathe.DeltaReasoning {
		return true
	}
	if d.Kind != lathe.DeltaText {
		l.release(a)
		return true
	}
	l.text += d.Text
	rest := strings.TrimLeft(l.text, leadSpace)
	if !l.mark {
		mayBeMark := len(rest) < len(thinkClose) && strings.HasPrefix(thinkClose, rest)
		if mayBeMark && len(l.text) <= maxLead {
			return false
		}
		after, found := strings.CutPrefix(rest, thinkClose)
		if !found {
			l.over, d.Text = true, l.text
			return true
		}
		l.mark, rest = true, strings.TrimLeft(after, leadSpace)
	}
	l.text, d.Text = rest, rest
	l.over = rest != ""
	return l.over
}

// maxLead is the maximal length of the buffered white space before a mark, in bytes.
const maxLead = 64

// release yields the buffered text, because it is not a mark.
func (l *lead) release(a *attempt) {
	l.over = true
	if l.text != "" && !a.yield(lathe.Delta{Kind: lathe.DeltaText, Text: l.text}, nil) {
		a.stopped = true
	}
}

// end ends the answer with fin. If the text began with a thinkClose, it removes the mark from the message, too, and adds a fault.
func (a *attempt) end(fin *lathe.Finish) {
	if !a.lead.over {
		a.lead.release(a)
	}
	a.finish = fin
	if !a.lead.mark {
		return
	}
	fin.Faults = append(slices.Clip(fin.Faults), lathe.Fault{Kind: faultThinkingMark, Count: 1})
	for i, p := range fin.Message.Parts {
		t, ok := p.(lathe.Text)
		if !ok {
			continue
		}
		rest := strings.TrimLeft(t.Text, leadSpace)
		after, found := strings.CutPrefix(rest, thinkClose)
		if !found && rest != "" {
			return
		}
		t.Text = strings.TrimLeft(after, leadSpace)
		fin.Message.Parts[i] = t
		if found {
			return
		}
	}
}
