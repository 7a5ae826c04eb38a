package server

import (
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/gateway/pairs"
	"github.com/lathe-run/lathe/internal/gateway/splice"
	"github.com/lathe-run/lathe/internal/visible"
	"github.com/lathe-run/lathe/internal/wire"
)

// An answer that is not streamed is made from the same events as a stream: the messages of the run are replayed as the
// deltas from which they were assembled, and each delta is encoded as in a stream. A stream also replays messages whose
// events it did not receive: those of the run that it continues, and those of a run that has already ended.

// replayed contains messages whose events the client has not received.
type replayed struct {
	messages []lathe.Message
	history  []lathe.Message  // contains the calls of the results in messages
	calls    []lathe.ToolCall // the calls that the client is to execute
}

func (a *chat) appendWhole(dst []byte, res *event.Result) []byte {
	own := a.added(res)
	if res.Reasoning != "" && a.turnEnd != nil { // the last message has only reasoning, so the history does not have it
		own = append(slices.Clip(own), *a.turnEnd)
	}
	a.before, a.head.Whole = replayed{}, true
	a.writer = a.protocol.NewWriter(&a.head)
	a.calls.writer, a.calls.turn = a.writer, lastTurn(res)
	dst = a.writer.AppendStart(dst)
	if a.job.relay() != nil { // as [chat.AppendRaw] does for events that are not sound
		a.bytesSent, a.reencodes, a.wroteText = true, true, true
		for i := range own {
			for d := range wire.Deltas(&own[i]) {
				dst = a.writer.AppendDelta(dst, d)
			}
		}
		return a.AppendEnd(dst, res, nil)
	}
	dst = a.replay(dst, &replayed{own, res.History, a.handedOver(res)}, a.carriers)
	if a.carriers != nil {
		a.carriers.Replay(a.added(res), a.job.loop)
	}
	return a.AppendEnd(dst, res, nil)
}

// replay appends the messages in the form that they have in a stream. It numbers turns below 0, so that they differ from
// those of events. carriers are the carriers of the turns; nil if none exist.
func (a *content) replay(dst []byte, r *replayed, carriers *splice.Carriers) []byte {
	var asked map[string]lathe.ToolCall
	turn := 0
	for i := range r.messages {
		m := &r.messages[i]
		if m.Role == lathe.RoleAssistant {
			if carriers != nil {
				carriers.Replay(r.messages[:i], a.job.loop)
			}
			turn--
			a.signature = nil
			dst = a.replayTurn(dst, turn, m, r.calls)
		}
		result, ok := pairs.ResultOf(m)
		if !ok {
			continue
		}
		if a.settings.Executor == lathe.ExecutorNoop && !result.IsError { // a stream contains this result as commentary
			dst = a.live(dst, turn, lathe.DeltaCommentary, result.Content)
		}
		if a.showsCalls && a.isServerCall(result.Name, result.Code) {
			if asked == nil {
				asked = pairs.CallsOf(r.history)
			}
			dst = a.appendCall(a.start(dst), a.serverCall(asked[result.CallID], result))
		}
	}
	return dst
}

// replayTurn appends one message of the model in the form that it has in a stream. theirs are the calls that the client is
// to execute.
func (a *content) replayTurn(dst []byte, turn int, m *lathe.Message, theirs []lathe.ToolCall) []byte {
	shown := *m
	shown.Parts = visible.Parts(m)
	calls := shown.Calls()
	a.calls.mixed = false
	for d := range wire.Deltas(&shown) {
		switch d.Kind {
		case lathe.DeltaCallStart:
			call := &calls[d.Index]
			isClients := slices.ContainsFunc(theirs, func(c lathe.ToolCall) bool { return c.ID == a.calls.ids.Of(a.calls.turn, call.ID) })
			tool := a.calls.toolName(call.Name)
			if isClients || !a.calls.names[tool] {
				dst = a.appendPiece(dst, turn, &event.ToolCallDelta{Index: d.Index, ToolCallID: call.ID, Tool: tool, Text: call.Arguments})
			}
		default:
			dst = a.delta(dst, turn, &d)
		}
	}
	a.calls.planned += len(calls)
	return dst
}

// A textWriter is a wire.Writer that collects only the text of an answer.
type textWriter struct {
	wire.Writer
	text    strings.Builder
	refused bool
}

// AppendDelta implements [wire.Writer]. It appends nothing.
func (w *textWriter) AppendDelta(dst []byte, d lathe.Delta) []byte {
	switch d.Kind {
	case lathe.DeltaText, lathe.DeltaCommentary:
		w.text.WriteString(d.Text)
	case lathe.DeltaRefusal:
		w.refused = true
	default: // other deltas contain no text
	}
	return dst
}

// AppendServerCall implements [wire.Writer]. It appends nothing.
func (*textWriter) AppendServerCall(dst []byte, _ *wire.ServerCall) []byte { return dst }

// seen returns the text of the messages as a client that has received them has it in its conversation, and whether it
// contains a refusal.
func (a *content) seen(messages []lathe.Message) (text string, refused bool) {
	w := &textWriter{}
	own := *a // the same answer from its beginning, written to w
	own.writer = w
	own.calls = &handover{writer: w, names: a.calls.names}
	own.carriers, own.before, own.progress = nil, replayed{}, progress{}
	own.replay(nil, &replayed{messages: messages, history: messages}, nil)
	if a.lastTurnOnly {
		own.appendAlone(nil, 0, messages)
	}
	return w.text.String(), w.refused
}

// appendAlone appends the text of the last turn, for a client that gets only that text.
func (a *content) appendAlone(dst []byte, turn int, messages []lathe.Message) []byte {
	for i := range slices.Backward(messages) {
		if messages[i].Role != lathe.RoleAssistant {
			continue
		}
		shown := messages[i]
		shown.Parts = visible.Parts(&messages[i])
		for d := range wire.Deltas(&shown) {
			switch d.Kind {
			case lathe.DeltaText:
				dst = a.text(dst, turn, d.Text)
			case lathe.DeltaTextEnd:
				dst = a.writer.AppendDelta(dst, d)
			default: // other deltas were written before, or are not shown
			}
		}
		break
	}
	return dst
}
