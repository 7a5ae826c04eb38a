package uistream

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/visible"
	"github.com/lathe-run/lathe/internal/wire"
)

// Append appends the frames for ev. The last frame of a stored event has the id of the event, so that a client that reports an id has
// received the complete event. Events that were appended before are ignored.
func (e *Encoder) Append(dst []byte, ev *event.Event) []byte {
	if e.ended {
		return dst
	}
	if ev.ID != 0 && ev.ID <= e.lastID { // a stored log and a live stream overlap
		return dst
	}
	e.lastID = max(e.lastID, ev.ID)
	e.frame = -1
	dst = e.event(dst, ev)
	if e.sse && ev.ID > 0 && e.frame >= 0 {
		dst = slices.Insert(dst, e.frame, []byte("id: "+strconv.FormatInt(ev.ID, 10)+"\n")...)
	}
	return dst
}

func (e *Encoder) event(dst wire.JSON, ev *event.Event) wire.JSON {
	dst = e.begin(dst, ev)
	switch d := ev.Data.(type) {
	case *event.RunStarted:
		dst = e.takenOver(dst, d)
	case *event.ToolCallParseError, *event.ToolsLoaded, *event.ToolCallProgress, *event.ToolCallExecuted:
		// Chat pages do not show which definitions the model has. An unreadable call is shown when it is planned.
		dst = appendReport(dst, e, ev.Data)
	case *event.RunResumed:
		e.paused = nil
	case *event.ModelCallStarted:
		dst = e.attempt(dst, ev.Turn)
	case *event.TextDelta:
		dst = e.delta(dst, ev, textBlock, d.Text)
	case *event.CommentaryDelta:
		dst = e.delta(dst, ev, commentaryBlock, d.Text)
	case *event.ReasoningDelta:
		dst = e.delta(dst, ev, reasoningBlock, d.Text)
	case *event.ToolCallDelta:
		if e.contiguous(ev) && d.ToolCallID != "" && d.Tool != "unknown" && e.isLive(d.ToolCallID) { // other calls are shown once proposed
			var c *call
			c, dst = e.open(dst, d.ToolCallID, d.Tool)
			dst = e.args(dst, c, d.Text)
		}
	case *event.ModelCallFinished:
		dst = e.attempted(dst, d)
	case *event.ToolCallProposed:
		dst = e.proposed(dst, d)
	case *event.ToolCallPlanned:
		if c := e.find(d.ToolCallID); c == nil { // the call was unreadable
			c, dst = e.open(dst, d.ToolCallID, d.Tool)
			dst = e.ready(dst, c, "")
		}
	case *event.ApprovalRequested:
		dst = e.asked(dst, d)
	case *event.ApprovalResolved:
		if c := e.find(d.ToolCallID); c != nil && d.Decision != "denied" {
			c.approval = ""
		}
	case *event.ToolCallResult:
		dst = e.result(dst, d)
	case *event.RunPaused:
		e.paused = d
	case *event.RunFinished:
		e.over = d
		dst = e.AppendEnd(dst)
	}
	return dst
}

func (e *Encoder) begin(dst wire.JSON, ev *event.Event) wire.JSON {
	if e.begun {
		return dst
	}
	e.begun = true
	h := &e.head
	*h = head{messageID: e.opts.MessageID, threadID: e.opts.ThreadID, runID: ev.RunID, agRunID: e.opts.RunID, requestID: ev.RequestID}
	if h.messageID == "" {
		h.messageID = "msg_" + strings.TrimPrefix(h.runID, "run_")
	}
	for _, fallback := range []string{ev.SessionID, ev.RunID, h.messageID} {
		if h.threadID == "" {
			h.threadID = fallback
		}
	}
	for _, fallback := range []string{ev.RunID, h.messageID} {
		if h.agRunID == "" {
			h.agRunID = fallback
		}
	}
	if d, ok := ev.Data.(*event.RunStarted); ok {
		h.model = d.Model
	}
	return e.w.begin(dst, h)
}

// takenOver writes the messages that the run has taken over from the run that it continues, as one step before its own steps.
func (e *Encoder) takenOver(dst wire.JSON, d *event.RunStarted) wire.JSON {
	taken := d.Messages[len(d.Messages)-min(max(d.TakenOver, 0), len(d.Messages)):]
	if len(taken) == 0 {
		return dst
	}
	dst = e.attempt(dst, 0)
	e.step.finish = lathe.FinishToolCalls
	for i := range taken {
		m := &taken[i]
		if m.Role == lathe.RoleAssistant {
			e.streak = streak{next: 1}
			dst = e.closeBlock(e.rest(dst, m, true))
			for _, c := range m.Calls() {
				dst = e.proposed(dst, &event.ToolCallProposed{ToolCallID: c.ID, ToolName: c.Name, RawName: c.Name, RawArgs: c.Arguments})
			}
			continue
		}
		for _, p := range m.Parts {
			if r, ok := p.(lathe.ToolResult); ok {
				status := "ok"
				if r.IsError {
					status = "error"
				}
				dst = e.result(dst, &event.ToolCallResult{ToolCallID: r.CallID, Tool: r.Name, Status: status, ErrorType: r.Code, Result: r.Content, Blobs: r.Blobs})
			}
		}
	}
	return dst
}

// attempt begins the step of a turn, or another attempt within it.
func (e *Encoder) attempt(dst wire.JSON, turn int) wire.JSON {
	dst = e.closeBlock(dst)
	dst = e.drop(dst, func(c *call) bool { return !c.ready })
	e.streak, e.live = streak{next: 1}, ""
	if e.inStep && turn == e.turn {
		return dst
	}
	dst = e.closeStep(dst)
	e.turn, e.blocks, e.inStep, e.step = turn, 0, true, step{finish: lathe.FinishUnknown}
	return e.w.stepStart(dst, turn)
}

func (e *Encoder) closeStep(dst wire.JSON) wire.JSON {
	if !e.inStep {
		return dst
	}
	e.inStep = false
	return e.w.stepEnd(dst, e.turn, &e.step)
}

// contiguous reports whether the stream has all deltas of the attempt before ev.
func (e *Encoder) contiguous(ev *event.Event) bool {
	s := &e.streak
	if !e.inStep || ev.N != 0 && ev.N != s.next {
		s.holed = true
	}
	s.next++
	s.any = s.any || !s.holed
	return !s.holed
}

func (e *Encoder) delta(dst wire.JSON, ev *event.Event, k kind, text string) wire.JSON {
	if !e.contiguous(ev) {
		return dst
	}
	e.streak.bytes[k] += len(text)
	return e.text(dst, k, text)
}

func (e *Encoder) text(dst wire.JSON, k kind, text string) wire.JSON {
	if text == "" || k == reasoningBlock && e.opts.HideReasoning {
		return dst
	}
	if e.block.kind != k {
		dst = e.closeBlock(dst)
		e.blocks++
		e.block = block{kind: k, id: "t" + strconv.Itoa(e.turn) + "-" + strconv.Itoa(e.blocks)}
		dst = e.w.blockStart(dst, e.block)
	}
	return e.w.blockDelta(dst, e.block, text)
}

func (e *Encoder) closeBlock(dst wire.JSON) wire.JSON {
	if e.block.kind == noBlock {
		return dst
	}
	b := e.block
	e.block = block{}
	return e.w.blockEnd(dst, b)
}

// attempted ends the open blocks of an attempt, and writes what no delta contained of its message.
func (e *Encoder) attempted(dst wire.JSON, d *event.ModelCallFinished) wire.JSON {
	e.step.usage.Add(d.Usage)
	if d.Status != "success" {
		dst = e.closeBlock(dst)
		return e.drop(dst, func(c *call) bool { return !c.ready })
	}
	e.step.finish = d.FinishReason
	if d.Message != nil && e.inStep {
		dst = e.rest(dst, d.Message, !e.streak.any || e.streak.holed)
	}
	return e.closeBlock(dst)
}

func (e *Encoder) rest(dst wire.JSON, m *lathe.Message, missing bool) wire.JSON {
	sent := e.streak.bytes
	for _, p := range visible.Parts(m) {
		k, text := noBlock, ""
		switch p := p.(type) {
		case lathe.Text:
			k, text = textBlock, p.Text
			if p.Commentary {
				k = commentaryBlock
			}
		case lathe.Refusal:
			k, text = textBlock, p.Text
		case lathe.Reasoning:
			k, text = reasoningBlock, p.Text
		case lathe.Blob:
			if url := blobURL(&p); url != "" {
				dst = e.closeBlock(dst)
				dst = e.w.file(dst, mediaType(&p), url)
			}
		case lathe.ToolCall, lathe.ToolResult, lathe.Opaque: // calls have their own events
		}
		if k == noBlock || !missing {
			continue
		}
		n := min(sent[k], len(text))
		sent[k] -= n
		dst = e.text(dst, k, text[n:])
	}
	return dst
}

func (e *Encoder) find(id string) *call {
	for i := len(e.calls) - 1; i >= 0; i-- {
		if e.calls[i].id == id {
			return e.calls[i]
		}
	}
	return nil
}

// open returns the call with an id. If none exists, or it has a result, open begins a new call.
func (e *Encoder) open(dst []byte, id, name string) (*call, []byte) {
	c := e.find(id)
	if c != nil && !c.done {
		return c, e.tell(dst, c)
	}
	c = &call{id: id, shown: e.unused(id), name: name}
	e.calls = append(e.calls, c)
	return c, e.tell(dst, c)
}

// unused returns the id, or one derived from it if the stream has already shown another call with the id.
func (e *Encoder) unused(id string) string {
	shown := id
	for n := 2; slices.ContainsFunc(e.calls, func(c *call) bool { return c.shown == shown }); n++ {
		shown = id + "__" + strconv.Itoa(n)
	}
	return shown
}

func (e *Encoder) tell(dst wire.JSON, c *call) wire.JSON {
	if c.begun {
		return dst
	}
	c.begun = true
	dst = e.closeBlock(dst)
	dst = e.w.callStart(dst, c)
	if c.carried {
		dst = e.ready(dst, c, c.args)
	}
	return dst
}

func (e *Encoder) args(dst wire.JSON, c *call, text string) wire.JSON {
	if text == "" || c.ready {
		return dst
	}
	c.sent += len(text)
	if e.opts.MaxArgs > 0 && c.sent > e.opts.MaxArgs {
		return dst
	}
	return e.w.callArgs(dst, c, text)
}

// isLive reports whether the call is streamed while the model writes it. If calls must be in order, only the first one is.
func (e *Encoder) isLive(id string) bool {
	if e.live == "" {
		e.live = id
	}
	return !e.inOrder || e.live == id
}

// waits reports whether a call waits for an approval.
func (e *Encoder) waits() bool {
	return slices.ContainsFunc(e.calls, func(c *call) bool { return c.approval != "" && !c.done })
}

// ready writes the rest of the arguments and their end.
func (e *Encoder) ready(dst wire.JSON, c *call, args string) wire.JSON {
	if c.ready {
		return dst
	}
	if c.sent < len(args) {
		dst = e.args(dst, c, args[c.sent:])
	}
	c.ready, c.args = true, clip(args, e.opts.MaxArgs)
	return e.w.callReady(dst, c)
}

// broken ends the arguments of a call that fails before they are complete. A page must not execute such a call.
func (e *Encoder) broken(dst wire.JSON, c *call) wire.JSON {
	if c.ready {
		return dst
	}
	c.ready = true
	return e.w.callBroken(dst, c)
}

func (e *Encoder) proposed(dst wire.JSON, d *event.ToolCallProposed) wire.JSON {
	name := shownName(d.ToolName, d.RawName)
	if e.inOrder && !d.Client && e.waits() && e.find(d.ToolCallID) == nil {
		e.calls = append(e.calls, &call{id: d.ToolCallID, shown: e.unused(d.ToolCallID), name: name, carried: true, args: clip(d.RawArgs, e.opts.MaxArgs)})
		return dst
	}
	c, dst := e.open(dst, d.ToolCallID, name)
	c.client = d.Client
	return e.ready(dst, c, d.RawArgs)
}

// appendReport writes what an event says about a call without a result as transient data parts, which only the UI message stream has.
func appendReport(dst wire.JSON, e *Encoder, data event.Data) wire.JSON {
	w, ok := e.w.(*uiWriter)
	if !ok || w.strict {
		return dst
	}
	of := func(id string) *call {
		if c := e.find(id); c != nil && c.ready && !c.done {
			return c
		}
		return nil
	}
	switch d := data.(type) {
	case *event.ToolCallProgress:
		if c := of(d.ToolCallID); c != nil {
			dst = w.progress(dst, c, d)
		}
	case *event.ToolCallExecuted:
		if c := of(d.ToolCallID); c != nil {
			dst = w.executed(dst, c, d)
		}
	case *event.ToolCallResult:
		for i := range d.Blobs {
			if c, url := of(d.ToolCallID), blobURL(&d.Blobs[i]); c != nil && url != "" {
				dst = w.resultFile(dst, c, mediaType(&d.Blobs[i]), url)
			}
		}
	default: // the other events say nothing about a call in progress
	}
	return dst
}

func (e *Encoder) asked(dst wire.JSON, d *event.ApprovalRequested) wire.JSON {
	c, dst := e.open(dst, d.ToolCallID, d.Tool)
	dst = e.ready(dst, c, string(d.Arguments))
	c.approval, c.expires = d.ArgsDigest, d.ExpiresAt.UTC().Format(time.RFC3339)
	return e.w.approval(dst, c)
}

func (e *Encoder) result(dst wire.JSON, d *event.ToolCallResult) wire.JSON {
	c, dst := e.open(dst, d.ToolCallID, d.Tool)
	if d.Status == "ok" {
		dst = e.ready(dst, c, "")
	} else {
		dst = e.broken(dst, c)
	}
	dst = appendReport(dst, e, d)
	c.done = true
	return e.w.result(dst, c, &outcome{content: clip(d.Result, e.opts.MaxResult), failed: d.Status != "ok", code: d.ErrorType, message: d.Message,
		denied: d.ErrorType == lathe.CodeApprovalDenied && c.approval != ""})
}

// drop ends the calls selected by which with an error, because they will not get a result.
func (e *Encoder) drop(dst wire.JSON, which func(*call) bool) wire.JSON {
	for _, c := range e.calls {
		if c.done || !c.begun || !which(c) {
			continue
		}
		dst = e.broken(dst, c)
		c.done = true
		dst = e.w.result(dst, c, &outcome{content: interruptedContent, failed: true, code: lathe.CodeInterrupted, message: interruptedText})
	}
	return dst
}

// AppendEnd ends the stream after the last event: the run has ended, waits for an approval or a result, or was interrupted. Further calls
// append nothing.
func (e *Encoder) AppendEnd(dst []byte) []byte {
	if e.ended {
		return dst
	}
	if !e.begun {
		dst = e.begin(dst, &event.Event{})
	}
	end := e.ending()
	dst = e.closeBlock(dst)
	waits := end.finish == finishToolCalls
	dst = e.drop(dst, func(c *call) bool { return !waits || !c.ready })
	for _, c := range e.calls {
		if waits && (c.begun || c.carried) && !c.done {
			end.pending = append(end.pending, c)
		}
	}
	dst = e.closeStep(dst)
	e.ended = true
	return e.w.end(dst, &end)
}
