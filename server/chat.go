package server

import (
	"bytes"
	"net/http"
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// serve returns the handler of a protocol's requests for an answer: one run, stream or not.
func (h *chatHandler) serve(pr *protocol) handler {
	return func(w http.ResponseWriter, r *http.Request, c *caller) *problem { return h.answer(w, r, c, pr) }
}

func (h *chatHandler) answer(w http.ResponseWriter, r *http.Request, c *caller, pr *protocol) *problem {
	a, p := h.readChat(r, c, pr)
	if p != nil {
		return p
	}
	defer func() { a.unlock() }()
	if a.warm {
		return h.warmUp(w, a)
	}
	for range maxContinued {
		if h.repeated(w, r, a) || !h.answerChat(w, r, a) {
			return nil
		}
		a.restart(r.Context())
	}
	h.failChat(w, a, repeatLimit())
	return nil
}

// answerChat runs the job of a and answers with what it comes to. It reports true, and has answered nothing, where
// another run answers the request: see [job.lost].
func (h *chatHandler) answerChat(w http.ResponseWriter, r *http.Request, a *chat) (lost bool) {
	return h.stream(w, r, a.caller, &a.job, a.enc)
}

// A wholeAnswer is the encoder of an answer that is not streamed: it is written in one piece, when its run is over.
type wholeAnswer struct {
	*chat
	size   int // of the body; 0: there is none yet
	reason lathe.Reason
}

// AppendEvent implements [stream.Encoder].
func (a *wholeAnswer) AppendEvent(dst []byte, e *event.Event) []byte {
	a.unlock()
	a.last = max(a.last, e.ID)
	return dst
}

// AppendRaw implements [stream.RawEncoder]: it keeps the answer of the model server, where it can be given as it is.
func (a *wholeAnswer) AppendRaw(dst []byte, raw *lathe.Raw) []byte {
	a.job.objects.relayed(raw.Bytes)
	if raw.Sound {
		a.whole = bytes.Clone(raw.Bytes)
	}
	return dst
}

// AppendKeepAlive appends nothing: a body of JSON has no room for it.
func (*wholeAnswer) AppendKeepAlive(dst []byte) []byte { return dst }

// AppendEnd implements [stream.Encoder].
func (a *wholeAnswer) AppendEnd(_ []byte, res *event.Result, _ *problem) []byte {
	body := a.whole
	if a.asItCame(res) {
		a.noteReasoning(res)
	} else {
		body = a.appendWhole(make([]byte, 0, 1<<10), res)
	}
	a.size, a.reason = len(body), res.Reason
	return body
}

// Header implements [stream.Encoder].
func (a *wholeAnswer) Header(h http.Header) {
	a.chat.Header(h)
	if a.size == 0 {
		return
	}
	h.Del("X-Accel-Buffering")
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(a.size))
	if a.reason == lathe.ReasonInvalidAnswer || a.reason == lathe.ReasonEmptyAnswer {
		h.Set("X-Lathe-Reason", string(a.reason))
	}
}
