package server

import (
	"net/http"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/gateway/memory"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/loop"
)

// keep stores r as the last response of the connection, so that the next message can continue it although it is not in the
// store. It is dropped when the connection ends, when a message that continues it fails, and if its messages are larger
// than Limits.MaxBody or than the free memory.
func (s *socket) keep(id string, r *earlierResponse) {
	size := memory.SizeOf(r.messages)
	s.reserved.Release()
	s.last, s.lastID = r, id
	if size > int64(s.server.opts.Limits.MaxBody) || s.reserved.Grow(size) != nil {
		s.last = nil
	}
}

// refer returns the last response of the connection, which the current message continues, if it has the id; else nil. s may be
// nil.
func (s *socket) refer(id string) *earlierResponse {
	if s == nil || s.last == nil || s.lastID != id {
		return nil
	}
	s.refers = true
	return s.last
}

// keepOnSocket stores the response to a message on its connection, unless the response is in the store. It does nothing
// after a compaction, which begins a new conversation.
func (a *chat) keepOnSocket(res *event.Result) {
	if a.socket == nil || a.head.Kept || a.compacts() {
		return
	}
	r := &earlierResponse{messages: loop.KeptHistory(res.History, a.job.loop.Retention()), open: len(a.handedOver(res)) > 0}
	r.instructed = a.instructed()
	if r.instructed {
		r.messages = withoutInstructions(r.messages)
	}
	if res.Reason.Status() == "parked" {
		r.runID = a.caller.runID
	}
	a.socket.keep(responsePrefix+a.head.ID, r)
}

// createBody returns the body of the request in a message, such as {"type":"response.create","model":"…","input":[…]}: the
// message without its type and with "stream": true. preparesOnly is true if the message only prepares a conversation
// ("generate": false).
func createBody(message []byte) (body []byte, preparesOnly bool, p *problem) {
	if err := rawjson.Check(message, rawjson.Limits{}); err != nil {
		return nil, false, badRequest("", "The message is not acceptable JSON: %v.", err)
	}
	if message[rawjson.SkipSpace(message, 0)] != '{' {
		return nil, false, badRequest("", "A message must be a JSON object.")
	}
	stream, generate := string(rawjson.At(message, "stream")), string(rawjson.At(message, "generate"))
	switch {
	case rawjson.TextAt(message, "type") != "response.create":
		return nil, false, badRequest("type", "The type of a message must be response.create.")
	case stream != "" && stream != "true" && stream != "null":
		return nil, false, badRequest("stream", "A response on a WebSocket is always streamed: leave stream out.")
	case generate != "" && generate != "true" && generate != "false" && generate != "null":
		return nil, false, badRequest("generate", "generate must be true or false.")
	}
	edit := func(name string, v []byte) (key, value []byte, keep bool) {
		return nil, v, name != "type" && name != "stream" && name != "generate"
	}
	return rawjson.AppendEdited(nil, message, edit, func(dst []byte) []byte { return wire.JSON(dst).Bool("stream", true) }), generate == "false", nil
}

// warmUp handles a message with "generate": false: it stores the input on the connection for the next message, and does not
// call the model.
func (h *chatHandler) warmUp(w http.ResponseWriter, a *chat) *problem {
	if len(a.in.Messages) == 0 || len(a.req.Approvals) > 0 {
		return badRequest("generate", "The request continues a run that waits: send it without generate.")
	}
	a.head.Kept = false
	a.keepOnSocket(&event.Result{Reason: lathe.ReasonAnswered, History: a.in.Messages})
	out := h.newStreamWriter(w, a)
	writer := a.protocol.NewWriter(&a.head)
	_ = out.Write(writer.AppendFinish(writer.AppendStart(nil), &lathe.Finish{Reason: lathe.FinishStop}, nil)) // an error means that the client has left
	return nil
}
