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

// repeated writes the answer of an earlier run if the request repeats the request of that run. It returns false, and has
// written nothing, if the request needs a new run.
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
		case attached && !e.abandoned(): // the run failed while this request waited for it: this request gets the same failure
			p := problems.Ended(e.res)
			t.permit(e.res, p)
			h.failChat(w, a, p)
			return true
		}
		taken := e.takenOver()
		if len(taken) == 0 { // there is nothing to take over, so no call can be made twice
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

// forget makes the next run of the request replace the record.
func (t *tracked) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.looked, t.known, t.runID = true, t.runID, ""
}

// failChat writes a problem: into the stream if it has begun, else as the response.
func (h *chatHandler) failChat(w http.ResponseWriter, a *chat, p *problem) {
	if out := a.job.out; out != nil && out.Started {
		a.caller.code = p.Code
		_ = out.Write(a.AppendEnd(nil, nil, p)) // an error means that the client has left
		return
	}
	a.Header(w.Header())
	a.caller.fail(w, p)
}

// awaitAttached waits for the end of the active run id and returns it. Meanwhile a client that streams gets keep-alives.
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

// awaitEarlier waits until a run has ended or is suspended, in this process or in another one. While it waits, a run that
// this process executes for another request is not cancelled when the client of that request leaves.
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

// replay writes the answer of a run that has ended and whose client did not receive it.
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

// answerAs prepares the answer as one of the run e, under the given id.
func (a *content) answerAs(ctx context.Context, id runlog.AnswerID, e *earlierRun) {
	a.begin(ctx, id, &a.settings, &a.limits)
	a.base = e.base
}

// takeOver sets the job to a new run that continues e with the messages taken. begun is false if another request has
// already begun that run: then the caller attaches to it. Until the run has begun, a lock prevents other requests of this
// process from beginning it.
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
	a.job.due, a.job.claim = nil, newFirst() // the first event of the run is stored at once: it decides which process continues e
	return true, nil
}

// restart sets the job to a new run again, after the record of another run superseded the first one.
func (a *chat) restart(ctx context.Context) {
	a.in.Run.RunID = a.handler.opts.Engine.NewRunID()
	a.begin(ctx, runlog.AnswerID{Run: a.in.Run.RunID}, &a.settings, &a.limits)
	a.progress, a.last, a.broken, a.feed = progress{}, 0, false, callFeed{}
}

// lost reports whether the run of the job ended because another run answers the request: a run that was recorded first, or
// a run with the same id that another process began to continue an earlier run.
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
