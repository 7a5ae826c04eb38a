package uistream

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/visible"
)

// Append appends what the stream says of ev. The frames of a stored event bear its id, on the last of
// them, so that a client that names the id has seen all of it.
func (e *Encoder) Append(dst []byte, ev *lathe.Event) []byte {
	if e.ended {
		return dst
	}
	if ev.ID != 0 && ev.ID <= e.lastID { // a log and a live stream overlap
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

func (e *Encoder) event(dst []byte, ev *lathe.Event) []byte {
	dst = e.begin(dst, ev)
	switch d := ev.Data.(type) {
	case *lathe.RunStarted:
		dst = e.takenOver(dst, d)
	case *lathe.ToolCallParseError, *lathe.ToolCallExecuted:
		// A call that could not be read is told when it is planned, what a tool did by its result.
	case *lathe.RunResumed:
		e.paused = nil
	case *lathe.ModelCallStarted:
		dst = e.attempt(dst, ev.Turn)
	case *lathe.TextDelta:
		dst = e.delta(dst, ev, textBlock, d.Text)
	case *lathe.CommentaryDelta:
		dst = e.delta(dst, ev, commentaryBlock, d.Text)
	case *lathe.ReasoningDelta:
		dst = e.delta(dst, ev, reasoningBlock, d.Text)
	case *lathe.ToolCallDelta:
		if e.contiguous(ev) && d.ToolCallID != "" && d.Tool != "unknown" && e.isLive(d.ToolCallID) { // else it is told when it is proposed
			var c *call
			c, dst = e.open(dst, d.ToolCallID, d.Tool)
			dst = e.args(dst, c, d.Text)
		}
	case *lathe.ModelCallFinished:
		dst = e.attempted(dst, d)
	case *lathe.ToolCallProposed:
		dst = e.proposed(dst, d)
	case *lathe.ToolCallPlanned:
		if c := e.find(d.ToolCallID); c == nil { // it could not be read
			c, dst = e.open(dst, d.ToolCallID, d.Tool)
			dst = e.ready(dst, c, "")
		}
	case *lathe.ApprovalRequested:
		dst = e.asked(dst, d)
	case *lathe.ApprovalResolved:
		if c := e.find(d.ToolCallID); c != nil && d.Decision != "denied" {
			c.approval = ""
		}
	case *lathe.ToolCallResult:
		dst = e.result(dst, d)
	case *lathe.RunPaused:
		e.paused = d
	case *lathe.RunFinished:
		e.over = d
		dst = e.AppendEnd(dst)
	}
	return dst
}

func (e *Encoder) begin(dst []byte, ev *lathe.Event) []byte {
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
	if d, ok := ev.Data.(*lathe.RunStarted); ok {
		h.model = d.Model
	}
	return e.w.begin(dst, h)
}

// takenOver tells the messages that the run took over from the run that it continues, as one step before its own.
func (e *Encoder) takenOver(dst []byte, d *lathe.RunStarted) []byte {
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
				dst = e.proposed(dst, &lathe.ToolCallProposed{ToolCallID: c.ID, ToolName: c.Name, RawName: c.Name, RawArgs: c.Arguments})
			}
			continue
		}
		for _, p := range m.Parts {
			if r, ok := p.(lathe.ToolResult); ok {
				status := "ok"
				if r.IsError {
					status = "error"
				}
				dst = e.result(dst, &lathe.ToolCallResult{ToolCallID: r.CallID, Tool: r.Name, Status: status, ErrorType: r.Code, Result: r.Content, Blobs: r.Blobs})
			}
		}
	}
	return dst
}

// attempt opens the step of a turn, or the next attempt within it.
func (e *Encoder) attempt(dst []byte, turn int) []byte {
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

func (e *Encoder) closeStep(dst []byte) []byte {
	if !e.inStep {
		return dst
	}
	e.inStep = false
	return e.w.stepEnd(dst, e.turn, &e.step)
}

// contiguous reports whether no delta of the attempt is missing before ev.
func (e *Encoder) contiguous(ev *lathe.Event) bool {
	s := &e.streak
	if !e.inStep || ev.N != 0 && ev.N != s.next {
		s.holed = true
	}
	s.next++
	s.any = s.any || !s.holed
	return !s.holed
}

func (e *Encoder) delta(dst []byte, ev *lathe.Event, k kind, text string) []byte {
	if !e.contiguous(ev) {
		return dst
	}
	e.streak.bytes[k] += len(text)
	return e.text(dst, k, text)
}

func (e *Encoder) text(dst []byte, k kind, text string) []byte {
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

func (e *Encoder) closeBlock(dst []byte) []byte {
	if e.block.kind == noBlock {
		return dst
	}
	b := e.block
	e.block = block{}
	return e.w.blockEnd(dst, b)
}

// attempted closes what an attempt left open, and tells what deltas have not told of its message.
func (e *Encoder) attempted(dst []byte, d *lathe.ModelCallFinished) []byte {
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

func (e *Encoder) rest(dst []byte, m *lathe.Message, missing bool) []byte {
	told := e.streak.bytes
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
		case lathe.ToolCall, lathe.ToolResult: // proposed in their own events
		}
		if k == noBlock || !missing {
			continue
		}
		n := min(told[k], len(text))
		told[k] -= n
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

// open returns the call of that id, told.
func (e *Encoder) open(dst []byte, id, name string) (*call, []byte) {
	c := e.find(id)
	if c != nil && !c.done {
		return c, e.tell(dst, c)
	}
	c = &call{id: id, shown: e.unused(id), name: name}
	e.calls = append(e.calls, c)
	return c, e.tell(dst, c)
}

// unused returns the id, or one made of it where the stream has told another call of that id.
func (e *Encoder) unused(id string) string {
	shown := id
	for n := 2; slices.ContainsFunc(e.calls, func(c *call) bool { return c.shown == shown }); n++ {
		shown = id + "__" + strconv.Itoa(n)
	}
	return shown
}

func (e *Encoder) tell(dst []byte, c *call) []byte {
	if c.told {
		return dst
	}
	c.told = true
	dst = e.closeBlock(dst)
	dst = e.w.callStart(dst, c)
	if c.carried {
		dst = e.ready(dst, c, c.args)
	}
	return dst
}

func (e *Encoder) args(dst []byte, c *call, text string) []byte {
	if text == "" || c.ready {
		return dst
	}
	c.sent += len(text)
	if e.opts.MaxArgs > 0 && c.sent > e.opts.MaxArgs {
		return dst
	}
	return e.w.callArgs(dst, c, text)
}

// isLive reports whether the call is told as it is written.
func (e *Encoder) isLive(id string) bool {
	if e.live == "" {
		e.live = id
	}
	return !e.inOrder || e.live == id
}

// waits reports whether a call waits for a person.
func (e *Encoder) waits() bool {
	return slices.ContainsFunc(e.calls, func(c *call) bool { return c.approval != "" && !c.done })
}

// ready tells the rest of the argument text, and that it is whole.
func (e *Encoder) ready(dst []byte, c *call, args string) []byte {
	if c.ready {
		return dst
	}
	if c.sent < len(args) {
		dst = e.args(dst, c, args[c.sent:])
	}
	c.ready, c.args = true, clip(args, e.opts.MaxArgs)
	return e.w.callReady(dst, c)
}

func (e *Encoder) proposed(dst []byte, d *lathe.ToolCallProposed) []byte {
	name := shownName(d.ToolName, d.RawName)
	if e.inOrder && !d.Client && e.waits() && e.find(d.ToolCallID) == nil {
		e.calls = append(e.calls, &call{id: d.ToolCallID, shown: e.unused(d.ToolCallID), name: name, carried: true, args: clip(d.RawArgs, e.opts.MaxArgs)})
		return dst
	}
	c, dst := e.open(dst, d.ToolCallID, name)
	c.client = d.Client
	return e.ready(dst, c, d.RawArgs)
}

func (e *Encoder) asked(dst []byte, d *lathe.ApprovalRequested) []byte {
	c, dst := e.open(dst, d.ToolCallID, d.Tool)
	dst = e.ready(dst, c, string(d.Arguments))
	c.approval, c.expires = d.ArgsDigest, d.ExpiresAt.UTC().Format(time.RFC3339)
	return e.w.approval(dst, c)
}

func (e *Encoder) result(dst []byte, d *lathe.ToolCallResult) []byte {
	c, dst := e.open(dst, d.ToolCallID, d.Tool)
	dst = e.ready(dst, c, "")
	c.done = true
	return e.w.result(dst, c, &outcome{content: clip(d.Result, e.opts.MaxResult), failed: d.Status != "ok", code: d.ErrorType, message: d.Message,
		denied: d.ErrorType == lathe.CodeApprovalDenied && c.approval != ""})
}

// drop ends calls that nothing will come of any more.
func (e *Encoder) drop(dst []byte, which func(*call) bool) []byte {
	for _, c := range e.calls {
		if c.done || !c.told || !which(c) {
			continue
		}
		dst = e.ready(dst, c, "")
		c.done = true
		dst = e.w.result(dst, c, &outcome{content: interruptedContent, failed: true, code: lathe.CodeInterrupted, message: interruptedText})
	}
	return dst
}

// AppendEnd ends the stream, where nothing more comes: the run has ended, waits for somebody, or broke
// off. A second end says nothing.
func (e *Encoder) AppendEnd(dst []byte) []byte {
	if e.ended {
		return dst
	}
	if !e.begun {
		dst = e.begin(dst, &lathe.Event{})
	}
	end := e.ending()
	dst = e.closeBlock(dst)
	waits := end.finish == finishToolCalls
	dst = e.drop(dst, func(c *call) bool { return !waits || !c.ready })
	for _, c := range e.calls {
		if waits && (c.told || c.carried) && !c.done {
			end.pending = append(end.pending, c)
		}
	}
	dst = e.closeStep(dst)
	e.ended = true
	return e.w.end(dst, &end)
}
