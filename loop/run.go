package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/digest"
	"github.com/lathe-run/lathe/internal/setting"
	"github.com/lathe-run/lathe/tool"
)

// A run is the state of one run: it decides which step follows. Its parts execute the steps: call makes the model call of a turn, followUp
// makes the loop's own requests for an answer, out passes the events on. Events and results that a caller may retain point into the record
// only, so that they do not keep the rest of the run in memory.
type run struct {
	loop     *Loop
	in       *Input
	out      output
	cancel   context.CancelFunc
	done     <-chan struct{}
	settings lathe.Settings
	limits   lathe.Limits

	work    *tool.Work
	specs   []*lathe.ToolSpec // the result of tool.Work.Specs
	hash    string            // hash of specs
	prompt  promptHash
	req     lathe.Request // of the current model call; its Messages are the history
	started time.Time

	turn      int  // number of the last model call, from 1
	toolsOff  bool // no more tools for the rest of the run: only an answer is wanted
	fallbacks int  // the number of turns that may still be repeated without tools

	ending
	from     resumption
	followUp followUp
	call     modelCall
	*record
}

// An ending is how a run ends, or how it leaves this loop. The loop in run.run stops after the step that sets reason or suspended; no step
// sets both.
type ending struct {
	reason    lathe.Reason     // "": the run continues
	limit     string           // the key of the limit that was reached; "": none
	errorCode string           // of the error in result; "": none
	paused    *event.RunPaused // set by pause: the event before RunFinished, or in its place if the run is parked
	suspended bool             // no event ends the range: the run continues later, or in another loop (resumption.next)
}

// An output passes events to the consumer of a run.
type output struct {
	yield      func(event.Event) bool
	delivering bool // yield is executing, so a panic is the consumer's
	stopped    bool // yield has returned false
}

// A promptHash is the incremental hash of the messages of a run.
type promptHash struct {
	*digest.Prompt
	hashed int // the number of messages included in the hash
}

// A resumption is the starting point of a resumed run, and that of the loop that continues this one.
type resumption struct {
	stale    error    // the reason why the run cannot be resumed, now or later
	attempts int      // attempts of the next model call that an earlier process made
	order    []string // the ids of the calls of the unfinished turn
	tail     int      // the index in the history at which the tool messages of the unfinished turn begin
	loaded   []string // value of [State].Loaded
	next     *Input   // of the loop that continues the run; nil: none does
}

// A record is the part of a run that events and results point to.
type record struct {
	info     lathe.RunInfo
	runOpts  tool.RunOptions
	result   event.Result
	timeout  timeoutError
	opened   event.RunStarted
	finished event.RunFinished
}

type timeoutError struct{ after time.Duration }

func (e *timeoutError) Error() string { return fmt.Sprintf("the run took longer than %v", e.after) }

func (l *Loop) newRun(in *Input, yield func(event.Event) bool) *run {
	var stale error
	if in.Resume != nil && !in.handedOver {
		in, stale = in.restored()
	}
	r := &run{
		loop: l, in: in, out: output{yield: yield}, from: resumption{stale: stale}, prompt: promptHash{Prompt: digest.NewPrompt(l.name)},
		settings: l.opts.Settings, limits: l.opts.Limits, record: &record{info: in.Run},
	}
	r.call.run, r.call.stream.run, r.followUp.run = r, r, r
	if in.Settings != nil {
		r.settings = *in.Settings
	}
	if in.Limits != nil {
		r.limits = *in.Limits
	}
	r.settings = withDefaults(r.settings, &l.info)
	setting.Fill(&r.limits)
	r.fallbacks = r.settings.FallbackRetryCount
	r.req = lathe.Request{
		Model:       l.opts.Model,
		Messages:    append([]lathe.Message{}, in.history()...),
		Sampling:    l.opts.Sampling,
		Overrides:   overrides(in.Overrides, l.opts.Overrides),
		Relay:       in.extra.Relay,
		HostedTools: in.extra.HostedTools,
		Betas:       in.extra.Betas,
		APIVersion:  in.extra.APIVersion,
		User:        in.extra.User,
		RequestID:   in.Run.RequestID,
	}
	if r.limits.MaxPayloadBytes < math.MaxInt { // a request has 0 in place of the highest number, for no limit
		r.req.MaxPayloadBytes = r.limits.MaxPayloadBytes
	}
	r.req.TextCalls.MaxArgsBytes, r.req.TextCalls.IgnoreOpenThoughts = r.limits.MaxToolArgsBytes, r.settings.CallsInOpenThought == lathe.OpenThoughtIgnore
	if in.Sampling != nil {
		r.req.Sampling = *in.Sampling
	}
	r.followUp.format = l.responseFormat(r.req.Sampling.ResponseFormat)
	return r
}

// overrides returns the members of both lists. The last one of a name takes precedence: that of the loop.
func overrides(ofRun, ofLoop []lathe.Member) []lathe.Member {
	if len(ofRun) == 0 {
		return ofLoop
	}
	return slices.Concat(ofRun, ofLoop)
}

// run executes the run until it ends or is suspended. It returns the input of the loop that continues it, or nil.
func (r *run) run(parent context.Context) *Input {
	r.started = r.loop.opts.Now().Add(-r.in.extra.Elapsed)
	r.info.Depth = max(r.info.Depth, depthOf(parent))
	if call := lathe.CallMetaFrom(parent); call != nil && r.info.ParentRunID == "" {
		r.info.ParentRunID, r.info.ParentCallID = call.RunID, call.CallID
	}
	var ctx context.Context
	if r.limits.RunTimeout < 0 {
		ctx, r.cancel = context.WithCancel(parent)
	} else {
		r.timeout.after = r.limits.RunTimeout
		ctx, r.cancel = context.WithTimeoutCause(parent, max(r.limits.RunTimeout-r.in.extra.Elapsed, 0), &r.timeout)
	}
	defer r.cancel()
	r.done = ctx.Done()
	r.begin()
	if r.in.Resume != nil && r.reason == "" {
		r.resume(ctx)
	}
	for r.reason == "" && !r.suspended {
		r.step(ctx)
	}
	if !r.suspended {
		r.finish()
	}
	return r.from.next
}

// begin starts the work of the runner and emits the first event of the run.
func (r *run) begin() {
	r.runOpts = tool.RunOptions{
		Settings: &r.settings, Limits: &r.limits, ClientTools: r.in.ClientTools, History: r.in.history(), Suspend: r.in.extra.Suspend,
		Allow: r.in.Allow, AllowAbsent: r.in.extra.AllowAbsent || r.in.Resume != nil,
		HandOver: r.in.extra.Relay != nil, Defer: r.in.extra.Relay == nil && r.hasTools(),
	}
	switch {
	case r.in.Resume != nil:
		r.runOpts.Resumed = r.in.Resume.before()
	case r.in.extra.Continues != "":
		r.runOpts.Resumed = &tool.Resumed{Calls: takenCalls(r.in.taken())}
	}
	r.work = r.loop.runner.Begin(&r.info, &r.runOpts)
	r.hash = digest.NoTools
	if r.hasTools() {
		r.specs, r.hash = r.work.Specs(), r.work.SpecsHash()
	}
	r.result.Withheld = withheld(r.work, r.settings.ToolUseMode)
	r.opened = event.RunStarted{
		Model: r.loop.info.Model, Provider: r.loop.info.Provider, Dialect: r.loop.info.Dialect,
		ToolUseMode: r.settings.ToolUseMode, FailurePolicy: r.settings.FailurePolicy,
		Tools: r.toolsDigest(),
		Limits: event.LimitsView{
			MaxIterations: r.limits.MaxIterations, MaxToolCalls: r.limits.MaxToolCalls,
			MaxToolArgsBytes: r.limits.MaxToolArgsBytes, MaxOutputBytes: r.limits.MaxOutputBytes,
			RunTimeoutMS: max(r.limits.RunTimeout, 0).Milliseconds(),
		},
		ParentRunID: r.info.ParentRunID, ParentToolCallID: r.info.ParentCallID,
		Continues: r.in.extra.Continues, TakenOver: len(r.in.taken()), Replays: r.in.extra.Replays, Executor: r.in.extra.Executor,
		Messages: slices.Clip(r.req.Messages), Principal: r.info.Principal, Profile: r.info.Profile, Labels: r.info.Labels, Target: r.in.Target,
		Retention: r.loop.Retention(),
	}
	if s := r.in.Resume; s != nil {
		r.turn = s.Turn
		if !r.in.extra.Suspended || s.Paused != "" {
			r.emit(s.resumed())
		}
	} else {
		if r.in.Park {
			r.opened.Input, r.from.stale = r.in.startJSON()
		}
		r.emit(&r.opened)
	}
	r.refuse()
}

// withheld returns the tools that the run may use but that are not offered to the model. If the mode disables tools, these are all tools,
// with the mode as the reason.
func withheld(work *tool.Work, mode lathe.ToolUseMode) []event.WithheldTool {
	held := work.Withheld()
	if mode != lathe.ModeDisabled {
		return held
	}
	for i := range held {
		held[i].Reason, held[i].Rule = event.WithheldMode, ""
	}
	for _, spec := range work.Specs() {
		held = append(held, event.WithheldTool{Tool: spec.Name, Reason: event.WithheldMode})
	}
	slices.SortFunc(held, func(a, b event.WithheldTool) int { return strings.Compare(a.Tool, b.Tool) })
	return held
}

// maxWithheld is the maximum number of withheld tools in RunStarted.
const maxWithheld = 50

func (r *run) toolsDigest() event.ToolsDigest {
	held := r.result.Withheld
	return event.ToolsDigest{Count: len(r.specs), Hash: r.hash, Deferred: r.work.Deferred(), Withheld: slices.Clip(held[:min(len(held), maxWithheld)]), WithheldCount: len(held)}
}

// refuse ends a run whose input is not valid.
func (r *run) refuse() {
	err := r.from.stale
	if err == nil {
		err = r.in.check()
	}
	maxDepth := max(r.limits.MaxDepth, 0)
	switch {
	case err != nil:
		r.fail(lathe.ReasonInternal, lathe.CodeInvalidRequest, err)
	case r.info.Depth > maxDepth:
		r.limit = "max_depth"
		r.fail(lathe.ReasonInternal, lathe.CodeMaxDepth, fmt.Errorf("a run at depth %d, where %d is allowed", r.info.Depth, maxDepth))
	case len(r.specs) > 0 || len(r.in.Allow) > 0 && r.hasTools():
		err := r.work.Check(&r.runOpts) // New has checked the tools without a principal; the tools of this principal may differ
		if err == nil {
			return
		}
		var exceeded *tool.DefinitionsError
		if errors.As(err, &exceeded) {
			r.limit = exceeded.Limit
		}
		r.fail(lathe.ReasonInternal, lathe.CodeOf(err), errors.Unwrap(err)) // the error within the *lathe.Error, since fail wraps it in another one
	}
}

// check returns an error for labels, messages, settings or limits with which no run starts.
func (in *Input) check() error {
	err := cmp.Or(CheckLabels(in.Run.Labels), checkHistory(in.Messages))
	if err == nil && in.Settings != nil {
		err = checkSettings(in.Settings)
	}
	if err == nil && in.Limits != nil {
		err = setting.Check(in.Limits)
	}
	return err
}

// hasTools reports whether the mode of the run allows tools.
func (r *run) hasTools() bool { return r.settings.ToolUseMode != lathe.ModeDisabled }

// step executes one turn: it makes the model call and then executes its calls, or ends the run.
func (r *run) step(ctx context.Context) {
	if r.endIfDone(ctx) {
		return
	}
	if !r.followUp.unanswered() && (r.handOver() || r.in.extra.Suspend != nil && r.in.extra.Suspend(nil, nil)) {
		r.suspended = true
		return
	}
	if reason, key := r.exhausted(); reason != "" {
		r.reachLimit(ctx, reason, key)
		return
	}
	if !r.admitStep() {
		return
	}
	withTools := !r.toolsOff && r.hasTools()
	if withTools { // a source of tools may have changed them since the last turn, and calls may have loaded definitions
		r.work.Refresh()
		r.specs, r.hash = r.work.Specs(), r.work.SpecsHash()
	}
	if !r.call.ask(ctx, withTools) {
		return
	}
	switch {
	case isCut(r.call.finish.Reason):
		r.endCut(ctx, r.call.finish.Reason)
	case len(r.call.asked) == 0:
		r.answer()
	default:
		r.execute(ctx)
	}
}

// isCut reports whether a message that finished with the reason may be incomplete.
func isCut(reason lathe.FinishReason) bool {
	return reason == lathe.FinishLength || reason == lathe.FinishContentFilter
}

// endCut ends a run whose model call was truncated. Its calls may be incomplete: none is executed.
func (r *run) endCut(ctx context.Context, cut lathe.FinishReason) {
	r.result.Answer = r.call.answer
	if len(r.call.asked) > 0 {
		r.answerCalls(ctx, lathe.CodeIncompleteCall)
	}
	if cut == lathe.FinishContentFilter {
		r.fail(lathe.ReasonContentFilter, "", errors.New("the server's content filter stopped the model"))
		return
	}
	r.reason = lathe.ReasonLength
}

// answer ends the run with the text of the turn, or requests another answer if the text is blank or does not match the response format, and
// the limits of such requests allow it.
func (r *run) answer() {
	r.result.Answer = r.call.answer
	blankAfterResults := r.call.blank && (r.work.Called() || r.in.afterResults())
	if blankAfterResults && !r.followUp.blankAsked && !r.settings.NoFixEmptyFinal && r.hasTools() {
		r.followUp.askAfterBlank()
		return
	}
	violation := r.followUp.violation()
	if violation != "" && r.followUp.askInFormat(violation) {
		return
	}
	r.reason = lathe.ReasonAnswered
	if r.settings.ToolUseMode == lathe.ModeEnforced && r.enforce() {
		return
	}
	switch {
	case violation != "" && r.followUp.format.checked:
		r.fail(lathe.ReasonInvalidAnswer, "", fmt.Errorf("the answer does not match the JSON Schema of the request: %s. Raise max_answer_repairs, or make the schema easier", r.followUp.format.rules(r.call.answer)))
	case r.call.blank && (r.in.extra.Relay == nil || !r.in.extra.Relay.Opaque):
		r.fail(lathe.ReasonEmptyAnswer, "", errors.New("the model's answer is blank: Blank of the run's RunFinished event has the likely cause"))
	}
}

// afterResults reports whether the input ends with results of tools that the caller executed.
func (in *Input) afterResults() bool {
	given := in.Messages
	return in.extra.Relay == nil && len(given) > 0 && given[len(given)-1].Role == lathe.RoleTool
}

// enforce applies tool_use_mode enforced to an answered run: the run fails if it made no call. It also fails if a tool ended with a
// failure, unless failures are tolerated and one call has succeeded. enforce returns true if it made the run fail.
func (r *run) enforce() bool {
	if !r.work.Called() {
		r.fail(lathe.ReasonNoToolCalls, "", errors.New("no tool was called where a call is required"))
		return true
	}
	tolerated := r.settings.FailurePolicy == lathe.FailureTolerated && r.work.Succeeded()
	failed := r.work.Failed()
	if tolerated || len(failed) == 0 {
		return false
	}
	r.result.FailedTools = failed
	r.fail(lathe.ReasonToolError, "", fmt.Errorf("failed: %s", strings.Join(failed, ", ")))
	return true
}
