package server

import (
	"bytes"
	"net/http"
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// handler returns the handler that calls serve with the protocol.
func (pr *protocol) handler(serve func(http.ResponseWriter, *http.Request, *caller, *protocol) *problem) handler {
	return func(w http.ResponseWriter, r *http.Request, c *caller) *problem { return serve(w, r, c, pr) }
}

// answer reads a request, plans its run and writes the answer: that of an earlier run if the request repeats one, else that
// of its own run. If another run takes precedence, it tries again, at most maxContinued times.
func (h *chatHandler) answer(w http.ResponseWriter, r *http.Request, c *caller, pr *protocol) *problem {
	a, p := h.readChat(r, c, pr)
	if p != nil {
		return p
	}
	defer func() { a.unlock() }() // [chatAnswer.takeOver] replaces a.unlock
	if a.preparesOnly {
		return h.warmUp(w, a)
	}
	x := &chatAnswer{h, w, r, a}
	for range maxContinued {
		if h.earlier.answerRepeated(w, r, &a.job, a.enc, x) || !x.execute() {
			return nil
		}
		a.restart(r.Context())
	}
	failStream(w, c, &a.job, a.enc, repeatLimit())
	return nil
}

// A wholeAnswer is the encoder of an answer that is not streamed: it is written in one piece after the run has ended.
type wholeAnswer struct {
	*chat
	size   int // of the body in bytes; 0: the body is not encoded yet
	reason lathe.Reason
}

// AppendEvent implements [stream.Encoder]. It appends nothing: the answer is encoded by AppendEnd.
func (a *wholeAnswer) AppendEvent(dst []byte, e *event.Event) []byte {
	a.unlock()
	a.last = max(a.last, e.ID)
	if d, ok := e.Data.(*event.ModelCallFinished); ok {
		a.turnEnd = d.Message
	}
	return dst
}

// AppendRaw implements [stream.RawEncoder]. It appends nothing. If the response of the model server can be returned to the client
// unchanged, AppendRaw stores it for AppendEnd.
func (a *wholeAnswer) AppendRaw(dst []byte, raw *lathe.Raw) []byte {
	a.job.objects.addRelayed(raw.Bytes)
	if raw.Sound {
		a.whole = bytes.Clone(raw.Bytes)
	}
	return dst
}

// AppendKeepAlive appends nothing: a JSON body has no place for a keep-alive.
func (*wholeAnswer) AppendKeepAlive(dst []byte) []byte { return dst }

// AppendEnd implements [stream.Encoder]. It returns the whole body.
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

// Header implements [stream.Encoder]. If the body is encoded, Header sets its type and length; if it is not, a problem is
// written instead.
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
