package uistream

import (
	"encoding/json"
	"slices"

	"github.com/lathe-run/lathe"
)

// A thread is a conversation during parsing: messages without results, and their results separately.
type thread struct {
	messages  []lathe.Message
	calls     map[string]*readCall // by id
	order     []*readCall          // the same calls in their order
	approvals []Approval           // those of AG-UI, which have no call id

	// The last assistant message of the request, which becomes one message for each of its steps:
	lastID   string
	lastRun  string // id of its run
	lastFrom int    // index in messages at which it begins
	closed   bool   // a message of the user follows it
}

// A readCall is a call in the request, with its result if there is one.
type readCall struct {
	call     lathe.ToolCall
	message  int // index of the message that contains it
	result   *lathe.ToolResult
	approval *Approval // the decision in the request; nil: none
	asked    string    // id of the approval request
	own      bool      // the page has executed it, as far as is known
}

func (t *thread) add(m lathe.Message) { t.messages = append(t.messages, m) }

// addTurn adds an assistant message without parts.
func (t *thread) addTurn() { t.add(lathe.Message{Role: lathe.RoleAssistant}) }

// beginAnswer begins an assistant message of the request.
func (t *thread) beginAnswer(id, run string) {
	t.closed, t.lastID, t.lastRun, t.lastFrom = false, id, run, len(t.messages)
	t.addTurn()
}

// last returns the last message.
func (t *thread) last() *lathe.Message { return &t.messages[len(t.messages)-1] }

// addPart adds a part to the last message.
func (t *thread) addPart(p lathe.Part) { t.last().Parts = append(t.last().Parts, p) }

// call adds a call to the last message. It returns false if another call has the same id.
func (t *thread) call(c *readCall) bool {
	if t.calls == nil {
		t.calls = map[string]*readCall{}
	}
	if t.calls[c.call.ID] != nil {
		return false
	}
	c.message = len(t.messages) - 1
	t.addPart(c.call)
	t.calls[c.call.ID] = c
	t.order = append(t.order, c)
	return true
}

// history returns the messages, each followed by the results of its calls.
func (t *thread) history() (out []lathe.Message) {
	for i := range t.messages {
		m := &t.messages[i]
		if len(m.Parts) == 0 {
			continue
		}
		out = append(out, *m)
		for _, call := range m.Calls() {
			c := t.calls[call.ID]
			r := c.result
			if r == nil {
				r = c.unanswered()
			}
			out = append(out, lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{*r}})
		}
	}
	return out
}

// unanswered returns the result that the model receives for a call without a result.
func (c *readCall) unanswered() *lathe.ToolResult {
	r := &lathe.ToolResult{CallID: c.call.ID, Name: c.call.Name, IsError: true, Code: lathe.CodeInterrupted, Content: interruptedContent}
	if c.approval != nil && !c.approval.Approved {
		r.Code, r.Content = lathe.CodeApprovalDenied, deniedContent
	}
	return r
}

const deniedContent = `{"ok":false,"error":{"code":"approval_denied","message":"A person did not allow this call."}}`

// waiting returns the last message if it is an assistant message with calls, else nil.
func (t *thread) waiting() *Waiting {
	if t.closed || len(t.messages) == 0 {
		return nil
	}
	w := &Waiting{MessageID: t.lastID, RunID: t.lastRun, Results: map[string]lathe.Output{}}
	first := slices.IndexFunc(t.order, func(c *readCall) bool { return c.message >= t.lastFrom })
	if first < 0 {
		return nil
	}
	for _, c := range t.order[first:] {
		w.Calls = append(w.Calls, OpenCall{ToolCall: c.call, Approval: c.asked})
		switch {
		case c.approval != nil:
			w.Approvals = append(w.Approvals, *c.approval)
		case c.result != nil && c.own:
			o := lathe.Output{Data: json.RawMessage(outputValue(c.result.Content)), IsError: c.result.IsError, Code: c.result.Code}
			w.Results[c.call.ID] = o
		}
	}
	w.Approvals = append(w.Approvals, t.approvals...)
	return w
}
