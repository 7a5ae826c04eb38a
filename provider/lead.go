package provider

import (
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
)

// thinkClose is the mark that servers leave at the beginning of the text if they told the thinking before it apart.
const thinkClose = "</think>"

// faultThinkingMark is the kind of the fault for a thinkClose that was taken off a text.
const faultThinkingMark = "thinking_mark"

// leadSpace is the white space around a thinkClose, which goes with it.
const leadSpace = " \t\r\n"

// A lead buffers the beginning of the text of an answer while it may be a closing mark of thinking, which is no part of the text.
type lead struct {
	over bool // the beginning was read
	mark bool // it was the mark
	text string
}

// lead returns the lead of an answer to req: none if its bytes are relayed, or its text is read elsewhere.
func (v *modelCall) lead(req *lathe.Request) lead {
	return lead{over: req.Relay != nil || req.TextCalls.ReadsThinking || v.c.wire.Wire() != lathe.WireOpenAIChat}
}

// take takes the next delta; false: it is buffered, or has nothing to show.
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
		if len(rest) < len(thinkClose) && strings.HasPrefix(thinkClose, rest) && len(l.text) <= maxLead {
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

// maxLead bounds the white space that is buffered before a mark, in bytes.
const maxLead = 64

// release gives what is buffered and turned out to be text.
func (l *lead) release(a *attempt) {
	if l.over = true; l.text != "" && !a.yield(lathe.Delta{Kind: lathe.DeltaText, Text: l.text}, nil) {
		a.stopped = true
	}
}

// end ends the answer.
func (a *attempt) end(fin *lathe.Finish) {
	if !a.lead.over {
		a.lead.release(a)
	}
	if a.finish = fin; !a.lead.mark {
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
		if fin.Message.Parts[i] = t; found {
			return
		}
	}
}
