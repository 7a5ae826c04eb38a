package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/digest"
	"github.com/lathe-run/lathe/tool"
)

// A run is the state of one run. It is pooled: what a caller may keep is in its record.
type run struct {
	loop     *Loop
	in       *Input
	yield    func(lathe.Event) bool
	cancel   context.CancelFunc
	done     <-chan struct{}
	stopped  bool // the consumer went away
	telling  bool // the consumer has the event
	settings lathe.Settings
	limits   lathe.Limits

	model   lathe.Model
	work    *tool.Work
	specs   []*lathe.ToolSpec // advertised, sorted by name
	prompt  *digest.Prompt
	hashed  int // messages that prompt has
	req     lathe.Request
	started time.Time

	turn       int
	reason     lathe.Reason // set: the run is over
	limit      string
	errorCode  string
	toolsOff   bool // for the rest of the run: only an answer is wanted
	askedFinal bool
	moved      *lathe.Message // as it was before moveQuestion changed it; nil: none
	movedTo    int            // its place
	fallbacks  int            // turns that may still be repeated without tools
	attempts   int            // of the next model call that were made before the run was resumed
	stale      error          // why a run cannot be resumed
	paused     *lathe.RunPaused
	order      []string // of a turn that was resumed: its calls
	tail       int      // and where its answers begin

	call    call
	emitFn  func(lathe.EventData)
	deltaFn func(lathe.Delta, error) bool
	*record
}

// A record is the part of a run that outlives it: events and the result. One allocation holds
// what a short run needs of each.
type record struct {
	info       lathe.RunInfo
	runOpts    tool.RunOptions
	result     lathe.Result
	timeout    timeoutError
	opened     lathe.RunStarted
	finished   lathe.RunFinished
	calls      [2]callEvents
	usedCalls  int
	traceSpace [2]lathe.TurnTrace
	history    [growth + 2]lathe.Message
}

type timeoutError struct{ after time.Duration }

func (e *timeoutError) Error() string { return fmt.Sprintf("the run took longer than %v", e.after) }

// growth is how many messages a history has room for before it moves: three turns of one call.
const growth = 7

func (l *Loop) newRun(in *Input, yield func(lathe.Event) bool) *run {
	if in == nil {
		in = &Input{}
	}
	var stale error
	if in.Resume != nil {
		in, stale = in.again()
	}
	r, _ := l.runs.Get().(*run)
	if r == nil {
		r = &run{prompt: digest.NewPrompt(l.name)}
		r.emitFn = r.emit
		r.deltaFn = r.delta
	}
	r.prompt.Reset(l.name)
	r.loop, r.in, r.yield, r.stale = l, in, yield, stale
	r.record = &record{info: in.Run}
	r.result.Trace = r.traceSpace[:0]
	r.settings, r.limits = l.opts.Settings, l.opts.Limits
	if in.Settings != nil {
		r.settings = *in.Settings
	}
	if in.Limits != nil {
		r.limits = *in.Limits
	}
	r.settings = withDefaults(r.settings, &l.info)
	r.limits = r.limits.WithDefaults()
	r.fallbacks = r.settings.FallbackRetryCount
	r.model = l.model
	r.req = lathe.Request{
		Model:     l.opts.Model,
		Messages:  append(r.roomFor(len(in.history())+growth), in.history()...),
		Sampling:  l.opts.Sampling,
		Overrides: overrides(in.Overrides, l.opts.Overrides),
		Relay:     in.Relay,
		User:      in.User,
		RequestID: in.Run.RequestID,
	}
	if in.Sampling != nil {
		r.req.Sampling = *in.Sampling
	}
	return r
}

// overrides returns both lists, of which the later has precedence.
func overrides(ofRun, ofLoop []lathe.Member) []lathe.Member {
	if len(ofRun) == 0 {
		return ofLoop
	}
	return slices.Concat(ofRun, ofLoop)
}

// roomFor returns an empty history with room for n messages, in the record where that is enough.
func (r *run) roomFor(n int) []lathe.Message {
	if n > len(r.history) {
		return make([]lathe.Message, 0, n)
	}
	return r.history[:0]
}

// release gives r's buffers to the next run.
func (l *Loop) release(r *run) {
	clear(r.call.open[:cap(r.call.open)])
	clear(r.call.asked[:cap(r.call.asked)])
	r.work.Close()
	*r = run{prompt: r.prompt, emitFn: r.emitFn, deltaFn: r.deltaFn, call: call{open: r.call.open[:0], asked: r.call.asked[:0]}}
	l.runs.Put(r)
}

func (r *run) run(parent context.Context) {
	r.started = r.loop.opts.Now()
	r.info.Depth = max(r.info.Depth, Depth(parent))
	if call := lathe.CallMetaFrom(parent); call != nil && r.info.ParentRunID == "" {
		r.info.ParentRunID, r.info.ParentCallID = call.RunID, call.CallID
	}
	var ctx context.Context
	if r.limits.RunTimeout < 0 {
		ctx, r.cancel = context.WithCancel(parent)
	} else {
		r.timeout.after = r.limits.RunTimeout
		ctx, r.cancel = context.WithTimeoutCause(parent, r.limits.RunTimeout, &r.timeout)
	}
	defer r.cancel()
	r.done = ctx.Done()
	if o, ok := r.loop.model.(lathe.Opener); ok {
		m, closeFn := o.Open()
		r.model = m
		defer closeFn()
	}
	r.begin()
	if r.in.Resume != nil && r.reason == "" {
		r.resume(ctx)
	}
	for r.reason == "" {
		r.step(ctx)
	}
	r.finish()
}

// begin opens the work of the runner and tells how the run starts.
func (r *run) begin() {
	r.runOpts = tool.RunOptions{Settings: &r.settings, Limits: &r.limits, ClientTools: r.in.ClientTools, Allow: r.in.Allow, History: r.in.history(),
		HandOver: r.in.Relay != nil}
	switch {
	case r.in.Resume != nil:
		r.runOpts.Resumed = r.in.Resume.before()
	case r.in.Continues != "":
		r.runOpts.Resumed = &tool.Resumed{Calls: takenCalls(r.in.taken())}
	}
	r.work = r.loop.runner.Begin(&r.info, &r.runOpts)
	if r.settings.ToolUseMode != lathe.ModeDisabled {
		r.specs = r.work.Specs()
	}
	r.result.Withheld = r.withheld()
	r.opened = lathe.RunStarted{
		Model: r.loop.info.Model, Provider: r.loop.info.Provider, Dialect: r.loop.info.Dialect,
		ToolUseMode: r.settings.ToolUseMode, FailurePolicy: r.settings.FailurePolicy,
		Tools: r.toolsDigest(),
		Limits: lathe.LimitsView{
			MaxIterations: r.limits.MaxIterations, MaxToolCalls: r.limits.MaxToolCalls,
			MaxToolArgsBytes: r.limits.MaxToolArgsBytes, MaxOutputBytes: r.limits.MaxOutputBytes,
			RunTimeoutMS: max(r.limits.RunTimeout, 0).Milliseconds(),
		},
		ParentRunID: r.info.ParentRunID, ParentToolCallID: r.info.ParentCallID,
		Continues: r.in.Continues, TakenOver: len(r.in.taken()),
		Messages: slices.Clip(r.req.Messages), Principal: r.info.Principal, Labels: r.info.Labels, Target: r.in.Target,
		Retention: r.loop.Retention(),
	}
	switch {
	case r.in.Resume != nil:
		r.turn = r.in.Resume.Turn
		r.emit(r.in.Resume.resumed())
	case r.in.Park:
		var err error
		if r.opened.Input, err = r.in.start(); err != nil {
			r.stale = err
		}
		fallthrough
	default:
		r.emit(&r.opened)
	}
	r.refuse()
}

// withheld returns the tools that the run may use and that its model is not offered. Where the mode turns tools off, that is
// the reason for each.
func (r *run) withheld() []lathe.WithheldTool {
	held := r.work.Withheld()
	if r.settings.ToolUseMode != lathe.ModeDisabled {
		return held
	}
	for i := range held {
		held[i].Reason, held[i].Rule = lathe.WithheldMode, ""
	}
	for _, spec := range r.work.Specs() {
		held = append(held, lathe.WithheldTool{Tool: spec.Name, Reason: lathe.WithheldMode})
	}
	slices.SortFunc(held, func(a, b lathe.WithheldTool) int { return strings.Compare(a.Tool, b.Tool) })
	return held
}

// maxWithheld bounds the withheld tools that RunStarted names.
const maxWithheld = 50

func (r *run) toolsDigest() lathe.ToolsDigest {
	held := r.result.Withheld
	return lathe.ToolsDigest{Count: len(r.specs), Hash: r.loop.toolsHash(r.specs), Withheld: held[:min(len(held), maxWithheld):min(len(held), maxWithheld)], WithheldCount: len(held)}
}

// refuse ends a run that must not begin.
func (r *run) refuse() {
	err := CheckLabels(r.info.Labels)
	if err == nil {
		err = checkHistory(r.in.Messages)
	}
	if r.stale != nil {
		err = r.stale
	}
	switch {
	case err != nil:
		r.fail(lathe.ReasonInternal, lathe.CodeInvalidRequest, err)
	case r.in.Settings != nil && checkSettings(r.in.Settings) != nil:
		r.fail(lathe.ReasonInternal, lathe.CodeInvalidRequest, checkSettings(r.in.Settings))
	case r.in.Limits != nil && checkLimits(r.in.Limits) != nil:
		r.fail(lathe.ReasonInternal, lathe.CodeInvalidRequest, checkLimits(r.in.Limits))
	case r.info.Depth > max(r.limits.MaxDepth, 0):
		r.limit = "max_depth"
		r.fail(lathe.ReasonInternal, lathe.CodeMaxDepth, fmt.Errorf("a run at depth %d, where %d is allowed", r.info.Depth, max(r.limits.MaxDepth, 0)))
	case len(r.specs) > r.limits.MaxTools:
		r.limit = "max_tools"
		r.fail(lathe.ReasonInternal, lathe.CodeInvalidRequest, fmt.Errorf("%d tools, where max_tools is %d", len(r.specs), r.limits.MaxTools))
	case len(r.specs) > 0 && (len(r.in.ClientTools) > 0 || r.in.Limits != nil): // else New has checked
		if err := r.loop.runner.Check(&r.info, &r.runOpts); err != nil {
			r.fail(lathe.ReasonInternal, lathe.CodeInvalidRequest, err)
		}
	}
}

// step takes one turn: asks the model, then answers its calls, or ends the run.
func (r *run) step(ctx context.Context) {
	if r.interrupted(ctx) {
		return
	}
	if reason, key := r.exhausted(); reason != "" {
		r.reachLimit(ctx, reason, key)
		return
	}
	if !r.mayStep() {
		return
	}
	withTools := !r.toolsOff && r.settings.ToolUseMode != lathe.ModeDisabled
	if withTools && r.work.Refresh() { // a source of tools has changed them since the last turn
		r.specs = r.work.Specs()
	}
	if !r.ask(ctx, withTools) {
		return
	}
	switch cut := r.call.finish.Reason; {
	case cut == lathe.FinishLength || cut == lathe.FinishContentFilter:
		r.endCut(ctx, cut)
	case len(r.call.asked) == 0:
		r.answer()
	default:
		r.execute(ctx)
	}
}

// endCut ends a run whose model was cut off. Calls of such a message may be half written: none is executed.
func (r *run) endCut(ctx context.Context, cut lathe.FinishReason) {
	r.result.Answer = r.call.answer
	if len(r.call.asked) > 0 {
		r.settle(ctx, lathe.CodeIncompleteCall)
	}
	if cut == lathe.FinishContentFilter {
		r.fail(lathe.ReasonContentFilter, "", errors.New("the server's content filter stopped the model"))
		return
	}
	r.reason = lathe.ReasonLength
}

// answer ends the run with the text of the turn, once more asked for when it is blank.
func (r *run) answer() {
	r.result.Answer = r.call.answer
	if r.call.blank && (r.work.Called() || r.afterResults()) && !r.askedFinal && !r.settings.NoFixEmptyFinal && r.settings.ToolUseMode != lathe.ModeDisabled {
		r.askedFinal = true
		r.toolsOff = r.toolsOff || !r.settings.FixEmptyFinalKeepTools
		r.askForAnswer()
		return
	}
	r.reason = lathe.ReasonAnswered
	if r.settings.ToolUseMode == lathe.ModeEnforced {
		r.enforce()
	}
}

// afterResults reports whether the conversation that the run was given ends with results of tools, which the caller executed.
func (r *run) afterResults() bool {
	given := r.in.Messages
	return r.in.Relay == nil && len(given) > 0 && given[len(given)-1].Role == lathe.RoleTool
}

// askForAnswer adds the loop's own request for an answer, unless it has just been made.
func (r *run) askForAnswer() {
	if r.unanswered() {
		return
	}
	m := lathe.User(r.settings.FixEmptyFinalText)
	m.Synthetic = true
	r.req.Messages = append(r.req.Messages, m)
}

// unanswered reports whether the loop's own request for an answer is the last message, or stands in it.
func (r *run) unanswered() bool {
	n := len(r.req.Messages)
	return n > len(r.in.Messages) && (r.req.Messages[n-1].Synthetic || r.moved != nil && r.movedTo == n-1)
}

// moveQuestion puts the words of the loop's own request for an answer at the end of the message before it: servers
// whose templates want user and assistant in turn take no user message after the result of a tool. It returns
// false if the request is not the last message.
func (r *run) moveQuestion() bool {
	n := len(r.req.Messages)
	if n < 2 || r.moved != nil || !r.unanswered() {
		return false
	}
	before := r.req.Messages[n-2]
	kept, words := before, "\n\n"+r.req.Messages[n-1].Text()
	before.Parts = slices.Clone(before.Parts)
	switch {
	case before.Role == lathe.RoleTool && len(before.Parts) == 1:
		result, ok := before.Parts[0].(lathe.ToolResult)
		if !ok {
			return false
		}
		result.Content += words
		before.Parts[0] = result
	case before.Role == lathe.RoleUser:
		before.Parts = append(before.Parts, lathe.Text{Text: words})
	default:
		return false
	}
	r.req.Messages = append(r.req.Messages[:n-2:n-2], before) // a copy: events have shown the one before
	r.moved, r.movedTo = &kept, n-2
	r.prompt.Reset(r.loop.name)
	r.hashed = 0
	return true
}

// enforce holds an answered run to tool_use_mode enforced: a call is required, and either no tool
// may end with a failure or one call must have succeeded.
func (r *run) enforce() {
	switch {
	case !r.work.Called():
		r.fail(lathe.ReasonNoToolCalls, "", errors.New("no tool was called where a call is required"))
	case r.settings.FailurePolicy == lathe.FailureTolerated && r.work.Succeeded():
	default:
		if failed := r.work.Failed(); len(failed) > 0 {
			r.result.FailedTools = failed
			r.fail(lathe.ReasonToolError, "", fmt.Errorf("failed: %s", strings.Join(failed, ", ")))
		}
	}
}
