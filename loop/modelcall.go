package loop

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/digest"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/internal/visible"
	"github.com/lathe-run/lathe/tool"
)

// A modelCall is the model call of one turn, with all its attempts: it sends the request, passes the deltas to its stream, decides whether
// a failed attempt is repeated, and adds the message to the history.
type modelCall struct {
	run      *run
	stream   stream
	mayCall  bool              // the model may make calls in this attempt
	repeated bool              // the turn was repeated without tools after a parse error
	repeat   func(error) error // [Admission].Repeat of this attempt; nil: none

	number int // of the attempt within the turn, from 1
	attempt

	// What read has found in the message of the last attempt, or [run.resume] in the log.
	message lathe.Message // as added to the history
	asked   []tool.Call   // the calls of message
	kept    bool          // message is in the history
	answer  string
	blank   bool // message has nothing to show
}

// An attempt is what announceAttempt resets. It has succeeded if finish is set, and failed if err is set; both are never set.
type attempt struct {
	started    time.Time
	firstToken time.Time
	events     *callEvents
	err        error
	finish     *lathe.Finish
	ignored    int // number of calls that were dropped
	renamed    int // number of calls whose name was corrected
}

type callEvents struct {
	started  event.ModelCallStarted
	request  event.ModelRequest
	finished event.ModelCallFinished
}

// An openCall is the description of a call in delta events: a registered tool name, and an id only if it is final.
type openCall struct {
	index    int
	id, tool string
}

// ask makes the model call of the next turn, with repeated attempts if necessary, and adds the message of the model to the history. It
// returns false if the run is over.
func (c *modelCall) ask(ctx context.Context, withTools bool) bool {
	r := c.run
	r.turn++
	r.result.Trace = append(r.result.Trace, event.TurnTrace{Turn: r.turn, Model: r.loop.info.Model, Agent: r.loop.opts.Agent})
	c.number, c.repeated = r.from.attempts, false
	r.from.attempts = 0
	for ; ; withTools = false { // a repeated turn has no tools
		c.startAttempt(withTools)
		c.generate(ctx)
		switch {
		case c.finish == nil:
			if !c.repeatOrEnd(ctx, withTools) {
				return false
			}
		case c.mayCall && c.dropUnreadable():
			c.finishAttempt()
		default:
			c.stream.showWithheld()
			c.read()
			c.finishAttempt()
			return true
		}
	}
}

// startAttempt prepares the request and emits the event of the start of the attempt.
func (c *modelCall) startAttempt(withTools bool) {
	r := c.run
	r.req.Tools, r.req.ToolChoice, r.req.ParallelToolCalls = nil, lathe.ToolChoice{}, nil
	if withTools && len(r.specs) > 0 {
		r.req.Tools, r.req.ToolChoice, r.req.ParallelToolCalls = r.specs, c.choice(), r.settings.ParallelToolCalls
	} else if !withTools && r.followUp.unanswered() && r.loop.Wire() == lathe.WireMessages {
		// Messages API: thinking in the history is bound to the tool definitions before it, so they remain, and the choice forbids calls.
		r.req.Tools, r.req.ToolChoice = r.specs, lathe.ToolChoice{Mode: lathe.ChoiceNone}
	}
	relay := r.in.extra.Relay
	sendsOtherTools := len(r.req.Tools) != len(r.in.ClientTools)
	if relay != nil && relay.Request != nil && sendsOtherTools {
		own := *relay
		own.Request = nil // these bytes contain the tools of the client
		relay = &own
	}
	r.req.Relay = relay
	r.req.ClientCalls = len(r.specs) == len(r.in.ClientTools)
	c.mayCall = withTools && c.choiceAllows()
	r.req.TextCalls.Tools = nil
	if !c.mayCall && r.settings.ToolUseMode != lathe.ModeDisabled {
		r.req.TextCalls.Tools = r.specs
	}
	c.announceAttempt(0)
}

// announceAttempt resets the state for an attempt that starts after wait, and emits its event.
func (c *modelCall) announceAttempt(wait time.Duration) {
	r := c.run
	c.number++
	c.attempt = attempt{started: r.loop.opts.Now().Add(wait), events: &callEvents{}}
	c.stream.reset()
	r.prompt.Add(r.req.Messages[r.prompt.hashed:]...)
	r.prompt.hashed = len(r.req.Messages)
	s := &c.events.started
	*s = event.ModelCallStarted{
		Attempt: c.number, Provider: r.loop.info.Provider, Model: r.loop.info.Model, Agent: r.loop.opts.Agent,
		Messages: len(r.req.Messages), Tools: len(r.req.Tools), Asked: r.followUp.announce(), Request: &c.events.request,
	}
	info := &r.loop.info
	c.events.request = event.ModelRequest{Server: info.Server, Wire: info.Wire, Messages: slices.Clip(r.req.Messages), Tools: r.req.Tools}
	hash := r.hash
	if len(r.req.Tools) == 0 {
		hash = digest.NoTools
	}
	s.PromptHash, s.PromptHashV2 = r.prompt.Sum(&r.req.Sampling, hash, r.req.ToolChoice)
	t := r.turnTrace()
	t.Messages, t.Tools = s.Messages, s.Tools
	r.emit(s)
}

func (r *record) turnTrace() *event.TurnTrace { return &r.result.Trace[len(r.result.Trace)-1] }

// repeatOrEnd emits the event of a failed attempt. It returns true if the turn is to be repeated without tools, because the server does not
// support them and the settings allow it. Otherwise it ends the run.
func (c *modelCall) repeatOrEnd(ctx context.Context, withTools bool) bool {
	r := c.run
	if c.err == nil && ctx.Err() == nil && !r.out.stopped {
		c.err = lathe.CodeUpstreamProtocol.Errorf("loop: model call", "the turn ended without a finish")
	}
	if r.endIfDone(ctx) {
		c.err = r.result.Err
		if c.err == nil {
			c.err = &lathe.Error{Code: lathe.CodeTimeout, Op: "loop: model call"}
		}
		c.failAttempt(c.err)
		return false
	}
	c.failAttempt(c.err)
	sentTools := withTools && len(r.req.Tools) > 0
	if sentTools && r.settings.ToolUseMode == lathe.ModeRelaxed && r.fallbacks > 0 && refusesTools(c.err) {
		r.fallbacks--
		return true
	}
	if r.followUp.blankAsked && !withTools && !c.stream.shown && unparsed(c.err) {
		// The answer before the loop's own request was blank: the run ends with it, as without fix_empty_final.
		r.answer()
		return false
	}
	c.endRun()
	return false
}

// endRun ends the run with the error of the attempt.
func (c *modelCall) endRun() {
	reason, code := lathe.ReasonInternal, codeOf(c.err)
	var up *lathe.UpstreamError
	switch {
	case refusedByMeter(c.err):
		reason = lathe.ReasonBudgetExhausted
	case errors.As(c.err, &up) || code == lathe.CodeUpstream || code == lathe.CodeUpstreamProtocol:
		reason = lathe.ReasonUpstreamError
	}
	c.run.fail(reason, code, c.err)
	c.run.errorCode = errorCode(c.err)
}

// maxErrorMessage is the maximum length, in bytes, of the error text of a server in an event.
const maxErrorMessage = 500

// failAttempt emits the event of the failure of the current attempt.
func (c *modelCall) failAttempt(err error) {
	r := c.run
	f := &c.events.finished
	*f = event.ModelCallFinished{
		Attempt: c.number, Provider: r.loop.info.Provider, Model: r.loop.info.Model,
		Status: "error", ErrorCode: errorCode(err), LatencyMS: r.loop.since(c.started), FirstTokenMS: c.firstTokenMS(),
	}
	var up *lathe.UpstreamError
	if errors.As(err, &up) {
		f.UpstreamRequestID, f.UpstreamStatus, f.ProviderCode = token(up.RequestID), max(up.Status, 0), providerCode(up.ProviderCode)
		f.ErrorMessage = strings.ToValidUTF8(text.Cut(up.Detail, maxErrorMessage), "")
	}
	r.emit(f)
}

// errorCode returns the kind of an upstream error, or the code of any other error.
func errorCode(err error) string {
	var up *lathe.UpstreamError
	if errors.As(err, &up) && upstreamKind(up.Kind) {
		return string(up.Kind)
	}
	return string(codeOf(err))
}

// dropUnreadable drops the message with all its calls if one of them could not be parsed and the settings say that the turn is then repeated
// without tools. It returns true if it did. It keeps a message of which text was already emitted.
func (c *modelCall) dropUnreadable() bool {
	if c.run.settings.OnParseError != lathe.ParseErrorRetryWithout || c.repeated || c.stream.shown {
		return false
	}
	c.stream.emitParseErrors(&c.finish.Message)
	if c.stream.parseErrors == 0 {
		return false
	}
	c.repeated, c.kept, c.message, c.asked = true, false, lathe.Message{}, nil
	for _, p := range c.finish.Message.Parts {
		if _, ok := p.(lathe.ToolCall); ok {
			c.ignored++
		}
	}
	return true
}

// read processes the message of the model: it gives calls their final ids, drops calls if none were allowed, sets the answer, and adds the
// message to the history unless it is blank and has no calls.
func (c *modelCall) read() {
	r := c.run
	c.message, c.asked = c.finish.Message, nil
	c.message.Role = lathe.RoleAssistant
	if c.mayCall {
		r.work.Adopt(&c.message)
		c.stream.emitParseErrors(&c.message)
		c.asked = c.callsOf()
	} else {
		c.ignored = dropCalls(&c.message)
	}
	c.answer, c.blank = answerOf(&c.message)
	if c.kept = len(c.asked) > 0 || !c.blank; c.kept {
		r.req.Messages = append(r.req.Messages, c.message)
	}
}

// choiceAllows returns false if the tool choice forbids calls although the definitions are sent.
func (c *modelCall) choiceAllows() bool { return c.run.settings.ToolChoice.Mode != lathe.ChoiceNone }

// callsOf returns the calls of the message, and counts the names that Work.Adopt has corrected.
func (c *modelCall) callsOf() (calls []tool.Call) {
	for i, p := range c.message.Parts {
		tc, ok := p.(lathe.ToolCall)
		if !ok {
			continue
		}
		call := tool.Call{ToolCall: tc}
		if before, ok := c.finish.Message.Parts[i].(lathe.ToolCall); ok && before.Name != tc.Name {
			call.Written = before.Name
			c.renamed++
		}
		if tc.Dialect != "" {
			call.Dialect = dialectName(tc.Dialect, c.run.loop.info.Dialect)
		}
		if tc.ParseError != "" {
			call.ParseError = parseErrorCode(tc.ParseError)
		}
		calls = append(calls, call)
	}
	return calls
}

// dropCalls removes the calls from m, since no result will follow them in the history. It returns their number.
func dropCalls(m *lathe.Message) int {
	before := len(m.Parts)
	m.Parts = without(m.Parts, func(p lathe.Part) bool { _, ok := p.(lathe.ToolCall); return ok })
	return before - len(m.Parts)
}

// answerOf returns the visible text of the message, or its refusal if that text is blank. blank reports that the message has nothing to
// show.
func answerOf(m *lathe.Message) (text string, blank bool) {
	text = visible.String(m)
	blank = strings.TrimSpace(text) == ""
	for _, p := range m.Parts {
		switch p := p.(type) {
		case lathe.Refusal:
			if blank {
				text = p.Text
			}
			blank = false
		case lathe.Blob, lathe.Opaque: // such as a question of the vendor's server
			blank = false
		case lathe.Text, lathe.Reasoning, lathe.ToolCall, lathe.ToolResult:
		}
	}
	return text, blank
}

// finishAttempt adds usage and cost of the attempt to the run, and emits the event of its success.
func (c *modelCall) finishAttempt() {
	r := c.run
	f := c.finish
	spent, price := usage(f.Usage), cost(f.ProviderCost)
	r.result.Usage.Add(spent)
	t := r.turnTrace()
	t.Finish = finishReason(f.Reason)
	t.Usage.Add(spent)
	t.IgnoredToolCalls += c.ignored
	e := &c.events.finished
	*e = event.ModelCallFinished{
		Attempt: c.number, Provider: r.loop.info.Provider, Model: r.loop.info.Model, Status: "success",
		FinishReason: t.Finish, Usage: spent, LatencyMS: r.loop.since(c.started), FirstTokenMS: c.firstTokenMS(),
		ToolCalls: len(c.asked), IgnoredToolCalls: c.ignored, UpstreamRequestID: token(f.UpstreamRequestID), ResponseID: token(f.ResponseID),
		ProviderCost: price, Faults: faults(c.allFaults()), Dropped: f.Dropped,
	}
	if r.loop.opts.Cost != nil && spent != (lathe.Usage{}) {
		dollars := r.loop.opts.Cost(spent)
		e.Cost = &dollars
	}
	if dollars := e.Dollars(); dollars != nil {
		r.result.Cost += *dollars
	}
	t.Dropped = f.Dropped
	if m := token(f.Model); m != "" {
		e.Model, t.Model = m, m
	}
	switch {
	case c.kept:
		e.Message = &r.req.Messages[len(r.req.Messages)-1]
	case len(c.message.Parts) > 0: // reasoning alone: it is in the event but not in the history
		m := c.message
		e.Message = &m
	}
	r.emit(e)
}

// allFaults returns the faults of the turn and those that the loop has found.
func (c *modelCall) allFaults() []lathe.Fault {
	found := slices.Clip(c.finish.Faults)
	if c.renamed > 0 {
		found = append(found, lathe.Fault{Kind: "name_repaired", Count: c.renamed})
	}
	recorded := func(f lathe.Fault) bool { return f.Kind == "tool_choice_ignored" }
	if c.choiceIgnored() && !slices.ContainsFunc(found, recorded) { // a replay has recorded the fault
		found = append(found, lathe.Fault{Kind: "tool_choice_ignored", Count: 1})
	}
	return found
}

// choiceIgnored reports whether the request named a tool and the model called another one or none, as servers without this feature allow.
func (c *modelCall) choiceIgnored() bool {
	choice := c.run.req.ToolChoice
	if choice.Mode != lathe.ChoiceFunction {
		return false
	}
	calls := c.finish.Message.Calls()
	return len(calls) == 0 || slices.ContainsFunc(calls, func(c lathe.ToolCall) bool { return c.Name != choice.Name })
}

func (c *modelCall) firstTokenMS() int64 {
	if c.firstToken.IsZero() {
		return 0
	}
	return max(c.firstToken.Sub(c.started).Milliseconds(), 0)
}

func (l *Loop) since(t time.Time) int64 { return max(l.opts.Now().Sub(t).Milliseconds(), 0) }
