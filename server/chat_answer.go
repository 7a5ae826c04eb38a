package server

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/gateway/runlog"
	"github.com/lathe-run/lathe/internal/gateway/splice"
	"github.com/lathe-run/lathe/internal/gateway/stream"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/loop"
)

// A content writes what a run says to its client: texts, reasoning, and calls of both sides.
type content struct {
	exchange
	head     wire.AnswerHead // of the answer
	writer   wire.Writer     // nil: the response is not streamed, and not written yet
	calls    *handover
	carriers *splice.Carriers // nil: the wire has none, or its clients do not send them back
	feed     callFeed         // of a streamed response
	progress                  // of the answer
	before   replayed         // messages of the run that this one continues, to write first
	unshown  []string         // parts of the answer that the client's wire cannot express
}

// A chat writes the answer to one request, on any wire. It is the encoder of a stream.
type chat struct {
	content
	enc       stream.Encoder // the chat itself, or a wholeAnswer of it
	last      int64          // ID of the last event that was written
	follows   bool           // another request or process executes the run: events that were missed are read from its log
	bytesSent bool           // bytes of the model server were written
	reencodes bool           // after relayed bytes: the rest is encoded by this server
	whole     []byte         // answer of the model server, for a response that is not streamed
	finished  bool           // the relayed bytes contained the finish reason
	broken    bool           // the stream has ended, since the run continues without a call whose beginning was written
}

// progress is what an answer has so far.
type progress struct {
	wroteText bool            // text was written
	kind      lathe.DeltaKind // of the last text
	refused   bool            // a refusal was
	splitText bool            // another element was written after the text, so that the next text is a separate one
	gap       bool            // an element that the client does not see where it stands followed the text
	space     bool            // the text ends with white space
	turn      int             // of the last text that was written
	signature *lathe.Delta    // opaque data of the reasoning of the turn that was not written yet: what follows is not known
	followed  followed        // of an answer that follows a run
}

// between stands between the texts of two turns, which the client sees as one message.
const between = "\n\n"

// begin makes the head of an answer, and what writes the calls of its run.
func (a *content) begin(ctx context.Context, id runlog.AnswerID, settings *lathe.Settings, limits *lathe.Limits) {
	a.head.ID = id.String()
	if a.req.Stream {
		a.writer = a.protocol.NewWriter(&a.head)
	}
	a.handOver(settings, limits)
	a.calls.ids = newCallIDs(ctx, &a.exchange, id.Run)
}

func (a *chat) AppendEvent(dst []byte, e *event.Event) []byte {
	a.unlock()
	a.last = max(a.last, e.ID)
	writes := !a.bytesSent && !a.broken // else appendRaw has written it, or the stream has ended
	if writes && a.follows {            // before the carriers have the turn: that of the turns before it may be written here
		dst = a.appendRest(dst, e)
		writes = a.followed.note(e.Data, a.protocol.ordered && getsData(&a.content))
	}
	a.carriers.Note(e)
	if !writes {
		return dst
	}
	switch d := e.Data.(type) {
	case *event.ModelCallStarted:
		a.signature = nil
		if a.calls.begun == nil {
			a.calls.mixed = false
			return dst
		}
		a.broken = true // a run that hands the call over makes no further model call
		return a.writer.AppendError(dst, a.caller.apiError(callWithdrawn()))
	case *event.TextDelta:
		if d.Delta != nil {
			return a.delta(dst, e.Turn, d.Delta)
		}
		return a.live(dst, e.Turn, lathe.DeltaText, d.Text)
	case *event.CommentaryDelta:
		return a.live(dst, e.Turn, lathe.DeltaCommentary, d.Text)
	case *event.ReasoningDelta:
		return a.delta(dst, e.Turn, &lathe.Delta{Kind: lathe.DeltaReasoning, Text: d.Text})
	case *event.ToolCallDelta:
		return a.appendPiece(dst, e.Turn, d)
	case *event.ModelCallFinished:
		if d.Message != nil && a.shows {
			a.feed.ask(d.Message)
		}
		return dst
	case *event.ToolCallPlanned:
		a.calls.planned++
		if a.shows && !a.calls.names[d.Tool] {
			a.feed.order = append(a.feed.order, d.ToolCallID)
		}
		return dst
	case *event.ToolCallResult:
		return a.called(dst, d)
	default: // is not shown
		return dst
	}
}

// live appends text of a kind as the model writes it, unless the client gets the text of one turn alone: which turn that is, is
// known at the end. No word continues in a text of another kind.
func (a *content) live(dst []byte, turn int, kind lathe.DeltaKind, text string) []byte {
	if a.alone || text == "" {
		return dst
	}
	if a.wroteText && a.turn == turn && a.kind != kind && !a.splitText && !a.gap {
		dst = a.writer.AppendDelta(a.lead(dst), lathe.Delta{Kind: lathe.DeltaText, Text: between})
	}
	a.kind = kind
	return a.text(dst, turn, text)
}

// delta appends a delta of a turn, except for pieces of calls.
func (a *content) delta(dst []byte, turn int, d *lathe.Delta) []byte {
	switch d.Kind {
	case lathe.DeltaText, lathe.DeltaCommentary:
		return a.live(dst, turn, d.Kind, d.Text)
	case lathe.DeltaReasoning:
		if d.Text == "" {
			return dst
		}
		dst = a.lead(dst)
		a.splitText = a.protocol.ordered
	case lathe.DeltaRefusal:
		dst = a.lead(dst)
		a.refused, a.splitText = true, a.protocol.ordered
	case lathe.DeltaPart:
		dst = a.lead(dst)
		own := d.Name == string(a.protocol.Wire())
		a.splitText, a.gap = a.splitText || own, a.gap || !own
		if o, ok := d.Part.(lathe.Opaque); ok && !own {
			a.unshown = append(a.unshown, "answer."+textMember(o.JSON, "type"))
		}
	case lathe.DeltaTextEnd:
		if a.alone {
			return dst
		}
	case lathe.DeltaReasoningData:
		if getsData(a) {
			dst = a.lead(dst)
			own := *d
			a.signature = &own
		}
		return dst
	default: // is not shown
		return dst
	}
	return a.writer.AppendDelta(dst, *d)
}

// getsData reports whether the client gets the opaque data of the model's reasoning: they have the same wire. A stored response whose model
// is not configured any more is returned without it.
func getsData(a *content) bool {
	return a.job.loop != nil && a.job.loop.Wire() == a.protocol.Wire()
}

// appendPiece appends a piece of a call of a turn. The data of the reasoning before the call is not written: a carrier has the turn.
func (a *content) appendPiece(dst []byte, turn int, d *event.ToolCallDelta) []byte {
	a.signature = nil
	if len(a.calls.names) > 0 {
		dst = a.lead(dst)
	}
	dst = a.calls.appendPiece(dst, turn, d)
	a.gap = a.wroteText && a.turn == turn && (a.calls.begun == nil || !a.protocol.ordered) // else it stands between the texts
	return dst
}

// start says what the run took over, before anything else.
func (a *content) start(dst []byte) []byte {
	before := a.before
	a.before = replayed{}
	return a.replay(dst, &before, nil)
}

// lead appends the elements before a delta: those of the continued run, the carrier of the turns before, and the data of the reasoning
// before the delta.
func (a *content) lead(dst []byte) []byte {
	dst = a.start(dst)
	if a.carriers != nil {
		if text := a.carriers.Before(); text != "" {
			a.splitText = true
			dst = a.writer.AppendCarrier(dst, text)
		}
	}
	if d := a.signature; d != nil {
		a.signature, a.splitText = nil, a.splitText || a.protocol.ordered
		dst = a.writer.AppendDelta(dst, *d)
	}
	return dst
}

func (a *content) text(dst []byte, turn int, text string) []byte {
	if text == "" {
		return dst
	}
	dst = a.lead(dst)
	switch {
	case !a.wroteText || a.splitText:
	case a.turn != turn:
		dst = a.writer.AppendDelta(dst, lathe.Delta{Kind: lathe.DeltaText, Text: between})
	case a.gap && !a.space && !isSpace(text[0]):
		dst = a.writer.AppendDelta(dst, lathe.Delta{Kind: lathe.DeltaText, Text: "\n"})
	}
	a.gap, a.space = false, isSpace(text[len(text)-1])
	a.wroteText, a.turn, a.splitText = true, turn, false
	return a.writer.AppendDelta(dst, lathe.Delta{Kind: lathe.DeltaText, Text: text})
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// lastEvent returns the id of the last event that the encoder was given.
func (a *chat) lastEvent() int64 { return a.last }

// AppendKeepAlive appends bytes that the client ignores.
func (a *chat) AppendKeepAlive(dst []byte) []byte { return a.writer.AppendKeepAlive(dst) }

func (a *chat) AppendEnd(dst []byte, res *event.Result, p *problem) []byte {
	if p != nil {
		return a.writer.AppendError(dst, a.caller.apiError(p))
	}
	if !a.stored {
		a.noteReasoning(res)
	}
	a.keepOnSocket(res)
	if a.asItCame(res) {
		return dst
	}
	if a.alone && !a.bytesSent {
		dst = a.appendAlone(dst, len(res.Trace), a.added(res))
	}
	dst = a.appendShown(a.start(dst), true)
	dst = a.lead(dst)
	if !a.wroteText && !a.refused && res.Answer != "" { // of a model that did not stream it
		dst = a.text(dst, len(res.Trace), res.Answer)
	}
	for _, ask := range a.approvalsOf(res) {
		a.splitText = true
		dst = a.writer.AppendApproval(dst, ask)
	}
	if wait := a.waitingFor(res); wait != "" {
		dst = a.text(dst, len(res.Trace)+1, wait)
	}
	f := a.finish(res)
	if a.head.Completed == 0 {
		a.head.Completed = a.handler.opts.Now().Unix()
	}
	if !a.bytesSent {
		dst = a.appendHanded(dst, res, f.Message.Calls())
		f.Message.Parts = nil
	}
	return a.writer.AppendFinish(dst, f, a.extra(res))
}

// appendHanded appends the calls that the client is to execute, and the carrier of their turn: before the calls, or after them if
// the client has got the beginning of one. What the carrier contains is not known before the end of the turn.
func (a *chat) appendHanded(dst []byte, res *event.Result, calls []lathe.ToolCall) []byte {
	carrier := ""
	if a.carriers != nil && len(calls) > 0 {
		carrier = a.carriers.End(a.added(res), a.hands, a.job.loop.Retention())
	}
	if carrier != "" && a.calls.begun == nil {
		dst = a.writer.AppendCarrier(dst, carrier)
	}
	dst = a.calls.appendAll(dst, calls)
	if carrier != "" && a.calls.begun != nil {
		dst = a.writer.AppendCarrier(dst, carrier)
	}
	return dst
}

// added returns the messages that the run added to its conversation.
func (a *exchange) added(res *event.Result) []lathe.Message {
	return afterMessages(res.History, a.base)
}

// finish returns the end of the answer: the reason, the usage, and the calls that the client is to execute.
func (a *chat) finish(res *event.Result) *lathe.Finish {
	f := &lathe.Finish{Usage: res.Usage, Reason: lathe.FinishStop}
	if !a.stored && res.Reason != lathe.ReasonAwaitingApproval && a.equal != (requestSum{}) {
		a.handler.turns.Forget(a.equal.key()) // an equal request from now on begins a run of its own
	}
	if res.Cost > 0 {
		f.ProviderCost = &res.Cost
	}
	if n := len(res.Trace); n > 1 && !a.handler.opts.SumUsage { // clients take it for the size of their conversation
		f.Usage, f.ProviderCost = res.Trace[n-1].Usage, nil
	}
	f.Message.Role = lathe.RoleAssistant
	own := a.added(res)
	if calls := a.handedOver(res); len(calls) > 0 {
		f.Reason = lathe.FinishToolCalls
		for _, call := range calls {
			f.Message.Parts = append(f.Message.Parts, call)
		}
		if a.stored {
			return f
		}
		waits := ""
		if res.Reason != lathe.ReasonClientToolCalls {
			waits = a.caller.runID
		}
		for len(own) > 0 && own[0].Role == lathe.RoleTool { // results of the calls that the answer before handed over
			own = own[1:]
		}
		a.handler.turns.KeepCalls(a.calls.ids, lastTurn(res), a.sum, a.after, calls, waits, own, a.job.loop.Retention())
		return f
	}
	if !a.stored {
		a.keepText(res, own)
	}
	switch res.Reason {
	case lathe.ReasonLength:
		f.Reason = lathe.FinishLength
	case lathe.ReasonContentFilter:
		f.Reason = lathe.FinishContentFilter
	default:
		if res.Reason.Status() == "limited" && res.Answer == "" {
			f.Reason = lathe.FinishLength
		}
	}
	return f
}

// handedOver returns the calls that the client is to execute after a run that came to res, as the client gets them.
func (a *chat) handedOver(res *event.Result) []lathe.ToolCall {
	switch res.Reason {
	case lathe.ReasonClientToolCalls, lathe.ReasonAwaitingApproval, lathe.ReasonAwaitingToolResults:
		calls := slices.Clone(a.theirs(res.Pending))
		for i := range calls {
			calls[i] = a.calls.forClient(lastTurn(res), calls[i])
		}
		return calls
	default:
		return nil
	}
}

// Withdrawn implements [stream.Withdrawer].
func (a *chat) Withdrawn(res *event.Result) *problem {
	if a.broken || res != nil && !a.bytesSent && !a.calls.completes(a.handedOver(res)) {
		return callWithdrawn()
	}
	if res != nil && a.compacts() {
		return checkSummary(res)
	}
	return nil
}

// hands reports whether the client executes the call.
func (a *chat) hands(call lathe.ToolCall) bool {
	return a.calls.names[strings.ReplaceAll(call.Name, ".", "_")] || a.calls.names[call.Name]
}

// theirs returns those of the calls that the client is to execute.
func (a *chat) theirs(calls []lathe.ToolCall) []lathe.ToolCall {
	if a.job.in != nil && a.job.in.Relay != nil {
		return calls
	}
	return slices.DeleteFunc(slices.Clone(calls), func(call lathe.ToolCall) bool { return !a.hands(call) })
}

// A report is the object `lathe` of an answer: how the run went. It holds no argument and no output.
type report struct {
	RunID     string       `json:"run_id"`
	RequestID string       `json:"request_id"`
	Session   string       `json:"session,omitempty"`
	Continues string       `json:"continues,omitempty"` // the run whose calls and results the run took over
	Reason    lathe.Reason `json:"reason"`
	ToolCalls []callReport `json:"tool_calls"` // of this server, executed or refused
	Turns     []turnReport `json:"turns"`
	LostJoins int          `json:"lost_joins,omitempty"` // turns whose calls and results of this server the model does not see
	Usage     lathe.Usage  `json:"usage"`                // of all model calls
	Cost      float64      `json:"cost,omitempty"`       // in US dollars, of all model calls whose cost is known
	Dropped   []string     `json:"dropped,omitempty"`    // members of the request that the model's wire cannot express, and parts of the answer that the client's cannot
	Pending   []string     `json:"pending,omitempty"`    // the calls that wait; those of the client under the ids that it has
	Ignored   []string     `json:"ignored,omitempty"`    // members of the request that had no effect
	Passed    []string     `json:"passed,omitempty"`     // members that were sent to the model server although Lathe does not read them
}

type callReport struct {
	Turn int `json:"turn"`
	event.CallTrace
}

type turnReport struct {
	Turn   int                `json:"turn"`
	Model  string             `json:"model"`
	Finish lathe.FinishReason `json:"finish_reason"`
	Usage  lathe.Usage        `json:"usage"`
}

func (a *chat) extra(res *event.Result) []lathe.Member {
	r := report{RunID: a.caller.runID, RequestID: a.caller.requestID, Session: a.session, Continues: a.continues, Reason: res.Reason,
		ToolCalls: []callReport{}, Turns: []turnReport{}, LostJoins: a.lost, Usage: res.Usage, Cost: res.Cost, Dropped: slices.Clone(a.dropped), Ignored: a.ignored, Passed: a.passedNames()}
	client := map[string]bool{}
	for _, t := range a.req.Tools {
		client[t.Name] = true
	}
	drop := func(paths []string) {
		for _, path := range paths {
			if path == loop.FormatPath && !slices.Contains(res.Trace[len(res.Trace)-1].Dropped, path) {
				continue // the last turn had the format
			}
			if path = a.place(path); !slices.Contains(r.Dropped, path) && len(r.Dropped) < wire.MaxDropped {
				r.Dropped = append(r.Dropped, path)
			}
		}
	}
	for i := range res.Trace {
		t := &res.Trace[i]
		drop(t.Dropped)
		r.Turns = append(r.Turns, turnReport{t.Turn, t.Model, t.Finish, t.Usage})
		for _, call := range t.Calls {
			if !client[call.Tool] {
				r.ToolCalls = append(r.ToolCalls, callReport{t.Turn, call})
			}
		}
	}
	drop(a.unshown)
	for _, call := range res.Pending {
		if a.hands(call) {
			call = a.calls.forClient(lastTurn(res), call)
		}
		r.Pending = append(r.Pending, call.ID)
	}
	raw, err := json.Marshal(&r)
	if err != nil {
		return nil // it is numbers and words
	}
	return []lathe.Member{{Name: "lathe", Value: raw}}
}
