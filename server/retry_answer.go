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
	"github.com/lathe-run/lathe/internal/runinput"
)

// An answerer answers a tracked request in the form of its client.
type answerer interface {
	// replay writes the answer of a run that has ended or is suspended and whose client did not receive it.
	replay(e *earlierRun)
	// takeOver makes the job of the request a new run that continues e with the messages taken, by [earlierRuns.continueRun].
	// begun is false if another request has already begun that run.
	takeOver(e *earlierRun, taken []lathe.Message) (begun bool, p *problem)
	// execute executes the job and writes the answer. lost is that of [runStarter.stream].
	execute() (lost bool)
}

// answerRepeated writes the answer of an earlier run if the request of j repeats the request of that run. It returns false, and has
// written nothing of an answer, if the request needs a new run.
func (er *earlierRuns) answerRepeated(w http.ResponseWriter, r *http.Request, j *job, enc stream.Encoder, answer answerer) bool {
	t := j.track
	if t == nil || t.requiresNew || j.resume.id != "" || j.follow.id != "" {
		return false
	}
	fail := func(p *problem) bool {
		failStream(w, t.caller, j, enc, p)
		return true
	}
	for range maxContinued {
		e, p := er.findEarlier(r.Context(), t)
		if e == nil && p == nil {
			return false
		}
		attached := p == nil && !e.over // the run is active, so this request waits for its end
		if attached {
			e, p = er.awaitAttached(w, r, j, enc, e.id)
		}
		switch {
		case r.Context().Err() != nil:
			t.caller.code = "client_gone"
			return true
		case p != nil:
			return fail(p)
		case e.completed():
			answer.replay(e)
			return true
		case attached && !e.abandoned(): // the run failed while this request waited for it: this request gets the same failure
			p := problems.Ended(e.res)
			t.adviseRetry(e.res, p)
			return fail(p)
		}
		taken := e.takenOver()
		if len(taken) == 0 { // there is nothing to take over, so no call can be made twice
			t.forget()
			return false
		}
		begun, p := answer.takeOver(e, taken)
		if p != nil {
			return fail(p)
		}
		if begun && !answer.execute() {
			return true
		}
		// Another request has begun the continuation, or its record was first: look again.
	}
	return fail(repeatLimit())
}

// failStream writes a problem: into the stream of j if it has begun, else as the response.
func failStream(w http.ResponseWriter, c *caller, j *job, enc stream.Encoder, p *problem) {
	if j.out != nil && j.out.Started {
		c.code = p.Code
		_ = j.out.Write(enc.AppendEnd(nil, nil, p)) // an error means that the client has left
		return
	}
	enc.Header(w.Header())
	c.fail(w, p)
}

// awaitAttached waits for the end of the active run id and returns it. Meanwhile a client that streams gets keep-alives.
func (er *earlierRuns) awaitAttached(w http.ResponseWriter, r *http.Request, j *job, enc stream.Encoder, id string) (e *earlierRun, p *problem) {
	j.track.caller.runID = id
	if isWhole(enc) {
		return er.awaitEarlier(r.Context(), j.track, id)
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		e, p = er.awaitEarlier(ctx, j.track, id)
	}()
	if j.out == nil {
		j.out = er.newStreamWriter(w, enc)
	}
	tick := time.Tick(er.opts.Limits.KeepAlive)
	for {
		select {
		case <-done:
			return e, p
		case <-tick:
			if err := j.out.Write(stream.AppendKeepAlive(nil, enc)); err != nil {
				cancel()
				<-done // the goroutine uses the caller of the request
				return nil, clientGone()
			}
		}
	}
}

// awaitEarlier waits until a run has ended or is suspended, in this process or in another one. While it waits, a run that
// this process executes for another request is not cancelled when the client of that request leaves.
func (er *earlierRuns) awaitEarlier(ctx context.Context, t *tracked, id string) (*earlierRun, *problem) {
	if f := er.inflight.find(id); f != nil {
		if leave := f.join(); leave != nil {
			defer leave()
		}
	}
	notified, remove := er.waiters.channel(id)
	defer remove()
	for {
		e, p := er.readEarlier(ctx, t, id)
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

// A chatAnswer answers one request of a chat.
type chatAnswer struct {
	*chatHandler
	w    http.ResponseWriter
	r    *http.Request
	chat *chat
}

func (ca *chatAnswer) execute() (lost bool) {
	return ca.stream(ca.w, ca.r, ca.chat.caller, &ca.chat.job, ca.chat.enc)
}

func (ca *chatAnswer) replay(e *earlierRun) {
	a := ca.chat
	a.caller.runID, a.continues = e.id, e.continues
	a.answerAs(ca.r.Context(), runlog.AnswerID{Run: e.id, After: e.after}, e)
	a.calls.turn = lastTurn(e.res)
	a.before = replayed{afterMessages(e.res.History, e.base), e.res.History, a.handedOver(e.res)}
	ca.earlier.deliver(ca.w, ca.r, &a.job, a.enc, e, func() []byte { return a.enc.AppendEnd(nil, e.res, nil) })
}

func (a *content) answerAs(ctx context.Context, id runlog.AnswerID, e *earlierRun) {
	a.begin(ctx, id, &a.settings, &a.limits)
	a.base = e.base
}

func (ca *chatAnswer) takeOver(e *earlierRun, taken []lathe.Message) (begun bool, p *problem) {
	a, ctx := ca.chat, ca.r.Context()
	unlock, p := ca.earlier.continueRun(ctx, &a.job, e, taken)
	if unlock == nil {
		return false, p
	}
	a.unlock, a.continues = unlock, e.id
	a.answerAs(ctx, runlog.AnswerID{Run: a.in.Run.RunID}, e)
	a.before = replayed{messages: taken, history: a.in.Messages}
	return true, nil
}

// deliver writes the whole answer of e, which encode returns, as the answer to the tracked request of j.
func (er *earlierRuns) deliver(w http.ResponseWriter, r *http.Request, j *job, enc stream.Encoder, e *earlierRun, encode func() []byte) {
	out := j.out
	if out == nil {
		out = er.newStreamWriter(w, enc)
	}
	defer out.End()
	if err := j.track.deliver(r.Context(), e.res, func() error { return out.Write(encode()) }); err != nil {
		j.track.caller.code = "client_gone"
	}
}

// continueRun sets the job to a new run that continues e with the messages taken. unlock is nil if another request has
// already begun that run: then the caller attaches to it. Until unlock is called, once the run has begun, a lock prevents
// other requests of this process from beginning it. unlock may be called twice.
func (er *earlierRuns) continueRun(ctx context.Context, j *job, e *earlierRun, taken []lathe.Message) (unlock func(), p *problem) {
	next := continuation(e.id)
	unlock, p = er.locks.lock(ctx, "continue "+e.id)
	if p != nil {
		return nil, p
	}
	if has, p := er.hasRun(ctx, j.track.caller, next); has || p != nil {
		unlock()
		return nil, p
	}
	j.in.Messages = slices.Concat(e.res.History[:e.base], taken)
	j.in.Run.RunID = next
	extra := runinput.Of(j.in)
	extra.Continues, extra.TakenOver = e.id, len(taken)
	j.track.continued, j.track.failed = e.continued+1, ""
	if p := problems.Failure(e.res); p != nil {
		j.track.failed = p.Code
	}
	j.due, j.claim = nil, newFirst() // the first event of the run is stored at once: it decides which process continues e
	return sync.OnceFunc(unlock), nil
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
