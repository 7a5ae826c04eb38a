package server

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	problems "github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/gateway/runlog"
	"github.com/lathe-run/lathe/internal/gateway/stream"
)

// repeated answers a request that repeats an earlier one. It reports false where the request needs a run of its own.
func (h *chatHandler) repeated(w http.ResponseWriter, r *http.Request, a *chat) bool {
	t, c := a.job.track, a.caller
	if t == nil || t.fresh || a.job.resume != "" || a.job.follow != "" {
		return false
	}
	for range maxContinued {
		e, p := h.earlier.findEarlier(r.Context(), a)
		if e == nil && p == nil {
			return false
		}
		attached := p == nil && !e.over
		if attached {
			e, p = h.awaitAttached(w, r, a, e.id)
		}
		switch {
		case r.Context().Err() != nil:
			c.code = "client_gone"
			return true
		case p != nil:
			h.failChat(w, a, p)
			return true
		case e.completed():
			h.replay(w, r, a, e)
			return true
		case attached && !e.abandoned(): // the failure is that of this request, too
			p := problems.Ended(e.res)
			t.permit(e.res, p)
			h.failChat(w, a, p)
			return true
		}
		taken := e.takenOver()
		if len(taken) == 0 { // it did nothing that could be repeated
			t.forget()
			return false
		}
		begun, p := h.takeOver(r.Context(), a, e, taken)
		if p != nil {
			h.failChat(w, a, p)
			return true
		}
		if begun && !h.answerChat(w, r, a) {
			return true
		}
	}
	h.failChat(w, a, repeatLimit())
	return true
}

// forget has the run of the request recorded anew.
func (t *tracked) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.looked, t.known, t.runID = true, t.runID, ""
}

// failChat answers with a problem, in the stream where it has begun.
func (h *chatHandler) failChat(w http.ResponseWriter, a *chat, p *problem) {
	if out := a.job.out; out != nil && out.Started {
		a.caller.code = p.Code
		_ = out.Write(a.AppendEnd(nil, nil, p)) // the client left
		return
	}
	a.Header(w.Header())
	a.caller.fail(w, p)
}

// awaitAttached waits for the end of an active run. A client that streams gets comments meanwhile.
func (h *chatHandler) awaitAttached(w http.ResponseWriter, r *http.Request, a *chat, id string) (e *earlierRun, p *problem) {
	a.caller.runID = id
	if !a.req.Stream {
		return h.earlier.awaitEarlier(r.Context(), a, id)
	}
	ctx, cancel := context.WithCancel(r.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		e, p = h.earlier.awaitEarlier(ctx, a, id)
	}()
	defer func() {
		cancel()
		<-done
	}()
	if a.job.out == nil {
		a.job.out = h.newStreamWriter(w, a)
	}
	tick := time.NewTicker(h.opts.Limits.KeepAlive)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return e, p
		case <-tick.C:
			if err := a.job.out.Write(stream.AppendKeepAlive(nil, a)); err != nil {
				return nil, clientGone()
			}
		}
	}
}

// awaitEarlier waits until a run is over, here or in another process. While it waits, a run that a request of this
// process executes does not end with the client of that request.
func (er *earlierRuns) awaitEarlier(ctx context.Context, a *chat, id string) (*earlierRun, *problem) {
	if f := er.inflight.find(id); f != nil {
		if leave := f.join(); leave != nil {
			defer leave()
		}
	}
	notified, remove := er.waiters.channel(id)
	defer remove()
	for {
		e, p := er.readEarlier(ctx, a, id)
		if p != nil || e.over {
			return e, p
		}
		if er.executes(id) {
			_, _ = er.waitRun(ctx, id)
		} else if p := pause(ctx, notified, er.opts.Limits.Poll); p != nil {
			return nil, p
		}
		if ctx.Err() != nil {
			return nil, clientGone()
		}
	}
}

// replay answers with what a run came to whose client did not receive it.
func (h *chatHandler) replay(w http.ResponseWriter, r *http.Request, a *chat, e *earlierRun) {
	t := a.job.track
	a.caller.runID, a.continues = e.id, e.continues
	a.answerAs(r.Context(), runlog.AnswerID{Run: e.id, After: e.after}, e)
	a.calls.turn = lastTurn(e.res)
	a.before = replayed{afterMessages(e.res.History, e.base), e.res.History, a.handedOver(e.res)}
	out := a.job.out
	if out == nil {
		out = h.newStreamWriter(w, a.enc)
	}
	defer out.End()
	if err := t.deliver(r.Context(), e.res, func() error { return out.Write(a.enc.AppendEnd(nil, e.res, nil)) }); err != nil {
		a.caller.code = "client_gone"
	}
}

// answerAs has the answer be one of a run.
func (a *content) answerAs(ctx context.Context, id runlog.AnswerID, e *earlierRun) {
	a.begin(ctx, id, &a.settings, &a.limits)
	a.base = e.base
}

// takeOver makes the job of the request a run that continues e. It reports false where another request has begun that
// run: then this one attaches to it. Until the run has begun no other request of this process may begin it.
func (h *chatHandler) takeOver(ctx context.Context, a *chat, e *earlierRun, taken []lathe.Message) (begun bool, p *problem) {
	next := continuation(e.id)
	unlock, p := h.locks.lock(ctx, "continue "+e.id)
	if p != nil {
		return false, p
	}
	if has, p := h.earlier.hasRun(ctx, a.caller, next); has || p != nil {
		unlock()
		return false, p
	}
	a.unlock = sync.OnceFunc(unlock)
	in := &a.in
	in.Messages = slices.Concat(e.res.History[:e.base], taken)
	in.Continues, in.TakenOver, in.Run.RunID = e.id, len(taken), next
	a.continues = e.id
	if t := a.job.track; t != nil {
		t.continued, t.failed = e.continued+1, ""
		if p := problems.Failure(e.res); p != nil {
			t.failed = p.Code
		}
	}
	a.answerAs(ctx, runlog.AnswerID{Run: next}, e)
	a.before = replayed{messages: taken, history: in.Messages}
	a.job.due, a.job.claim = nil, newFirst() // its first event is the claim, which is stored at once
	return true, nil
}

// restart makes the job of the request a run of its own once more, after another run was recorded first.
func (a *chat) restart(ctx context.Context) {
	a.in.Run.RunID = a.handler.opts.Engine.NewRunID()
	a.begin(ctx, runlog.AnswerID{Run: a.in.Run.RunID}, &a.settings, &a.limits)
	a.progress, a.last, a.broken, a.feed = progress{}, 0, false, callFeed{}
}

// lost reports whether the run of the job has ended because another run answers the request: one that was recorded before
// it, or one that another process has begun, where the run was to continue an earlier one.
func (j *job) lost() bool {
	if j.track.lost() {
		return true
	}
	if j.claim == nil {
		return false
	}
	select {
	case <-j.claim.started:
		return lathe.CodeOf(j.claim.err) == lathe.CodeConflict
	default:
		return false
	}
}
