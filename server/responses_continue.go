package server

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gateway/pairs"
	"github.com/lathe-run/lathe/internal/gateway/runlog"
	"github.com/lathe-run/lathe/loop"
)

// A request continues a response of the Responses API by its id (previous_response_id): the input and the output of that
// response, which may itself continue another one, stand before the input of the request.

// continueResponse resolves item references, and puts the input and output of the response that the request continues
// before the messages of the request. If the run of that response is suspended and the request has results for it, waits is the
// id of that run instead.
func (h *responseReader) continueResponse(ctx context.Context, a *chat) (waits string, p *problem) {
	waits, p = h.resolveReferences(ctx, a)
	if p != nil || waits != "" || a.req.PreviousID == "" {
		return waits, p
	}
	earlier, p := h.earlierResponse(ctx, a)
	if p == nil {
		p = a.caller.reserved.Load(earlier.messages)
	}
	if p != nil {
		return "", p
	}
	given := withoutInstructions(a.req.Messages)
	instructions := a.req.Messages[:len(a.req.Messages)-len(given)] // those of this request stay first
	results := given[:leadingResults(given)]
	if earlier.runID != "" && len(results) > 0 {
		return earlier.runID, nil
	}
	history := earlier.messages
	if earlier.open {
		ids, p := h.turns.CallIDsIn(ctx, a.caller.key.Name, results)
		if p != nil {
			return "", p
		}
		joined, ok := pairs.Join(nil, history, ids.Originals(results, history))
		if !ok {
			return "", badRequest(a.protocol.conversation, "The response that the request goes on from has calls: begin the input with one function_call_output for each of them.").WithCode("missing_tool_result")
		}
		history, given = joined, given[len(results):]
	}
	a.req.Messages = slices.Concat(instructions, history, given)
	return "", nil
}

// leadingResults returns the number of tool results at the beginning of the messages.
func leadingResults(messages []lathe.Message) (n int) {
	for n < len(messages) && messages[n].Role == lathe.RoleTool {
		n++
	}
	return n
}

// An earlierResponse is the response that a request continues by previous_response_id.
type earlierResponse struct {
	runID string // the suspended run of the response; "": the run has ended
	// messages are the input of the response, without instructions, and its output.
	messages   []lathe.Message
	open       bool // the run has ended, and the output ends with calls of the client
	instructed bool // the log of the suspended run begins with instructions
}

// earlierResponse returns the response that the request continues: the last one of its WebSocket, or a stored one.
func (h *responseReader) earlierResponse(ctx context.Context, a *chat) (*earlierResponse, *problem) {
	last := a.socket.refer(a.req.PreviousID)
	if last != nil && last.runID == "" {
		return last, nil
	}
	var sp *runlog.Span
	var p *problem
	if last == nil {
		sp, p = h.restingResponse(ctx, a, a.req.PreviousID)
	} else { // the response is not stored, but its suspended run is
		var v *runlog.View
		if v, p = h.viewOther(ctx, a.caller, last.runID); p == nil {
			sp = v.Span(runlog.ParseAnswerID(strings.TrimPrefix(a.req.PreviousID, responsePrefix)))
		}
	}
	switch {
	case p != nil && p.Code == codeNoResponse:
		return nil, noResponse(http.StatusBadRequest, "previous_response_id")
	case p != nil:
		return nil, p
	}
	e := &earlierResponse{messages: sp.History(), open: sp.Open()}
	if sp.Waits() { // the history is complete: it includes the calls that wait for an approval
		e.runID = sp.ID.Run
	} else {
		e.messages = loop.KeptHistory(e.messages, sp.State.Retention)
	}
	isInstructed := last != nil && last.instructed || sp.State.Run.Labels[labelResponse] == storedInstructed
	if isInstructed {
		e.messages = withoutInstructions(e.messages)
	}
	return e, nil
}

// restingResponse returns a stored response of the caller after its run has ended or is suspended. It waits for that for a
// limited time.
func (h *responseReader) restingResponse(ctx context.Context, a *chat, id string) (*runlog.Span, *problem) {
	sp, p := h.storedResponse(ctx, a.caller, id)
	if p != nil || !sp.Last() || sp.Rests() {
		return sp, p
	}
	v, p := h.waitSuspended(ctx, a.caller, sp.ID.Run)
	if p != nil {
		return nil, p
	}
	if !v.Rests() {
		return nil, conflict("response_in_progress", "The response that the request goes on from is in progress: wait for its end.")
	}
	return v.Span(sp.ID), nil
}
