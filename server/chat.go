package server

import (
	"net/http"
	"strconv"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	problems "github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/gateway/stream"
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
	c := a.caller
	if a.req.Stream {
		return h.stream(w, r, c, &a.job, a)
	}
	res, p := h.whole(r, c, a)
	switch {
	case r.Context().Err() != nil:
		c.code = "client_gone"
		return false
	case a.job.lost():
		return true
	case p != nil:
		c.fail(w, p)
		return false
	}
	p = problems.Ended(res)
	if p == nil {
		p = a.Withdrawn(res)
	}
	if p != nil {
		a.job.track.permit(res, p)
		a.Header(w.Header())
		c.fail(w, p)
		return false
	}
	h.writeWhole(w, r, a, res)
	return false
}

// writeWhole writes an answer in one piece.
func (h *chatHandler) writeWhole(w http.ResponseWriter, r *http.Request, a *chat, res *event.Result) {
	a.Header(w.Header())
	if res.Reason == lathe.ReasonInvalidAnswer || res.Reason == lathe.ReasonEmptyAnswer {
		w.Header().Set("X-Lathe-Reason", string(res.Reason))
	}
	body := a.whole
	if a.asItCame(res) {
		a.noteReasoning(res)
	} else {
		body = a.appendWhole(stream.TakeBuffer(), res)
	}
	header := w.Header()
	header["Content-Type"], header["Cache-Control"] = typeJSON, uncached
	rc := http.NewResponseController(w)
	_ = rc.SetWriteDeadline(time.Now().Add(h.opts.Limits.WriteTimeout)) // a test's writer has none
	if err := a.job.track.deliver(r.Context(), res, func() error { return writeAll(w, rc, body, a.job.track.recorded()) }); err != nil {
		a.caller.code = "client_gone"
	} else { // a write that failed may still read the body
		a.whole = nil
		stream.GiveBack(body)
	}
	_ = rc.SetWriteDeadline(time.Time{})
}

// writeAll writes a body. With flush it returns once the body is on its way to the client.
func writeAll(w http.ResponseWriter, rc *http.ResponseController, body []byte, flush bool) error {
	if flush {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	if _, err := w.Write(body); err != nil || !flush {
		return err
	}
	return rc.Flush()
}

// whole returns what the run of a came to, for a client that is shown nothing before. It returns early when the
// client leaves.
func (h *chatHandler) whole(r *http.Request, c *caller, a *chat) (*event.Result, *problem) {
	var res *event.Result
	if !a.job.detach && a.job.follow == "" && a.job.stepped == nil {
		res = h.runInline(r.Context(), c, &a.job, onEvent(a.unlock))
	} else {
		f, leave, p := h.start(r.Context(), c, &a.job, nil, onEvent(a.unlock))
		if p != nil {
			return nil, p
		}
		defer leave()
		if res, p = h.waitFor(r, f); res == nil {
			return nil, p
		}
	}
	for {
		hold := min(h.holdFor(c, &a.job, res), maxWholeHold)
		if hold == 0 {
			return res, nil
		}
		v, p := h.view(r.Context(), c, c.runID)
		if p != nil {
			return nil, p
		}
		if v.State.Finished != nil { // meanwhile
			return v.Result(), nil
		}
		f, leave := h.follow(r.Context(), c, c.runID, v.State.LastID, hold, nil, nil)
		before := v.State.LastID
		next, p := h.waitFor(r, f)
		leave()
		if next == nil {
			return nil, p
		}
		if v, p = h.view(r.Context(), c, c.runID); p != nil || v.State.LastID == before { // no approval was decided in the meantime
			return next, p
		}
		res = next
	}
}

// waitFor waits until the inflightRun is over. The result is nil where the client leaves before that, or the server stops.
func (ex *runStarter) waitFor(r *http.Request, f *inflightRun) (*event.Result, *problem) {
	select {
	case <-f.over:
		return f.res, nil
	case <-r.Context().Done():
		return nil, nil
	case <-ex.stopped.Done(): // it is left for a later process
		return nil, problems.FailureFor(lathe.ReasonInterrupted)
	}
}
