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
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/loop"
)

// A content encodes what a run produces for its client: text, reasoning, and calls of server tools and of client tools.
type content struct {
	exchange
	head     wire.AnswerHead // id, model and time of the answer
	writer   wire.Writer     // nil if the response is not streamed, until it is written
	calls    *handover
	carriers *splice.Carriers // nil: the wire has no carriers, or its clients do not send them back
	feed     callFeed         // the calls of server tools that a streamed response shows
	progress                  // what was written so far
	before   replayed         // the messages of the run that this one continues, which are written first
	unshown  []string         // paths of the parts of the answer that the client's wire cannot express
}

// A chat writes the answer to one request, on any wire. It is the [stream.Encoder] of a streamed answer.
type chat struct {
	content
	relayedAnswer
	enc     stream.Encoder // the chat itself if the answer is streamed, else a wholeAnswer around it
	last    int64          // the id of the last event that was passed to AppendEvent
	follows bool           // another request or process executes the run: missed events are read from its log
	turnEnd *lathe.Message // the message of the last turn, for an answer that is not streamed
	broken  bool           // the stream has ended, since the run continues without a call whose beginning was written
}

// relayedAnswer is the state of an answer that consists of bytes of the model server. A stream begins with such bytes, and
// reencodes is set at the first of them that this server must not pass on.
type relayedAnswer struct {
	bytesSent bool   // bytes of the model server were passed on, or encoded again
	reencodes bool   // this server encodes the rest of the stream
	finished  bool   // the bytes contained the finish reason
	whole     []byte // the body of the model server's response, for an answer that is not streamed
}

// progress is the state of an answer that is written piece by piece. A text is separated from the one before it by nothing if
// another element is between them (splitText), by a blank line if it is of another turn or kind, and by a newline if an element
// is between them that the client does not see (gap). Methods that append elements set splitText or gap; text resets both.
type progress struct {
	wroteText bool            // the answer contains text
	kind      lathe.DeltaKind // the kind of the last text
	refused   bool            // the answer contains a refusal
	splitText bool            // another element followed the text, so the next text is a separate element
	gap       bool            // an element that the client does not see at this place followed the text
	space     bool            // the text so far ends with white space
	turn      int             // the turn of the last text
	signature *lathe.Delta    // opaque data of the turn's reasoning; it is written when the next element is known
	followed  followed        // what was received of the current turn, if the answer follows a run of another request
}

// between separates the texts of two turns, which the client receives as one message.
const between = "\n\n"

// begin sets the head of an answer, its writer and the encoder of its calls. id is the run and, for a later answer of the
// same run, the event after which the answer begins.
func (a *content) begin(ctx context.Context, id runlog.AnswerID, settings *lathe.Settings, limits *lathe.Limits) {
	a.head.ID = id.String()
	if a.req.Stream {
		a.writer = a.protocol.NewWriter(&a.head)
	}
	a.handOver(settings, limits)
	a.calls.ids = newCallIDs(ctx, &a.exchange, id.Run)
}

// AppendEvent implements [stream.Encoder].
func (a *chat) AppendEvent(dst []byte, e *event.Event) []byte {
	a.unlock()
	a.last = max(a.last, e.ID)
	isWritten := !a.bytesSent && !a.broken // else AppendRaw has written the event, or the stream has ended
	if a.follows && isWritten {            // before the carriers get the turn, because the carrier of the turns before may be written here
		dst = a.appendRest(dst, e)
		isWritten = a.followed.note(e.Data, a.protocol.ordered && getsData(&a.content))
	}
	a.carriers.Note(e)
	if isWritten {
		dst = a.appendShown(dst, e)
	}
	return dst
}

// appendShown appends what the client sees of an event.
func (a *chat) appendShown(dst []byte, e *event.Event) []byte {
	switch d := e.Data.(type) {
	case *event.ModelCallStarted:
		a.signature = nil
		if a.calls.begun == nil {
			a.calls.mixed = false
			return dst
		}
		a.broken = true // the beginning of a call was sent; a run that returns this call to the client makes no further model call
		return a.writer.AppendError(dst, a.caller.apiError(callWithdrawn()))
	case *event.TextDelta, *event.CommentaryDelta, *event.ReasoningDelta:
		delta, _ := deltaOf(d)
		return a.delta(dst, e.Turn, &delta)
	case *event.ToolCallDelta:
		return a.appendPiece(dst, e.Turn, d)
	case *event.ModelCallFinished:
		if d.Message != nil && a.showsCalls {
			a.feed.ask(d.Message)
		}
		return dst
	case *event.ToolCallPlanned:
		a.calls.planned++
		if a.showsCalls && !a.calls.names[d.Tool] {
			a.feed.order = append(a.feed.order, d.ToolCallID)
		}
		return dst
	case *event.ToolCallResult:
		return a.appendResult(dst, d)
	default: // the client does not see other events
		return dst
	}
}

// live appends text while the model writes it. If a.lastTurnOnly, the client gets the text of the last turn only, which is known
// at the end, so live appends nothing. Text of another kind begins a new paragraph.
func (a *content) live(dst []byte, turn int, kind lathe.DeltaKind, text string) []byte {
	if a.lastTurnOnly || text == "" {
		return dst
	}
	isJoined := a.wroteText && a.turn == turn && !a.splitText && !a.gap
	if isJoined && a.kind != kind {
		dst = a.writer.AppendDelta(a.lead(dst), lathe.Delta{Kind: lathe.DeltaText, Text: between})
	}
	a.kind = kind
	return a.text(dst, turn, text)
}

// delta appends a delta of a turn. Pieces of calls are appended by appendPiece.
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
		isShown := d.Name == string(a.protocol.Wire()) // the client's wire can express the part
		a.splitText = a.splitText || isShown
		a.gap = a.gap || !isShown
		if o, ok := d.Part.(lathe.Opaque); ok && !isShown {
			a.unshown = append(a.unshown, "answer."+rawjson.TextAt(o.JSON, "type"))
		}
	case lathe.DeltaTextEnd:
		if a.lastTurnOnly {
			return dst
		}
	case lathe.DeltaReasoningData:
		if getsData(a) {
			dst = a.lead(dst)
			a.signature = new(*d)
		}
		return dst
	default: // the client does not see other deltas
		return dst
	}
	return a.writer.AppendDelta(dst, *d)
}

// getsData reports whether the client gets the opaque data of the model's reasoning: only if client and model use the same
// wire. A stored response whose model is no longer configured is returned without that data.
func getsData(a *content) bool {
	return a.job.loop != nil && a.job.loop.Wire() == a.protocol.Wire()
}

// appendPiece appends a piece of a call. The opaque data of the reasoning before the call is dropped: a carrier contains
// the whole turn.
func (a *content) appendPiece(dst []byte, turn int, d *event.ToolCallDelta) []byte {
	a.signature = nil
	if len(a.calls.names) > 0 {
		dst = a.lead(dst)
	}
	dst = a.calls.appendPiece(dst, turn, d)
	isElement := a.calls.begun != nil && a.protocol.ordered // the piece of the call is itself an element between the texts
	a.gap = a.wroteText && a.turn == turn && !isElement
	return dst
}

// start appends the messages of the run that this run continues, once, before anything else.
func (a *content) start(dst []byte) []byte {
	before := a.before
	a.before = replayed{}
	return a.replay(dst, &before, nil)
}

// lead appends the elements that precede a delta: the messages of the continued run, the carrier of the turns before, and
// the opaque data of reasoning.
func (a *content) lead(dst []byte) []byte {
	dst = a.start(dst)
	if a.carriers != nil {
		if text := a.carriers.Before(); text != "" {
			a.splitText = true
			dst = a.writer.AppendCarrier(dst, text)
		}
	}
	if d := a.signature; d != nil {
		a.signature = nil
		a.splitText = a.splitText || a.protocol.ordered
		dst = a.writer.AppendDelta(dst, *d)
	}
	return dst
}

// text appends text of a turn. It separates the texts of two turns by a blank line, and text after an unseen element by a
// newline.
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

func isSpace(c byte) bool { return strings.IndexByte(" \n\t\r", c) >= 0 }

func (a *chat) lastEvent() int64 { return a.last }

// AppendKeepAlive implements [stream.Encoder]. The bytes that it appends are ignored by clients.
func (a *chat) AppendKeepAlive(dst []byte) []byte { return a.writer.AppendKeepAlive(dst) }

// AppendEnd implements [stream.Encoder].
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
	dst = a.appendRemaining(dst, res)
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

// appendRemaining appends the content that was not written during the run: the text of an answer that is not shown before its end,
// calls of server tools whose turn has not come, requests for approvals, and the waiting sentence.
func (a *chat) appendRemaining(dst []byte, res *event.Result) []byte {
	if a.lastTurnOnly && !a.bytesSent {
		dst = a.appendAlone(dst, len(res.Trace), a.added(res))
	}
	dst = a.start(dst)
	for len(a.feed.order) > 0 { // the calls whose turn has not come, because one before them has no result
		dst = a.appendNext(dst)
	}
	dst = a.lead(dst)
	if !a.wroteText && !a.refused && res.Answer != "" { // the model returned its answer without streaming it
		dst = a.text(dst, len(res.Trace), res.Answer)
	}
	for _, ask := range a.approvalsOf(res) {
		a.splitText = true
		dst = a.writer.AppendApproval(dst, ask)
	}
	if wait := a.waitingFor(res); wait != "" {
		dst = a.text(dst, len(res.Trace)+1, wait)
	}
	return dst
}

// appendHanded appends the calls that the client is to execute, and the carrier of their turn. The carrier precedes the
// calls, unless the beginning of a call was already written: its content is known only at the end of the turn.
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

func (a *exchange) added(res *event.Result) []lathe.Message {
	return afterMessages(res.History, a.base)
}

// finish returns the end of the answer: the finish reason, the usage, and the calls that the client is to execute. It also
// stores what a later request needs to continue the conversation.
func (a *chat) finish(res *event.Result) *lathe.Finish {
	f := &lathe.Finish{Usage: res.Usage, Reason: finishReason(res)}
	if res.Cost > 0 {
		f.ProviderCost = &res.Cost
	}
	if n := len(res.Trace); n > 1 && !a.handler.opts.SumUsage { // clients use the usage as the size of their conversation, so it is that of the last turn
		f.Usage, f.ProviderCost = res.Trace[n-1].Usage, nil
	}
	f.Message.Role = lathe.RoleAssistant
	calls := a.handedOver(res)
	for _, call := range calls {
		f.Reason = lathe.FinishToolCalls
		f.Message.Parts = append(f.Message.Parts, call)
	}
	if !a.stored {
		a.keepTurns(res, calls)
	}
	return f
}

// finishReason returns the finish reason of a run that returns no calls to the client.
func finishReason(res *event.Result) lathe.FinishReason {
	switch {
	case res.Reason == lathe.ReasonContentFilter:
		return lathe.FinishContentFilter
	case res.Reason == lathe.ReasonLength, res.Reason.Status() == "limited" && res.Answer == "":
		return lathe.FinishLength
	}
	return lathe.FinishStop
}

// keepTurns stores the hidden turns of the answer, for the request that sends the results of calls or contains the text.
func (a *chat) keepTurns(res *event.Result, calls []lathe.ToolCall) {
	turns := a.handler.turns
	if res.Reason != lathe.ReasonAwaitingApproval && a.equal != (requestSum{}) {
		turns.Forget(a.equal.key()) // a later equal request begins a new run
	}
	own := a.added(res)
	if len(calls) == 0 {
		a.keepText(res, own)
		return
	}
	waits := ""
	if res.Reason != lathe.ReasonClientToolCalls {
		waits = a.caller.runID
	}
	own = own[leadingResults(own):] // without the results of calls that the previous answer returned to the client
	turns.KeepCalls(a.calls.ids, lastTurn(res), a.sum, a.lastKey, calls, waits, own, a.job.loop.Retention())
}

// handedOver returns the calls that the client is to execute after the run ended with res, with the names and ids that the
// client has for them.
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

// Withdrawn implements [stream.Withdrawer]. It returns a problem if the stream contains the beginning of a call that the
// run does not make, or if a compaction produced no usable summary.
func (a *chat) Withdrawn(res *event.Result) *problem {
	if a.broken || res != nil && !a.bytesSent && !a.calls.completes(a.handedOver(res)) {
		return callWithdrawn()
	}
	if res != nil && a.compacts() {
		return checkSummary(res)
	}
	return nil
}

// hands reports whether the client, not this server, executes the call.
func (a *chat) hands(call lathe.ToolCall) bool {
	return a.calls.names[a.calls.toolName(call.Name)]
}

// theirs returns the subset of calls that the client is to execute: all of them if the run is relayed.
func (a *chat) theirs(calls []lathe.ToolCall) []lathe.ToolCall {
	if a.job.relay() != nil {
		return calls
	}
	return slices.DeleteFunc(slices.Clone(calls), func(call lathe.ToolCall) bool { return !a.hands(call) })
}

// A report is the object `lathe` of an answer: ids, reason, turns, calls and usage of the run. It contains no arguments and
// no outputs of calls.
type report struct {
	RunID     string       `json:"run_id"`
	RequestID string       `json:"request_id"`
	Session   string       `json:"session,omitempty"`
	Continues string       `json:"continues,omitempty"` // the id of the run whose calls and results this run took over
	Reason    lathe.Reason `json:"reason"`
	ToolCalls []callReport `json:"tool_calls"` // calls of tools of this server, executed or refused
	Turns     []turnReport `json:"turns"`
	LostJoins int          `json:"lost_joins,omitempty"` // the number of turns whose hidden calls and results could not be restored, so the model does not get them
	Usage     lathe.Usage  `json:"usage"`                // the usage of all model calls together
	Cost      float64      `json:"cost,omitempty"`       // in US dollars; only model calls with a known cost count
	Dropped   []string     `json:"dropped,omitempty"`    // members of the request that the model's wire cannot express, and parts of the answer that the client's cannot
	Pending   []string     `json:"pending,omitempty"`    // the ids of the calls that are open; calls of the client have the ids that the client knows
	Ignored   []string     `json:"ignored,omitempty"`    // names of members of the request that had no effect
	Passed    []string     `json:"passed,omitempty"`     // members of the request that were sent to the model server although Lathe does not read them
}

// A callReport is a call of a tool of this server in a report.
type callReport struct {
	Turn int `json:"turn"`
	event.CallTrace
}

// A turnReport is a model call in a report.
type turnReport struct {
	Turn   int                `json:"turn"`
	Model  string             `json:"model"`
	Finish lathe.FinishReason `json:"finish_reason"`
	Usage  lathe.Usage        `json:"usage"`
}

func (r *report) drop(path string) {
	if !slices.Contains(r.Dropped, path) && len(r.Dropped) < wire.MaxDropped {
		r.Dropped = append(r.Dropped, path)
	}
}

// extra returns the members of the answer that the wire does not define: the object `lathe` with the report.
func (a *chat) extra(res *event.Result) []lathe.Member {
	r := report{RunID: a.caller.runID, RequestID: a.caller.requestID, Session: a.session, Continues: a.continues, Reason: res.Reason,
		ToolCalls: []callReport{}, Turns: []turnReport{}, LostJoins: a.lost, Usage: res.Usage, Cost: res.Cost, Dropped: slices.Clone(a.dropped), Ignored: a.ignored, Passed: a.passedNames()}
	client := map[string]bool{}
	for _, t := range a.req.Tools {
		client[t.Name] = true
	}
	last := len(res.Trace) - 1
	for _, t := range res.Trace {
		for _, path := range t.Dropped {
			if path == loop.FormatPath && !slices.Contains(res.Trace[last].Dropped, path) {
				continue // the last turn did not drop response_format, so the answer has the format
			}
			r.drop(a.place(path))
		}
		r.Turns = append(r.Turns, turnReport{t.Turn, t.Model, t.Finish, t.Usage})
		for _, call := range t.Calls {
			if !client[call.Tool] {
				r.ToolCalls = append(r.ToolCalls, callReport{t.Turn, call})
			}
		}
	}
	for _, path := range a.unshown {
		r.drop(a.place(path))
	}
	for _, call := range res.Pending {
		if a.hands(call) {
			call = a.calls.forClient(lastTurn(res), call)
		}
		r.Pending = append(r.Pending, call.ID)
	}
	raw, err := json.Marshal(&r)
	if err != nil {
		return nil // encoding a report does not fail
	}
	return []lathe.Member{{Name: "lathe", Value: raw}}
}
