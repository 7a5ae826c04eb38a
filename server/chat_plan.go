package server

import (
	"context"
	"net/http"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gateway/pairs"
	"github.com/lathe-run/lathe/internal/gateway/places"
	"github.com/lathe-run/lathe/internal/gateway/runlog"
	"github.com/lathe-run/lathe/internal/gateway/splice"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/runinput"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/openai"
)

// planChat sets the plan and the job of a request for an answer. An existing run answers the request
//
//   - if the request answers an approval of that run (takeApprovals),
//   - if the run waits for the results of client calls in the request, and the request names its response (continueOrResume) or
//     has its calls (resumeRun),
//   - if an equal request began the run and it waits for an approval (attachEqual).
//
// Otherwise it is a new run, with the hidden turns spliced into its conversation.
func (h *planner) planChat(ctx context.Context, a *chat, options *requestOptions) *problem {
	if p := h.planInput(ctx, a, options); p != nil {
		return p
	}
	if done, p := h.takeApprovals(ctx, a); done || p != nil {
		return p
	}
	a.passOn()
	changed := returnReasoning(a)
	if done, p := h.continueOrResume(ctx, a); done || p != nil {
		return p
	}
	if bad := pairs.Check(a.req.Messages); bad != nil {
		return bad.Problem(a.protocol.Wire(), places.Of(a.protocol.Wire(), a.req.Body, a.parsed, a.req.Messages))
	}
	conv, p := h.restore(ctx, a)
	if p != nil {
		return p
	}
	if !changed && !conv.Changed {
		a.relayBody()
	}
	a.sum, a.lastKey, a.lost = conv.Sum, conv.Last, conv.Lost
	h.countLost(a.caller, conv.Lost)
	if conv.Waits != nil {
		if done, p := h.resumeRun(ctx, a, conv.Waits.RunID); done || p != nil {
			return p
		}
	}
	if p := a.converse(conv.Messages); p != nil {
		return p
	}
	if !h.attachEqual(ctx, a) {
		h.planRun(ctx, a, options)
	}
	return nil
}

// planInput checks the options, tools and limits of the request and sets the plan, still without the conversation.
func (h *planner) planInput(ctx context.Context, a *chat, options *requestOptions) *problem {
	req := a.req
	a.session = options.session
	a.showsCalls = a.protocol.showsCalls && options.show != showHidden
	a.showsApprovals = a.showsCalls && (options.show == showItems || asksByItem(req.Hosted))
	relay := lathe.Wire("")
	if a.withoutLathe && a.passesBytes() {
		relay = a.protocol.Wire()
	}
	if p := h.makePlan(ctx, a.caller, &runRequest{model: req.Model, sampling: &req.Sampling, user: req.User, tools: req.Tools, toolsParam: a.protocol.tools,
		choice: req.ToolChoice, parallel: req.ParallelToolCalls, options: options, relay: relay, accept: a.accept}, &a.plan); p != nil {
		return a.protocol.reword(p)
	}
	setAliases(req)
	a.restrictTools()
	a.acceptBetas(a.from.Header)
	if p := a.acceptVersion(a.from.Header); p != nil {
		return p
	}
	return h.restoreIDs(ctx, a)
}

// passOn sets the members of the request that the model server gets unchanged and, if the request is relayed, the relay.
func (a *chat) passOn() {
	a.in.Overrides = a.passed
	if !a.plan.relayed {
		return
	}
	runinput.Of(&a.in).Relay = &lathe.Relay{Wire: a.protocol.Wire(), Stream: a.req.Stream, Opaque: a.req.Foreign != nil || a.req.N != 1}
	a.in.Allow = []string{} // a reload may add tools to the server; none of them may join a relayed run
}

// continueOrResume puts the conversation of the response that the request continues (previous_response_id) before the
// messages of the request. If the run of that response is suspended until it gets the results in the request, the request
// resumes that run, and done is true.
func (h *planner) continueOrResume(ctx context.Context, a *chat) (done bool, p *problem) {
	waits, p := h.responses.continueResponse(ctx, a)
	if p != nil || waits == "" {
		return false, p
	}
	done, p = h.resumeRun(ctx, a, waits)
	if p == nil && !done {
		p = noResponse(http.StatusBadRequest, "previous_response_id")
	}
	return done, p
}

// relayBody passes the body of the client to the model server, without the ignored members, if the request is relayed and
// model servers accept its calls. The caller has checked that the conversation is unchanged.
func (a *exchange) relayBody() {
	if !a.plan.relayed || !sendable(&a.members) {
		return
	}
	relay := runinput.Of(&a.in).Relay
	relay.Request = a.req.Body
	if len(a.ignored) > 0 {
		relay.Request = rawjson.Without(a.req.Body, a.ignored...)
	}
}

// converse sets the conversation of the run. If the request is not relayed, converse checks that the model supports the
// content of the messages, and records the parts that are left out.
func (a *exchange) converse(messages []lathe.Message) *problem {
	a.in.Messages, a.base = messages, len(messages)
	if a.plan.relayed {
		return nil
	}
	left, p := a.plan.model.checkContent(messages, a.place)
	if p == nil {
		a.dropped = append(a.dropped, left...)
	}
	return p
}

// attachEqual attaches the request to the run of an equal request that is suspended until a person decides. It returns
// false, and changes nothing, if there is no such run or the client requires a new one.
func (h *planner) attachEqual(ctx context.Context, a *chat) bool {
	if !h.mayWait(a) {
		return false
	}
	v := h.findEqualRun(ctx, a)
	if v == nil || a.requiresNew {
		return false
	}
	after, base := v.Since(a.req.Messages)
	a.attach(ctx, v, after, base)
	return true
}

// mayWait reports whether the run of the request may be suspended until an approver decides.
func (h *planner) mayWait(a *chat) bool {
	mayAsk := h.opts.Approvals != nil && a.settings.ToolUseMode != lathe.ModeDisabled
	return mayAsk && h.opts.Index != nil && !a.plan.relayed
}

// planRun sets the job of a new run. A run that returns calls to the client ends there, and the results of the calls come
// in a further run. A run that requires an approval is suspended in the store, if there is one.
func (h *planner) planRun(ctx context.Context, a *chat, options *requestOptions) {
	in, waits := &a.in, h.mayWait(a)
	in.Park = h.opts.Index != nil
	runinput.Of(in).HandOver = true
	if waits {
		in.Run.Labels = withLabel(in.Run.Labels, labelRequest, a.digest())
	}
	if in.Park && (waits || len(a.req.Tools) > 0) {
		in.Run.Labels = withLabel(in.Run.Labels, splice.LabelConversation, a.sum)
	}
	a.labelStored()
	in.Run.RunID = h.opts.Engine.NewRunID()
	a.begin(ctx, runlog.AnswerID{Run: in.Run.RunID}, &a.settings, &a.limits)
	if a.protocol.Wire() != lathe.WireOpenAIChat && !a.plan.relayed {
		a.carriers = h.turns.NewCarriers(ctx, a.hidden(), in.Run.RunID)
	}
	a.storeRequest()
	a.job = job{loop: a.plan.model.Loop, in: in, detach: options.detach, holds: a.keepOpen}
	if waits {
		a.job.note = &waitingNote{h.turns, a.digest()}
	}
	if !options.detach && options.session == "" && !a.durable() {
		a.job.due = a.caller.due(a.req.Tools)
	}
}

// restore returns the conversation of the request as the model receives it: hidden turns are spliced in, and carriers,
// calls of this server and compaction items are replaced by their content. If the request asks for a compaction, a message
// that asks for the summary is added at the end. restore checks the size of the conversation and reserves its memory.
func (h *planner) restore(ctx context.Context, a *chat) (*splice.Spliced, *problem) {
	a.keepsText = !a.plan.relayed && a.caller.hasTool(nil, everyTool)
	conv := h.conversationOf(ctx, a)
	if conv.Failed == nil {
		h.turns.Open(ctx, a.hidden(), conv)
	}
	if conv.Failed != nil {
		return nil, conv.Failed
	}
	if a.protocol.showsCalls {
		messages, resolved := a.caller.resolveItems(conv.Messages)
		conv.Messages, conv.Changed = messages, conv.Changed || resolved
	}
	if p := h.openCompactions(ctx, a, conv); p != nil {
		return nil, p
	}
	if a.compacts() {
		conv.Messages, conv.Waits = append(slices.Clip(conv.Messages), lathe.User(askSummary)), nil
	}
	return conv, h.checkSize(ctx, a.caller, conv.Messages)
}

// setAliases sets as aliases of renamed tools the names under which the client declared them: prompts and histories contain
// those names, and models call the tools by them.
func setAliases(req *wire.ClientRequest) {
	for _, t := range req.Tools {
		own, renamed := req.Names[t.Name]
		if !renamed || own.Name == t.Name {
			continue
		}
		t.Aliases = []string{own.Name}
		if own.Namespace != "" {
			t.Aliases = append(t.Aliases, own.Namespace+own.Name)
		}
	}
}

// accept checks what depends on the model and on whether the run is relayed: compaction, hosted tools, objects of the
// vendor's account, and the members that Lathe does not read. If the request is not relayed, accept refuses what Lathe cannot
// serve itself.
func (a *exchange) accept(ctx context.Context) *problem {
	m, relayed := a.plan.model, a.plan.relayed
	if p := a.acceptCompaction(ctx); p != nil {
		return p
	}
	if p := a.divide(m, relayed); p != nil {
		return p
	}
	objects := objectsIn(a.req.Body)
	if !relayed {
		objects = withoutReferences(objects)
	}
	if p := a.handler.objects.check(ctx, a.caller, objects); p != nil {
		return p
	}
	if p := a.acceptHosted(); p != nil {
		return p
	}
	if relayed {
		return nil
	}
	if m.Loop.Wire() != a.protocol.Wire() && a.req.Updated != nil {
		a.req.Sampling, a.lastTurnOnly = *a.req.Updated, wantsJSON(a.req.Updated.ResponseFormat)
	}
	if p := a.acceptTools(); p != nil {
		return p
	}
	const unless = " A request is passed on to the model server as it is, with this, if its key may use no tool of this gateway and it has no member lathe."
	if a.req.Foreign != nil {
		p := misread(a.req.Foreign)
		p.Message += unless
		return p
	}
	if a.req.N != 1 {
		return badRequest("n", "This gateway gives one choice: n must be 1."+unless)
	}
	return nil
}

// sendable reports whether model servers accept the calls of the conversation unchanged, under the ids that the client has.
// Calls in forms that the server does not read count as sendable.
func sendable(ms *members) bool {
	req := ms.req
	switch {
	case ms.callTurns != nil:
		return false
	case req.Foreign != nil:
		return true
	}
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			if call, ok := p.(lathe.ToolCall); ok && !openai.Sendable(call.Arguments) {
				return false
			}
		}
	}
	return true
}
