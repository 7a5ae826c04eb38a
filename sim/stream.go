package sim

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// An answer is written in three steps, and faults can change the result of each: the deltas of a turn, the events in which the codec
// encodes the deltas, and the lines in which the events are sent.

// A streamed is one event of an answer.
type streamed struct {
	name, data string
	raw        string // bytes to send unchanged instead of name and data
	cut        bool   // close the connection instead of sending an event
}

// takeEvents parses the events that a codec has written.
func takeEvents(frames []byte) []streamed {
	var events []streamed
	for frame := range strings.SplitSeq(string(frames), "\n\n") {
		var e streamed
		for line := range strings.Lines(frame) {
			line = strings.TrimSuffix(line, "\n")
			if name, ok := strings.CutPrefix(line, "event: "); ok {
				e.name = name
			} else if data, ok := strings.CutPrefix(line, "data: "); ok {
				e.data = data
			}
		}
		if e.data != "" {
			events = append(events, e)
		}
	}
	return events
}

// A flow is the change of a fault to the deltas of an answer, and to the order of its events.
type flow struct {
	errorAfter int  // number of deltas before an error in the stream; -1: the error is the first event; 0: no error
	cutArgs    bool // close the connection inside the arguments of the first call
	cutText    bool // close the connection inside the text, if there are no calls
	wholeArgs  bool // send the arguments of each call in one piece
	keepAlives int  // number of keep-alives of the wire after the first delta
}

var errorInStream = &wire.APIError{Type: "server_error", Message: "The server had an error while processing your request."}

// events returns the events of an answer.
func (fl *flow) events(p *protocol, head *wire.AnswerHead, t *Turn, fin *lathe.Finish) []streamed {
	w := p.NewWriter(head)
	breakOff := func(out []streamed) []streamed { return append(out, streamed{cut: true}) }
	fails := fl.errorAfter != 0
	if fl.errorAfter < 0 {
		return breakOff(takeEvents(w.AppendError(nil, errorInStream)))
	}
	isCut := fl.cutArgs && len(t.Calls) > 0 || fl.cutText && len(t.Calls) == 0
	out := takeEvents(w.AppendStart(nil))
	for i, d := range fl.change(fin) {
		if fails && i == fl.errorAfter {
			break
		}
		out = append(out, takeEvents(w.AppendDelta(nil, d))...)
		if i == 0 {
			for range fl.keepAlives {
				out = append(out, streamed{raw: string(w.AppendKeepAlive(nil))})
			}
		}
	}
	switch {
	case fails:
		return breakOff(append(out, takeEvents(w.AppendError(nil, errorInStream))...))
	case isCut, t.Cut:
		return breakOff(out)
	}
	return append(out, takeEvents(w.AppendFinish(nil, fin, nil))...)
}

// change returns the deltas of the answer with the fault: of an answer that is cut, those before the connection is closed.
func (fl *flow) change(fin *lathe.Finish) []lathe.Delta {
	var all []lathe.Delta
	deltas(&fin.Message, func(d lathe.Delta) bool {
		last := len(all) - 1
		if fl.wholeArgs && d.Kind == lathe.DeltaCallArgs && all[last].Kind == d.Kind {
			all[last].Text += d.Text
			return true
		}
		all = append(all, d)
		return true
	})
	index := func(kind lathe.DeltaKind) int {
		return slices.IndexFunc(all, func(d lathe.Delta) bool { return d.Kind == kind })
	}
	text, end := index(lathe.DeltaText), index(lathe.DeltaCallEnd)
	switch {
	case fl.cutText && text >= 0 && end < 0: // after half of the words
		return all[:text+len(pieces(fin.Message.Text()))/2]
	case fl.cutArgs && end >= 0: // inside the middle piece of the first call's arguments
		last := (index(lathe.DeltaCallStart) + end) / 2
		d := &all[last]
		d.Text = d.Text[:runeCut(d.Text, max(1, len(d.Text)-3))]
		return all[:last+1]
	}
	return all
}

// lines is the change of a fault to the lines in which events are sent.
type lines struct {
	eol       string // the line end; "": LF
	bom       bool   // a byte order mark before the first event
	comments  bool   // a comment before each event
	multiline bool   // JSON on several data lines
	longLine  int    // bytes of padding in the second event; 0: none
	malformed bool   // a data line that is not JSON after the first event
}

// frame returns the bytes of the i-th event of an answer.
func (l *lines) frame(i int, e streamed) string {
	eol := cmp.Or(l.eol, "\n")
	if e.raw != "" {
		return strings.ReplaceAll(e.raw, "\n", eol)
	}
	var b strings.Builder
	if i == 0 && l.bom {
		b.WriteString("\ufeff")
	}
	if l.comments {
		b.WriteString(": keep-alive" + eol + eol)
	}
	if e.name != "" {
		b.WriteString("event: " + e.name + eol)
	}
	data := e.data
	if rest, ok := strings.CutPrefix(data, "{"); ok {
		if i == 1 && l.longLine > 0 {
			rest = `"padding":` + quote(strings.Repeat("x", l.longLine)) + "," + rest
		}
		if l.multiline {
			rest = "\n" + rest
		}
		data = "{" + rest
	}
	for line := range strings.SplitSeq(data, "\n") {
		b.WriteString("data: " + line + eol)
	}
	b.WriteString(eol)
	if i == 0 && l.malformed {
		b.WriteString("data: {not json" + eol + eol)
	}
	return b.String()
}
