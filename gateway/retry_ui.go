package gateway

import (
	"net/http"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire/uistream"
)

// trackUI has a repetition of the request of a page looked for, unless no tool that may write is offered, or the window
// is closed. A page that sends its messages again says so in trigger and messageId, and gives each run of AG-UI an id of
// its own: they do not make another request of it.
func (g *Gateway) trackUI(r *http.Request, u *uiChat, body []byte) *problem {
	fresh, p := asksAnew(r)
	if p != nil {
		return p
	}
	c := u.caller
	allow, p := c.toolsFor(u.wanted, "lathe")
	if p != nil {
		return p
	}
	if g.opts.Limits.RetryWindow < 0 || !c.offersWrites(&lathe.Settings{}, allow) {
		return nil
	}
	sum := sumRequest("/api/chat\x00"+c.key.Name, body, "trigger", "messageId", "runId")
	u.track = &tracked{gateway: g, caller: c, messages: u.req.Messages, digest: lathe.RequestDigest(sum), arrived: c.arrived,
		mayWrite: c.setup.mayWrite,
		durable:  u.wanted.detach || u.req.Last != nil && len(u.req.Last.Results) > 0, fresh: fresh}
	return nil
}

// repeatedUI answers a request of a page that repeats an earlier one. It reports false where the request needs a run of
// its own. An approval is never taken twice: see [Gateway.staleApproval].
func (g *Gateway) repeatedUI(w http.ResponseWriter, r *http.Request, u *uiChat) bool {
	t, c := u.track, u.caller
	if t == nil || t.fresh || u.req.Last != nil && len(u.req.Last.Approvals) > 0 {
		return false
	}
	for range maxContinued {
		e, p := g.findEarlier(r.Context(), t)
		if e != nil && !e.over && g.opts.Index == nil { // there is no log to follow
			c.runID = e.id
			e, p = g.awaitEarlier(r.Context(), t, e.id)
		}
		switch {
		case r.Context().Err() != nil:
			c.code = "client_gone"
			return true
		case p != nil:
			c.fail(w, p)
			return true
		case e == nil:
			return false
		case !e.over || e.completed():
			g.replayUI(w, r, u, e)
			return true
		}
		taken := e.takenOver()
		if len(taken) == 0 { // it did nothing that could be repeated
			t.forget()
			return false
		}
		if p := g.planUI(c, u); p != nil {
			c.fail(w, p)
			return true
		}
		u.job.track = t
		unlock, p := g.continueRun(r.Context(), &u.job, e, taken)
		if p != nil {
			c.fail(w, p)
			return true
		}
		if unlock == nil {
			continue
		}
		u.unlock = unlock
		if !g.streamUI(w, r, u) {
			return true
		}
		unlock()
	}
	c.fail(w, repeatLimit())
	return true
}

// replayUI streams an earlier run: its log from the beginning, or from the results that the request brought, until it
// ends or waits. An active run does not end with the client that began it while this one follows it.
func (g *Gateway) replayUI(w http.ResponseWriter, r *http.Request, u *uiChat, e *earlierRun) {
	u.caller.runID = e.id
	if g.opts.Index == nil {
		u.enc = uistream.NewEncoder(u.protocol, &u.encode)
		said := afterMessages(e.res.History, e.base)
		b := u.enc.Append(nil, &lathe.Event{RunID: e.id, RequestID: u.caller.requestID, Data: &lathe.RunStarted{Messages: said, TakenOver: len(said)}})
		b = u.enc.Append(b, &lathe.Event{RunID: e.id, Data: &lathe.RunFinished{Reason: e.res.Reason, Status: e.res.Reason.Status(), Answer: e.res.Answer}})
		out := g.newStreamWriter(w, u)
		if err := u.track.deliver(r.Context(), e.res, func() error { return out.write(b) }); err != nil {
			u.caller.code = "client_gone"
		}
		return
	}
	if f := g.flying.find(e.id); f != nil {
		if leave := f.join(); leave != nil {
			defer leave()
		}
	}
	u.job = job{follow: e.id, track: u.track}
	if len(u.req.Messages) > 0 && u.req.Messages[len(u.req.Messages)-1].Role == lathe.RoleTool {
		u.job.after = e.handed
	}
	g.streamUI(w, r, u)
}
