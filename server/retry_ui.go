package server

import (
	"net/http"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire/uistream"
	"github.com/lathe-run/lathe/store"
)

// trackUI does for a request of a chat page what [planner.trackChat] does for a chat. All events of such a run are stored at
// once, so the run is recorded at its start. A request with a decision is not tracked: a decision is never applied twice, see
// [uiHandler.staleApproval].
func (h *uiHandler) trackUI(r *http.Request, u *uiChat) *problem {
	c := u.caller
	requiresNew, p := asksAnew(r)
	if p != nil {
		return p
	}
	allow, p := c.toolsFor(u.options)
	if p != nil || h.opts.Limits.RetryWindow < 0 || u.req.Last != nil && len(u.req.Last.Approvals) > 0 || !c.offersWrites(&lathe.Settings{}, allow) {
		return p
	}
	u.job.track = &tracked{earlier: h.earlier, caller: c, messages: u.req.Messages, digest: store.RequestDigest(u.digest()), durable: true, requiresNew: requiresNew}
	return nil
}

// digest returns the digest of the request. A page that sends its messages again says so in trigger and messageId, and AG-UI
// gives each request a runId of its own: these members do not count.
func (u *uiChat) digest() requestSum {
	return sumBody([]string{u.caller.key.Name, "/api/chat"}, u.caller.body, func(name, v []byte) []byte {
		switch rawjson.Text(name) {
		case "trigger", "messageId", "runId":
			return nil
		}
		return v
	})
}

// A uiAnswer answers one request of a chat page.
type uiAnswer struct {
	*uiHandler
	w    http.ResponseWriter
	r    *http.Request
	chat *uiChat
}

func (ua *uiAnswer) execute() (lost bool) {
	defer ua.chat.unlock()
	return ua.stream(ua.w, ua.r, ua.chat.caller, &ua.chat.job, ua.chat)
}

// replay streams the log of the run: from its beginning, or from the point at which it waited for the results of the request.
func (ua *uiAnswer) replay(e *earlierRun) {
	u := ua.chat
	u.caller.runID = e.id
	last := u.req.Last
	if e.after > 0 && last != nil {
		u.encode.MessageID = last.MessageID
		u.encode.Open = slices.DeleteFunc(slices.Clone(last.Calls), func(o uistream.OpenCall) bool {
			_, answered := last.Results[o.ID]
			return !answered
		})
	}
	u.begin(job{follow: following{e.id, e.after}})
	if ua.opts.Index != nil {
		ua.execute()
		return
	}
	ua.earlier.deliver(ua.w, ua.r, &u.job, u, e, func() []byte {
		said, res := afterMessages(e.res.History, e.base), e.res
		b := u.enc.Append(nil, &event.Event{RunID: e.id, RequestID: u.caller.requestID, Data: &event.RunStarted{Messages: said, TakenOver: len(said)}})
		return u.enc.Append(b, &event.Event{RunID: e.id, Data: &event.RunFinished{Reason: res.Reason, Status: res.Reason.Status(), Answer: res.Answer,
			Usage: res.Usage, Turns: len(res.Trace), ToolCalls: res.ToolCalls}})
	})
}

// takeOver implements [answerer]. The stream shows the messages taken before those of the new run.
func (ua *uiAnswer) takeOver(e *earlierRun, taken []lathe.Message) (begun bool, p *problem) {
	u := ua.chat
	if e.after > 0 && u.req.Last != nil {
		u.encode.MessageID = u.req.Last.MessageID
	}
	if p := ua.planUI(ua.r.Context(), u.caller, u); p != nil {
		return false, p
	}
	unlock, p := ua.earlier.continueRun(ua.r.Context(), &u.job, e, taken)
	if unlock == nil {
		return false, p
	}
	u.unlock = unlock
	return true, nil
}
