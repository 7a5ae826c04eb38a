package server

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gateway/pairs"
	problems "github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/gateway/runlog"
	"github.com/lathe-run/lathe/internal/gateway/splice"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/responses"
	"github.com/lathe-run/lathe/loop"
)

// A response of the Responses API of OpenAI is stored under its id unless the request forbids it. A later request can
// continue a stored response, and clients can read, cancel and delete it. A stored response is a part of a run in the
// store: its id names the run and the part, see [runlog.AnswerID]. A run whose response is not stored cannot be reached by
// these routes.

// labelResponse is the label of a run whose response is stored. Clients do not see it among the labels of the run.
const labelResponse = "lathe_response"

// Values of labelResponse.
const (
	storedPlain      = "kept"
	storedInstructed = "kept_instructions" // the first message contains the instructions, which later requests do not inherit
)

// labelStored labels the run of the request as one whose response is stored, unless the request forbids it or there is no store.
func (a *content) labelStored() {
	labels := a.in.Run.Labels
	if a.protocol != responsesAPI || a.forbidsStoring() || !a.in.Park || len(labels) >= loop.MaxLabels {
		return
	}
	stored := storedPlain
	if a.instructed() {
		stored = storedInstructed
	}
	a.in.Run.Labels, a.head.Kept = withOwn(labels, map[string]string{labelResponse: stored}), true
}

// forbidsStoring reports whether the request forbids that its response is stored ("store": false).
func (a *request) forbidsStoring() bool { return a.req.Keep != nil && !*a.req.Keep }

// instructed reports whether the request has instructions, which become the first message.
func (a *request) instructed() bool { return rawjson.TextAt(a.req.Body, "instructions") != "" }

// withoutInstructions returns the messages without instructions at the beginning.
func withoutInstructions(messages []lathe.Message) []lathe.Message {
	if len(messages) > 0 && messages[0].Role == lathe.RoleSystem {
		return messages[1:]
	}
	return messages
}

// durable reports whether each event of the run must be stored at once: the request asked to store its response, or the
// next request may reach another process.
func (a *content) durable() bool {
	return a.head.Kept && (a.req.Keep != nil || a.handler.shared != nil)
}

// passesBytes reports whether the response of the model server may be relayed unchanged. On Responses it may not if a later
// request could continue the response by its id: if the response is stored or belongs to a WebSocket.
func (a *request) passesBytes() bool {
	if a.protocol.Wire() != lathe.WireResponses {
		return true
	}
	return a.protocol == responsesAPI && a.socket == nil && a.req.PreviousID == "" && (a.handler.opts.Index == nil || a.forbidsStoring())
}

// responsePrefix is the prefix of the ids of responses.
const responsePrefix = "resp_"

// codeNoResponse is the error code for an id without a stored response.
const codeNoResponse = "previous_response_not_found"

func noResponse(status int, param string) *problem {
	return problems.New(status, codeNoResponse, "There is no such response. It was not stored, or it was removed, or another key has it.").WithParam(param)
}

// A responseReader reads stored responses, for requests that continue them and for clients.
type responseReader struct {
	*runViews
	turns *splice.Turns
}

// storedResponse returns the stored response of the caller with the id. A response of another principal is reported as not
// found.
func (h *responseReader) storedResponse(ctx context.Context, c *caller, id string) (*runlog.Span, *problem) {
	none := noResponse(http.StatusNotFound, "")
	rest, ok := strings.CutPrefix(id, responsePrefix)
	if !ok || h.opts.Index == nil {
		return nil, none
	}
	answer := runlog.ParseAnswerID(rest)
	v, p := h.viewOther(ctx, c, answer.Run)
	switch {
	case p.Absent():
		return nil, none
	case p != nil:
		return nil, p
	case v.State.Run.Labels[labelResponse] == "" || !v.Has(answer):
		return nil, none
	}
	return v.Span(answer), nil
}

// named returns the stored response whose id is in the path of a request.
func (h *responsesHandler) named(r *http.Request, c *caller) (*runlog.Span, *problem) {
	return h.responses.storedResponse(r.Context(), c, r.PathValue("id"))
}

// showResponse handles GET /v1/responses/{id}.
func (h *responsesHandler) showResponse(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	sp, p := h.named(r, c)
	if p == nil && r.URL.Query().Get("stream") == "true" {
		p = badRequest("stream", "The events of a response are not replayed: read the response, or follow GET /api/runs/ID/events.")
	}
	if p != nil {
		return p
	}
	return answerRaw(w, http.StatusOK, h.responseOf(r.Context(), c, sp))
}

// responseOf returns the JSON of a stored response, which may be in progress. It is written again from the log of its run.
func (h *responsesHandler) responseOf(ctx context.Context, c *caller, sp *runlog.Span) []byte {
	v := sp.View
	c.runID = v.State.Run.RunID
	a := h.newChat(c, responsesAPI, &wire.ClientRequest{Request: lathe.Request{Model: v.State.Target}})
	a.stored, a.showsCalls, a.showsApprovals = true, true, true
	a.head.ID, a.head.Created, a.head.Kept = sp.ID.String(), v.Summary.Run.Started.Unix(), true
	a.restoreRequest(ctx, v)
	a.handOver(&a.settings, &a.limits)
	a.calls.ids = newCallIDs(ctx, &a.exchange, c.runID)
	if a.calls.names == nil { // the stored request declares no tools
		a.calls.names = map[string]bool{}
	}
	for _, call := range pairs.CallsOf(v.State.Messages) {
		if v.Client[call.ID] {
			a.calls.names[call.Name] = true
		}
	}
	a.base = sp.Start
	if sp.Last() && !v.Rests() {
		return lastResponse(a.protocol.NewWriter(&a.head).AppendStart(nil))
	}
	res := sp.Result()
	if p := problems.Failure(res); p != nil {
		body := lastResponse(a.protocol.NewWriter(&a.head).AppendError(nil, c.apiError(p)))
		if res.Reason == lathe.ReasonCancelled {
			body = bytes.Replace(body, []byte(`"status":"failed"`), []byte(`"status":"cancelled"`), 1)
		}
		return body
	}
	a.head.Completed = v.Summary.Run.Updated.Unix()
	return a.appendWhole(nil, res)
}

// lastResponse returns the member `response` of the last server-sent event in frames that has one. The data of such an event
// is one line, such as data: {"type":"response.completed","response":{…}}.
func lastResponse(frames []byte) (response []byte) {
	for line := range bytes.Lines(frames) {
		data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data: {"))
		if !ok {
			continue
		}
		if v, has := rawjson.Get(append([]byte{'{'}, data...), "response"); has {
			response = v
		}
	}
	return response
}

// cancelResponse handles POST /v1/responses/{id}/cancel: it cancels the run of a stored response and returns the response.
// If the run has given a later response, the named one has ended, and is returned unchanged.
func (h *responsesHandler) cancelResponse(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	sp, p := h.named(r, c)
	if p == nil && sp.Last() && sp.State.Finished == nil {
		_, p = h.inputs().cancel(r.Context(), c, sp.State.Run.RunID)
		if p == nil || p.Code == "run_ended" {
			sp, p = h.named(r, c)
		}
	}
	if p != nil {
		return p
	}
	return answerRaw(w, http.StatusOK, h.responseOf(r.Context(), c, sp))
}

// deleteResponse handles DELETE /v1/responses/{id}: it deletes the run of a stored response, with all its responses.
func (h *responsesHandler) deleteResponse(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	sp, p := h.named(r, c)
	if p == nil {
		p = (&removalHandler{&sessionsHandler{h.runStarter}}).remove(r.Context(), c, sp.State.Run.RunID)
	}
	if p != nil {
		return p
	}
	return answer(w, struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Deleted bool   `json:"deleted"`
	}{r.PathValue("id"), "response.deleted", true})
}

// listInput handles GET /v1/responses/{id}/input_items: the input of a stored response, including that of the responses
// which it continues.
func (h *responsesHandler) listInput(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	sp, p := h.named(r, c)
	if p != nil {
		return p
	}
	given := sp.State.Messages[:sp.Start]
	if sp.Start == sp.State.Start {
		given = given[:sp.Start-sp.State.TakenOver]
	}
	if sp.State.Run.Labels[labelResponse] == storedInstructed {
		given = withoutInstructions(given)
	}
	body, _ := responses.Codec{}.AppendRequest(nil, &lathe.Request{Model: sp.State.Target, Messages: given}, &wire.EncodeOptions{})
	list := inputList(rawjson.At(body, "input"), sp.ID.String())
	if r.URL.Query().Get("order") != "asc" { // the default order is newest first
		slices.Reverse(list)
	}
	page, p := pageOf(list, r)
	if p != nil {
		return p
	}
	return answer(w, page)
}
