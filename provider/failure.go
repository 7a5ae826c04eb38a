package provider

import (
	"errors"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/sse"
	"github.com/lathe-run/lathe/internal/wire"
)

// endWithCodecError ends an answer for which the codec returned err; body is the event or the body that it read.
func (a *attempt) endWithCodecError(err error, body []byte) error {
	var api *wire.APIError
	if errors.As(err, &api) && a.isUnreadableCall(api) {
		a.endWithUnreadableCall()
		return nil
	}
	return a.fromCodec(err, body)
}

// isUnreadableCall reports whether the server's error says that it could not parse the call that the model wrote, and the model may write
// it again. If the client executes all calls, it receives the error instead, and so does a request without tools.
func (a *attempt) isUnreadableCall(api *wire.APIError) bool {
	req := &a.call.scratch
	_, can := a.answer.(lenient)
	return can && a.relay == nil && !req.ClientCalls && len(req.Tools) > 0 && req.ToolChoice.Mode != lathe.ChoiceNone && isOutputFault(api)
}

// endWithUnreadableCall ends the answer with an unreadable call, which is no failure of the attempt.
func (a *attempt) endWithUnreadableCall() {
	deltas, fin := a.answer.(lenient).Unreadable(nil)
	if a.yieldDeltas(deltas) {
		a.finish = fin
		fin.UpstreamRequestID = a.requestID
	}
}

// fromCodec converts an error of the codec to the failure of the attempt: an error that the server reported in its answer, an answer above
// a limit, or a response that is not an answer of the wire.
func (a *attempt) fromCodec(err error, body []byte) error {
	var api *wire.APIError
	if errors.As(err, &api) {
		a.refusal = api
		e := a.call.chat.fromInBand(api, body)
		if e.Status == 0 {
			e.Status = a.status
		}
		return e
	}
	if setting := limitOf(err); setting != "" {
		return a.call.chat.protocol(a.status, "the answer is above "+setting, err)
	}
	return a.call.chat.protocol(a.status, "the response is not "+answers[a.call.chat.wire.Wire()], err)
}

// limitOf returns the setting of the limit that err exceeds; "" if err is another error.
func limitOf(err error) string {
	switch {
	case errors.Is(err, wire.ErrTooManyCalls):
		return "max_answer_calls"
	case errors.Is(err, wire.ErrTooManyBytes):
		return "max_answer_bytes"
	case errors.Is(err, sse.ErrLineTooLong):
		return "max_line_bytes"
	case errors.Is(err, sse.ErrEventTooLong), errors.Is(err, errWholeTooLarge):
		return "max_event_bytes"
	case errors.Is(err, errTooLarge):
		return "max_response_bytes"
	}
	return ""
}

// fromBody converts an error of reading the body: a response above a limit is a protocol error, other errors are returned unchanged.
func (a *attempt) fromBody(err error) error {
	if setting := limitOf(err); setting != "" {
		return a.call.chat.protocol(a.status, "the response is above "+setting, err)
	}
	if errors.Is(err, errEncoding) {
		return a.call.chat.protocol(a.status, err.Error(), err)
	}
	return err
}
