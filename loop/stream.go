package loop

import (
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/text"
)

// unknown replaces every tool name that is not registered, since events must not contain names that a model invented.
const unknown = "unknown"

// emit yields d, unless the consumer has stopped ranging.
func (r *run) emit(d event.Data) {
	if r.out.stopped {
		return
	}
	turn := r.turn
	if s := r.in.Resume; s != nil {
		turn = max(turn, s.Turn) // an earlier process may have begun a later turn whose model call is never repeated
	}
	r.from.loads(d)
	r.out.delivering = true
	more := r.out.yield(event.Event{Turn: turn, Data: d})
	r.out.delivering = false
	if !more {
		r.out.stopped = true
		r.cancel()
	}
}

// A stream emits the deltas of one model call as events.
//
// Some deltas are withheld until the end of the attempt: if on_parse_error is retry_without_tools, an attempt with an unreadable call is
// dropped as a whole, and a published event cannot be undone. For example, of the deltas text "Hm", call start, call arguments, parse
// error, the text is emitted at once if the server parses calls itself, and the rest is withheld; the turn is then repeated without tools,
// unless text was emitted.
type stream struct {
	run         *run
	open        []openCall    // calls that have started in this attempt
	parseErrors int           // number of parse errors emitted in this attempt
	shown       bool          // text of this attempt was emitted
	withheld    []lathe.Delta // deltas to emit if the attempt is not dropped

	text       block[event.TextDelta]
	reasoning  block[event.ReasoningDelta]
	commentary block[event.CommentaryDelta]
	args       block[event.ToolCallDelta]
}

// maxBlock is the maximum number of delta events in one allocation. A consumer that retains one of them retains all of them.
const maxBlock = 32

// A block is memory for delta events that consumers may retain. Each allocation is twice as large as the one before, up to maxBlock, so
// that short answers take little memory and long ones few allocations.
type block[T any] struct {
	free []T
	size int // of the last allocation
}

// with returns the address of a copy of d, which no later call changes.
func (b *block[T]) with(d T) *T {
	if len(b.free) == 0 {
		b.size = min(max(2*b.size, 2), maxBlock)
		b.free = make([]T, b.size)
	}
	p := &b.free[0]
	b.free = b.free[1:]
	*p = d
	return p
}

// reset prepares the stream for the next attempt.
func (s *stream) reset() {
	s.open, s.withheld, s.parseErrors, s.shown = s.open[:0], s.withheld[:0], 0, false
}

// delta processes one step of the model's turn. After the finish it ignores further deltas and returns true, so that the model ends by
// itself.
func (s *stream) delta(d lathe.Delta, err error) bool {
	r := s.run
	if r.call.finish != nil {
		return true
	}
	if err != nil {
		r.call.err = err
		return false
	}
	select {
	case <-r.done:
		return false
	default:
	}
	if d.Kind != lathe.DeltaRetry && d.Kind != lathe.DeltaFinish && r.call.firstToken.IsZero() {
		r.call.firstToken = r.loop.opts.Now()
	}
	if s.withholds(d.Kind) {
		s.withheld = append(s.withheld, d)
		return !r.out.stopped
	}
	s.show(&d)
	return !r.out.stopped && r.call.err == nil
}

// withholds reports whether a delta is withheld until the end of its attempt; see [stream]. If the server parses the calls, unreadable ones
// are rare, so only calls and the deltas behind them are withheld.
func (s *stream) withholds(kind lathe.DeltaKind) bool {
	r := s.run
	if r.settings.OnParseError != lathe.ParseErrorRetryWithout || !r.call.mayCall || r.call.repeated {
		return false
	}
	if !r.loop.info.WritesCalls && kind != lathe.DeltaCallStart && len(s.withheld) == 0 {
		return false
	}
	switch kind {
	case lathe.DeltaText, lathe.DeltaRefusal, lathe.DeltaReasoning, lathe.DeltaCommentary, lathe.DeltaCallStart, lathe.DeltaCallArgs, lathe.DeltaCallEnd,
		lathe.DeltaPart, lathe.DeltaTextEnd, lathe.DeltaReasoningData:
		return true
	default:
		return false
	}
}

// showWithheld emits the withheld deltas of an attempt that is kept.
func (s *stream) showWithheld() {
	for i := range s.withheld {
		s.show(&s.withheld[i])
	}
	s.withheld = s.withheld[:0]
}

// show emits the event of one delta, or processes a delta that has none.
func (s *stream) show(d *lathe.Delta) {
	r := s.run
	switch d.Kind {
	case lathe.DeltaReasoningData: // its data is not text of the answer
		other := *d
		r.emit(s.text.with(event.TextDelta{Delta: &other}))
	case lathe.DeltaText, lathe.DeltaRefusal, lathe.DeltaPart, lathe.DeltaTextEnd:
		s.shown = s.shown || d.Kind != lathe.DeltaTextEnd
		e := s.text.with(event.TextDelta{Bytes: len(d.Text), Text: d.Text})
		if d.Kind != lathe.DeltaText {
			other := *d
			e.Delta = &other
		}
		r.emit(e)
	case lathe.DeltaReasoning:
		r.emit(s.reasoning.with(event.ReasoningDelta{Bytes: len(d.Text), Text: d.Text}))
	case lathe.DeltaCommentary:
		r.emit(s.commentary.with(event.CommentaryDelta{Bytes: len(d.Text), Text: d.Text}))
	case lathe.DeltaCallStart:
		s.openCall(d)
	case lathe.DeltaCallArgs:
		s.callArgs(d)
	case lathe.DeltaCallEnd: // the message contains the call
	case lathe.DeltaParseError:
		s.parseErrors++
		s.emitParseError(d.Code, r.loop.info.Dialect, d.Text, max(d.Bytes, len(d.Text)))
	case lathe.DeltaRetry:
		s.retry(d.Retry)
	case lathe.DeltaFinish:
		r.call.finish = d.Finish
	}
}

// retry ends the failed attempt and starts the next one, unless the meter refuses it.
func (s *stream) retry(t *lathe.Retry) {
	if t == nil {
		return
	}
	var err error
	if t.Err != nil { // a nil *lathe.Error would become an error that is not nil
		err = t.Err
	}
	c := &s.run.call
	c.failAttempt(err)
	c.announceAttempt(t.Wait)
	if c.repeat != nil {
		c.err = c.repeat(err)
	}
}

// openCall emits the start of a call. The event contains the call id only if the id is final.
func (s *stream) openCall(d *lathe.Delta) {
	if !s.run.call.mayCall {
		return
	}
	o := openCall{index: d.Index, tool: s.registered(d.Name), id: strings.TrimSpace(d.ID)}
	if token(o.id) == "" || s.hasCall(o.id) || s.idsOpen() {
		o.id = ""
	}
	s.open = append(s.open, o)
	s.callArgs(d)
}

// idsOpen reports whether a call of this attempt has an id that is not final: it may become equal to any other.
func (s *stream) idsOpen() bool {
	return slices.ContainsFunc(s.open, func(x openCall) bool { return x.id == "" })
}

// hasCall reports whether the run has a call with this id, so that the new call will get another id.
func (s *stream) hasCall(id string) bool {
	return s.run.work.HasCall(id) || slices.ContainsFunc(s.open, func(x openCall) bool { return x.id == id })
}

func (s *stream) callArgs(d *lathe.Delta) {
	if !s.run.call.mayCall {
		return
	}
	e := s.args.with(event.ToolCallDelta{Index: d.Index, Tool: unknown, Bytes: len(d.Text), Text: d.Text})
	for i := len(s.open) - 1; i >= 0; i-- { // the last one: a server may use an index again
		if s.open[i].index == d.Index {
			e.ToolCallID, e.Tool = s.open[i].id, s.open[i].tool
			break
		}
	}
	s.run.emit(e)
}

// registered returns the name of the tool that the run offers under this name, also if the model wrote dots for underscores. For other names,
// it returns the constant unknown.
func (s *stream) registered(name string) string {
	spec := s.run.work.Offered(name)
	if spec == nil {
		spec = s.run.work.Offered(strings.ReplaceAll(name, ".", "_"))
	}
	if spec == nil {
		return unknown
	}
	return spec.Name
}

// emitParseErrors emits an event for each unreadable call of m that the stream has not reported.
func (s *stream) emitParseErrors(m *lathe.Message) {
	seen := 0
	for _, p := range m.Parts {
		tc, ok := p.(lathe.ToolCall)
		if !ok || tc.ParseError == "" {
			continue
		}
		seen++
		if seen > s.parseErrors {
			s.parseErrors++
			s.emitParseError(tc.ParseError, tc.Dialect, tc.Arguments, len(tc.Arguments))
		}
	}
}

// maxExcerpt is the maximum length, in bytes, of the excerpt of an unreadable call in an event.
const maxExcerpt = 200

func (s *stream) emitParseError(code lathe.Code, dialect, body string, size int) {
	dialect = dialectName(dialect, s.run.loop.info.Dialect)
	s.run.emit(&event.ToolCallParseError{Dialect: dialect, Error: parseErrorCode(code), ExcerptBytes: size, RawExcerpt: text.Cut(body, maxExcerpt)})
}
