// The state machine of an Encoder: it turns the events of a run, which may be live, stored or both, into calls of its writer, in which blocks,
// calls and steps are nested.

package uistream

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/visible"
)

// Append appends the frames for ev. The last frame of a stored event has the id of the event, so that a client that reports an id has
// received the complete event. Events that were appended before are ignored.
func (e *Encoder) Append(dst []byte, ev *event.Event) []byte {
	if ev.ID != 0 && ev.ID <= e.lastID { // a stored log and a live stream overlap
		return dst
	}
	return e.write(dst, func() {
		e.lastID = max(e.lastID, ev.ID)
		e.event(ev)
		if e.sse && ev.ID > 0 && e.out.last >= 0 {
			e.out.dst = slices.Insert(e.out.dst, e.out.last, []byte("id: "+strconv.FormatInt(ev.ID, 10)+"\n")...)
		}
	})
}

// write appends to dst what write emits, or nothing if the stream has ended.
func (e *Encoder) write(dst []byte, write func()) []byte {
	if e.ended {
		return dst
	}
	e.out = output{dst: dst, last: -1}
	write()
	return e.out.dst
}

func (e *Encoder) event(ev *event.Event) {
	e.begin(ev)
	switch d := ev.Data.(type) {
	case *event.RunStarted:
		e.takenOver(d)
	case *event.ToolCallParseError, *event.ToolsLoaded, *event.ToolCallProgress, *event.ToolCallExecuted:
		// Chat pages do not show which definitions the model has. An unreadable call is shown when it is planned.
		e.report(ev.Data)
	case *event.RunResumed:
		e.paused = nil
	case *event.ModelCallStarted:
		e.beginAttempt(ev.Turn)
	case *event.TextDelta:
		e.delta(ev, textBlock, d.Text)
	case *event.CommentaryDelta:
		e.delta(ev, commentaryBlock, d.Text)
	case *event.ReasoningDelta:
		e.delta(ev, reasoningBlock, d.Text)
	case *event.ToolCallDelta:
		writable := e.countDelta(ev) && d.ToolCallID != "" && d.Tool != "unknown"
		if writable && e.claimLive(d.ToolCallID) { // other calls are shown once proposed
			e.args(e.open(d.ToolCallID, d.Tool), d.Text)
		}
	case *event.ModelCallFinished:
		e.endAttempt(d)
	case *event.ToolCallProposed:
		e.proposed(d)
	case *event.ToolCallPlanned:
		if c := e.calls.find(d.ToolCallID); c == nil { // the call was unreadable
			e.ready(e.open(d.ToolCallID, d.Tool), "")
		}
	case *event.ApprovalRequested:
		e.approvalRequested(d)
	case *event.ApprovalResolved:
		if c := e.calls.find(d.ToolCallID); c != nil && d.Decision != "denied" {
			c.approval = ""
		}
	case *event.ToolCallResult:
		e.result(d)
	case *event.RunPaused:
		e.paused = d
	case *event.RunFinished:
		e.finished = d
		e.end()
	}
}

func (e *Encoder) begin(ev *event.Event) {
	if e.begun {
		return
	}
	e.begun = true
	h := &e.head
	*h = head{messageID: e.opts.MessageID, threadID: e.opts.ThreadID, runID: ev.RunID, agRunID: e.opts.RunID}
	h.messageID = cmp.Or(h.messageID, "msg_"+strings.TrimPrefix(h.runID, "run_"))
	h.threadID = cmp.Or(h.threadID, ev.SessionID, ev.RunID, h.messageID)
	h.agRunID = cmp.Or(h.agRunID, ev.RunID, h.messageID)
	if d, ok := ev.Data.(*event.RunStarted); ok {
		h.model = d.Model
	}
	e.w.begin(h)
}

// takenOver writes the messages that the run has taken over from the run that it continues, as one step before its own steps.
func (e *Encoder) takenOver(d *event.RunStarted) {
	n := min(max(d.TakenOver, 0), len(d.Messages))
	if n == 0 {
		return
	}
	e.beginAttempt(0)
	e.step.finish = lathe.FinishToolCalls
	for _, m := range d.Messages[len(d.Messages)-n:] {
		if m.Role == lathe.RoleAssistant {
			e.streak = streak{next: 1}
			e.remainder(&m)
			e.closeBlock()
		}
		for _, p := range m.Parts {
			switch p := p.(type) {
			case lathe.ToolCall:
				e.proposed(&event.ToolCallProposed{ToolCallID: p.ID, ToolName: p.Name, RawName: p.Name, RawArgs: p.Arguments})
			case lathe.ToolResult:
				status := "ok"
				if p.IsError {
					status = "error"
				}
				e.result(&event.ToolCallResult{ToolCallID: p.CallID, Tool: p.Name, Status: status, ErrorType: p.Code, Result: p.Content, Blobs: p.Blobs})
			default: // remainder has written the content
			}
		}
	}
}

// beginAttempt begins the step of a turn, or another attempt within it.
func (e *Encoder) beginAttempt(turn int) {
	e.closeBlock()
	e.interrupt(func(c *call) bool { return !c.ready })
	e.streak, e.live = streak{next: 1}, ""
	if e.inStep && turn == e.turn {
		return
	}
	e.closeStep()
	e.turn, e.blocks, e.inStep, e.step = turn, 0, true, step{finish: lathe.FinishUnknown}
	e.w.stepStart(turn)
}

// A progress is what the client has been shown: steps, and in them blocks and calls. Its methods write the beginning and the end of each once.
type progress struct {
	w     writer
	opts  Options
	calls calls // of the run

	// The current step:
	inStep bool // it was begun and not ended
	turn   int
	step   step
	blocks int   // number of blocks begun in it
	block  block // the open block
}

func (p *progress) closeStep() {
	if !p.inStep {
		return
	}
	p.inStep = false
	p.w.stepEnd(p.turn, &p.step)
}

// countDelta counts ev, a delta of the attempt. It returns whether ev may be written, because the stream has all deltas before it.
func (e *Encoder) countDelta(ev *event.Event) bool {
	s := &e.streak
	if !e.inStep || ev.N != 0 && ev.N != s.next {
		s.missing = true
	}
	s.next++
	s.any = s.any || !s.missing
	return !s.missing
}

func (e *Encoder) delta(ev *event.Event, k kind, text string) {
	if !e.countDelta(ev) {
		return
	}
	e.streak.bytes[k] += len(text)
	e.text(k, text)
}

func (p *progress) text(k kind, text string) {
	if text == "" || k == reasoningBlock && p.opts.HideReasoning {
		return
	}
	if p.block.kind != k {
		p.closeBlock()
		p.blocks++
		p.block = block{kind: k, id: "t" + strconv.Itoa(p.turn) + "-" + strconv.Itoa(p.blocks)}
		p.w.blockStart(p.block)
	}
	p.w.blockDelta(p.block, text)
}

func (p *progress) closeBlock() {
	if p.block.kind == noBlock {
		return
	}
	b := p.block
	p.block = block{}
	p.w.blockEnd(b)
}

// endAttempt ends the open blocks of an attempt, and writes what no delta contained of its message.
func (e *Encoder) endAttempt(d *event.ModelCallFinished) {
	e.step.usage.Add(d.Usage)
	if d.Status != "success" {
		e.closeBlock()
		e.interrupt(func(c *call) bool { return !c.ready })
		return
	}
	e.step.finish = d.FinishReason
	if d.Message != nil && e.inStep {
		e.remainder(d.Message)
	}
	e.closeBlock()
}

// remainder writes the files of a complete message, and the text that the deltas of its attempt did not contain.
func (e *Encoder) remainder(m *lathe.Message) {
	sent := e.streak.bytes
	complete := e.streak.any && !e.streak.missing
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
				e.closeBlock()
				e.w.file(mediaType(&p), url)
			}
		default: // calls have their own events
		}
		if k == noBlock || complete {
			continue
		}
		n := min(sent[k], len(text))
		sent[k] -= n
		e.text(k, text[n:])
	}
}

func (all calls) find(id string) *call {
	for _, c := range slices.Backward(all) {
		if c.id == id {
			return c
		}
	}
	return nil
}

// open returns the call with an id. If none exists, or it has a result, open begins a new call.
func (p *progress) open(id, name string) *call {
	c := p.calls.find(id)
	if c == nil || c.done {
		c = &call{id: id, shown: p.calls.unused(id), name: name}
		p.calls = append(p.calls, c)
	}
	p.showCall(c)
	return c
}

// unused returns the id, or one derived from it if the stream has already shown another call with the id.
func (all calls) unused(id string) string {
	shown := id
	for n := 2; slices.ContainsFunc(all, func(c *call) bool { return c.shown == shown }); n++ {
		shown = id + "__" + strconv.Itoa(n)
	}
	return shown
}

// showCall writes the beginning of a call, unless it was written. Of a call of an earlier stream, it also writes the arguments.
func (p *progress) showCall(c *call) {
	if c.begun {
		return
	}
	c.begun = true
	p.closeBlock()
	p.w.callStart(c)
	if c.carried {
		p.ready(c, c.args)
	}
}

// args writes a piece of the arguments of a call, as far as MaxArgs allows.
func (p *progress) args(c *call, text string) {
	if text == "" || c.ready {
		return
	}
	c.sent += len(text)
	if p.opts.MaxArgs > 0 && c.sent > p.opts.MaxArgs {
		return
	}
	p.w.callArgs(c, text)
}

// claimLive returns whether the call may be streamed while the model writes it. If calls must be in order, only the first call for which
// claimLive is called in an attempt may be.
func (e *Encoder) claimLive(id string) bool {
	if e.live == "" {
		e.live = id
	}
	return !e.inOrder || e.live == id
}

// waits reports whether a call waits for an approval.
func (all calls) waits() bool {
	return slices.ContainsFunc(all, func(c *call) bool { return c.approval != "" && !c.done })
}

// ready writes the rest of the arguments and their end.
func (p *progress) ready(c *call, args string) {
	if c.ready {
		return
	}
	if c.sent < len(args) {
		p.args(c, args[c.sent:])
	}
	c.ready, c.args = true, clip(args, p.opts.MaxArgs)
	p.w.callReady(c)
}

// broken ends the arguments of a call that fails before they are complete. A page must not execute such a call.
func (p *progress) broken(c *call) {
	if c.ready {
		return
	}
	c.ready = true
	p.w.callBroken(c)
}

// proposed shows a call with its complete arguments. If calls must be in order and another one waits for an approval, the call is left to
// the stream that continues after the approval.
func (e *Encoder) proposed(d *event.ToolCallProposed) {
	name := shownName(d.ToolName, d.RawName)
	if e.inOrder && !d.Client && e.calls.waits() && e.calls.find(d.ToolCallID) == nil {
		e.calls = append(e.calls, &call{id: d.ToolCallID, shown: e.calls.unused(d.ToolCallID), name: name, carried: true, args: clip(d.RawArgs, e.opts.MaxArgs)})
		return
	}
	c := e.open(d.ToolCallID, name)
	e.ready(c, d.RawArgs)
}

// report writes what an event says about a call without a result as transient data parts, which only the UI message stream has.
func (e *Encoder) report(data event.Data) {
	w, ok := e.w.(*uiWriter)
	if !ok || w.strict {
		return
	}
	switch d := data.(type) {
	case *event.ToolCallProgress:
		if c := e.calls.inProgress(d.ToolCallID); c != nil {
			w.progress(c, d)
		}
	case *event.ToolCallExecuted:
		if c := e.calls.inProgress(d.ToolCallID); c != nil {
			w.executed(c, d)
		}
	case *event.ToolCallResult:
		c := e.calls.inProgress(d.ToolCallID)
		for i := range d.Blobs {
			if url := blobURL(&d.Blobs[i]); c != nil && url != "" {
				w.resultFile(c, mediaType(&d.Blobs[i]), url)
			}
		}
	default: // the other events say nothing about a call in progress
	}
}

// inProgress returns the call with an id if its arguments are complete and it has no result, otherwise nil.
func (all calls) inProgress(id string) *call {
	if c := all.find(id); c != nil && c.ready && !c.done {
		return c
	}
	return nil
}

func (p *progress) approvalRequested(d *event.ApprovalRequested) {
	c := p.open(d.ToolCallID, d.Tool)
	p.ready(c, string(d.Arguments))
	c.approval, c.expires = d.ArgsDigest, d.ExpiresAt.UTC().Format(time.RFC3339)
	p.w.approval(c)
}

func (e *Encoder) result(d *event.ToolCallResult) {
	c := e.open(d.ToolCallID, d.Tool)
	if d.Status == "ok" {
		e.ready(c, "")
	} else {
		e.broken(c)
	}
	e.report(d)
	c.done = true
	e.w.result(c, &outcome{content: clip(d.Result, e.opts.MaxResult), failed: d.Status != "ok", code: d.ErrorType, message: d.Message,
		denied: d.ErrorType == lathe.CodeApprovalDenied && c.approval != ""})
}

// interrupt ends the calls selected by which with an error, because they will not get a result.
func (p *progress) interrupt(which func(*call) bool) {
	for _, c := range p.calls {
		if c.done || !c.begun || !which(c) {
			continue
		}
		p.broken(c)
		c.done = true
		p.w.result(c, &outcome{content: interruptedContent, failed: true, code: lathe.CodeInterrupted, message: interruptedText})
	}
}

// AppendEnd ends the stream after the last event: the run has ended, waits for an approval or a result, or was interrupted. Further calls
// append nothing.
func (e *Encoder) AppendEnd(dst []byte) []byte { return e.write(dst, e.end) }

func (e *Encoder) end() {
	e.begin(&event.Event{})
	end := e.ending()
	e.closeBlock()
	waits := end.finish == finishToolCalls
	e.interrupt(func(c *call) bool { return !waits || !c.ready })
	for _, c := range e.calls {
		if waits && (c.begun || c.carried) && !c.done {
			end.pending = append(end.pending, c)
		}
	}
	e.closeStep()
	e.ended = true
	e.w.end(&end)
}
