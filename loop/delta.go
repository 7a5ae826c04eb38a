package loop

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
)

// unknown stands for every name that is not registered: events never carry names that a model made up.
const unknown = "unknown"

// emit yields d, unless nobody listens any more.
func (r *run) emit(d lathe.EventData) {
	if r.stopped {
		return
	}
	turn := r.turn
	if s := r.in.Resume; s != nil {
		turn = max(turn, s.Turn) // a model call that an earlier process began may never be made again
	}
	r.telling = true
	more := r.yield(lathe.Event{Turn: turn, Data: d})
	r.telling = false
	if !more {
		r.stopped = true
		r.cancel()
	}
}

// delta takes one step of the model's turn. It allocates nothing for text and argument pieces.
// After the finish it lets the model come to its end by itself.
func (r *run) delta(d lathe.Delta, err error) bool {
	c := &r.call
	if c.finish != nil {
		return true
	}
	if err != nil {
		c.err = err
		return false
	}
	select {
	case <-r.done:
		return false
	default:
	}
	if d.Kind != lathe.DeltaRetry && d.Kind != lathe.DeltaFinish && c.firstToken.IsZero() {
		c.firstToken = r.loop.opts.Now()
	}
	if r.withholds(d.Kind) {
		c.withheld = append(c.withheld, d)
		return !r.stopped
	}
	r.show(&d)
	return !r.stopped
}

// withholds reports whether a delta waits for the end of its attempt: with on_parse_error retry_without_tools an
// attempt with an unreadable call is dropped whole, and what was shown cannot be taken back. Where the server reads the calls,
// unreadable ones are rare, so text is shown as it comes; only calls wait, and what follows them.
func (r *run) withholds(kind lathe.DeltaKind) bool {
	if r.settings.OnParseError != lathe.ParseErrorRetryWithout || !r.call.withTools || r.call.repeated {
		return false
	}
	if !r.loop.info.WritesCalls && kind != lathe.DeltaCallStart && len(r.call.withheld) == 0 {
		return false
	}
	switch kind {
	case lathe.DeltaText, lathe.DeltaRefusal, lathe.DeltaReasoning, lathe.DeltaCommentary, lathe.DeltaCallStart, lathe.DeltaCallArgs, lathe.DeltaCallEnd:
		return true
	default:
		return false
	}
}

// showWithheld shows what an attempt that is kept has withheld.
func (r *run) showWithheld() {
	for i := range r.call.withheld {
		r.show(&r.call.withheld[i])
	}
	r.call.withheld = r.call.withheld[:0]
}

// show emits one delta.
func (r *run) show(d *lathe.Delta) {
	c := &r.call
	switch d.Kind {
	case lathe.DeltaText, lathe.DeltaRefusal:
		c.shown = true
		c.text = lathe.TextDelta{Bytes: len(d.Text), Text: d.Text}
		r.emit(&c.text)
	case lathe.DeltaReasoning:
		c.reasoning = lathe.ReasoningDelta{Bytes: len(d.Text), Text: d.Text}
		r.emit(&c.reasoning)
	case lathe.DeltaCommentary:
		c.commentary = lathe.CommentaryDelta{Bytes: len(d.Text), Text: d.Text}
		r.emit(&c.commentary)
	case lathe.DeltaCallStart:
		r.openCall(d)
	case lathe.DeltaCallArgs:
		r.callArgs(d)
	case lathe.DeltaCallEnd:
	case lathe.DeltaParseError:
		c.parseError++
		r.tellParseError(d.Code, r.loop.info.Dialect, d.Text, max(d.Bytes, len(d.Text)))
	case lathe.DeltaRetry:
		r.retry(d.Retry)
	case lathe.DeltaFinish:
		c.finish = d.Finish
	}
}

// retry closes the attempt that failed and opens the next.
func (r *run) retry(t *lathe.Retry) {
	if t == nil {
		return
	}
	var err error
	if t.Err != nil {
		err = t.Err
	}
	r.failAttempt(err)
	r.tellAttempt(t.Wait)
}

// openCall tells that a call begins. Its id is told only when the call will keep it.
func (r *run) openCall(d *lathe.Delta) {
	c := &r.call
	if !c.withTools {
		return
	}
	o := openCall{index: d.Index, tool: r.registered(d.Name), id: strings.TrimSpace(d.ID)}
	if token(o.id) == "" || r.hasCall(o.id) || r.idsOpen() {
		o.id = ""
	}
	c.open = append(c.open, o)
	r.callArgs(d)
}

// idsOpen reports whether a call of this turn has an id that is not known yet: it may be any.
func (r *run) idsOpen() bool {
	return slices.ContainsFunc(r.call.open, func(x openCall) bool { return x.id == "" })
}

// hasCall reports whether the run has a call of that id, so that a new one will get another.
func (r *run) hasCall(id string) bool {
	return r.work.HasCall(id) || slices.ContainsFunc(r.call.open, func(x openCall) bool { return x.id == id })
}

func (r *run) callArgs(d *lathe.Delta) {
	c := &r.call
	if !c.withTools {
		return
	}
	c.args = lathe.ToolCallDelta{Index: d.Index, Tool: unknown, Bytes: len(d.Text), Text: d.Text}
	for i := len(c.open) - 1; i >= 0; i-- {
		if c.open[i].index == d.Index {
			c.args.ToolCallID, c.args.Tool = c.open[i].id, c.open[i].tool
			break
		}
	}
	r.emit(&c.args)
}

// registered returns the name of the tool that the run has under that name, else unknown.
func (r *run) registered(name string) string {
	for range 2 {
		i, ok := slices.BinarySearchFunc(r.specs, name, func(s *lathe.ToolSpec, n string) int { return strings.Compare(s.Name, n) })
		if ok {
			return r.specs[i].Name
		}
		name = strings.ReplaceAll(name, ".", "_")
	}
	return unknown
}

// tellParseErrors tells of the unreadable calls of m that the stream did not tell of.
func (r *run) tellParseErrors(m *lathe.Message) {
	seen := 0
	for _, p := range m.Parts {
		tc, ok := p.(lathe.ToolCall)
		if !ok || tc.ParseError == "" {
			continue
		}
		if seen++; seen > r.call.parseError {
			r.call.parseError++
			r.tellParseError(tc.ParseError, tc.Dialect, tc.Arguments, len(tc.Arguments))
		}
	}
}

// maxExcerpt bounds what an event shows of a call that could not be read.
const maxExcerpt = 200

func (r *run) tellParseError(code lathe.Code, dialect, text string, size int) {
	dialect = dialectName(dialect, r.loop.info.Dialect)
	r.emit(&lathe.ToolCallParseError{Dialect: dialect, Error: parseErrorCode(code), ExcerptBytes: size, RawExcerpt: excerpt(text)})
}

// excerpt returns the head of s, cut at a rune.
func excerpt(s string) string {
	if len(s) <= maxExcerpt {
		return s
	}
	n := maxExcerpt
	for n > maxExcerpt-utf8.UTFMax && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
