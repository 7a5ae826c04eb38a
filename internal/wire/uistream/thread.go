package uistream

import (
	"encoding/json"
	"slices"

	"github.com/lathe-run/lathe"
)

// A thread is a conversation during parsing: messages without results, and the results separately.
type thread struct {
	messages  []lathe.Message
	calls     map[string]*heard
	order     []*heard
	approvals []Approval // AG-UI's, which name no call
	lastID    string     // of the last assistant's message
	lastRun   string
	lastFrom  int // where in messages the last assistant's message begins
	closed    bool
}

// heard is one call with its result, as the request has them.
type heard struct {
	call     lathe.ToolCall
	at       string
	message  int // index of its message
	result   *lathe.ToolResult
	approval *Approval // that was given
	waits    bool      // the page shows it as waiting for an approval
	asked    string    // the id of the approval
	own      bool      // the page has executed it, as far as is known
}

func (t *thread) add(m lathe.Message) { t.messages = append(t.messages, m) }

// call adds a call to the last message.
func (t *thread) call(h *heard) error {
	if t.calls == nil {
		t.calls = map[string]*heard{}
	}
	if t.calls[h.call.ID] != nil {
		return wrong(h.at+".toolCallId", "duplicate toolCallId: another call has the same id.")
	}
	h.message = len(t.messages) - 1
	m := &t.messages[h.message]
	m.Parts = append(m.Parts, h.call)
	t.calls[h.call.ID] = h
	t.order = append(t.order, h)
	return nil
}

// answer sets the result of an added call.
func (t *thread) answer(at, id string, r *lathe.ToolResult) error {
	h := t.calls[id]
	switch {
	case h == nil:
		return wrong(at+".toolCallId", "unknown toolCallId: no call has this id.")
	case h.result != nil:
		return wrong(at+".toolCallId", "duplicate toolCallId: the call has a result already.")
	}
	r.CallID, r.Name = id, h.call.Name
	h.result, h.own = r, true
	return nil
}

// history inserts each result after the message of its call.
func (t *thread) history() ([]lathe.Message, error) {
	var out []lathe.Message
	for i := range t.messages {
		m := &t.messages[i]
		if len(m.Parts) == 0 {
			continue
		}
		out = append(out, *m)
		for _, c := range m.Calls() {
			h := t.calls[c.ID]
			r := h.result
			if r == nil {
				r = h.unanswered()
			}
			out = append(out, lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{*r}})
		}
	}
	if len(out) == 0 {
		return nil, wrong("messages", "There are no messages: a run starts from one at least.")
	}
	return out, nil
}

// unanswered returns the result that the model reads for a call without a result.
func (h *heard) unanswered() *lathe.ToolResult {
	r := &lathe.ToolResult{CallID: h.call.ID, Name: h.call.Name, IsError: true, Code: lathe.CodeInterrupted, Content: interruptedContent}
	if h.approval != nil && !h.approval.Approved {
		r.Code, r.Content = lathe.CodeApprovalDenied, deniedContent
	}
	return r
}

const deniedContent = `{"ok":false,"error":{"code":"approval_denied","message":"A person did not allow this call."}}`

// waiting returns the last message if it is the assistant's and calls of it waited.
func (t *thread) waiting() *Waiting {
	if t.closed || len(t.messages) == 0 {
		return nil
	}
	w := &Waiting{MessageID: t.lastID, RunID: t.lastRun, Results: map[string]lathe.Output{}}
	last := slices.IndexFunc(t.order, func(h *heard) bool { return h.message >= t.lastFrom })
	if last < 0 {
		return nil
	}
	for _, h := range t.order[last:] {
		w.Calls = append(w.Calls, OpenCall{ToolCall: h.call, Approval: h.asked})
		switch {
		case h.approval != nil:
			w.Approvals = append(w.Approvals, *h.approval)
		case h.result != nil && h.own:
			o := lathe.Output{Data: json.RawMessage(appendOutput(nil, h.result.Content)), IsError: h.result.IsError, Code: h.result.Code}
			w.Results[h.call.ID] = o
		}
	}
	w.Approvals = append(w.Approvals, t.approvals...)
	return w
}
