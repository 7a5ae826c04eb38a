package gateway

import (
	"context"
	"net/http"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// A run that asks a person about one call and hands another one over waits for both. The client comes
// back with its result: then it goes on with that run, which may still wait for the person.

// goOn has the job of a request go on with the run that waits for the results that the conversation ends
// with. It is false where the run does not wait for them any more: they begin a run of their own.
func (g *Gateway) goOn(ctx context.Context, a *chat, m *Model, t *keptTurns) (bool, *problem) {
	c := a.caller
	v, p := g.still(ctx, a, t.runID)
	switch {
	case p != nil && p.Code == noRun().Code, v != nil && (v.state.Finished != nil || v.state.Target != a.req.Model):
		return g.letGo(a)
	case p == nil && v.state.Paused == "":
		p = elsewhere()
	}
	if p != nil {
		a.unlock()
		return false, p
	}
	answers := map[string]lathe.Output{}
	for i := range v.state.Open {
		o := &v.state.Open[i]
		if r, ok := answerTo(a.req.Messages, o.ID); ok && v.client[o.ID] {
			answers[o.ID] = lathe.Output{Data: rawjson.AppendQuote(nil, r.Content), Blobs: r.Blobs}
		}
	}
	if len(answers) == 0 {
		return g.letGo(a)
	}
	l, p := c.loopOf(v)
	if p != nil {
		a.unlock()
		return false, p
	}
	a.session, a.base = v.state.Run.SessionID, len(v.state.Messages)
	a.begin(t.runID)
	a.calls = newHandover(a.chunks, a.req.Tools, &m.Settings, &m.Limits)
	a.job = job{loop: l, resume: t.runID, answers: answers, holds: a.holds, note: &waitingNote{g, a.equal}}
	return true, nil
}

// letGo leaves the run alone.
func (g *Gateway) letGo(a *chat) (bool, *problem) {
	a.unlock()
	a.unlock, a.caller.runID = func() {}, ""
	return false, nil
}

// still returns the run once nobody here carries it, and holds its lock.
func (g *Gateway) still(ctx context.Context, a *chat, id string) (*runView, *problem) {
	for {
		unlock, err := g.held.lock(ctx, id)
		if err != nil {
			return nil, &problem{Status: http.StatusRequestTimeout, Code: "client_gone", Message: "The client left."}
		}
		a.unlock = sync.OnceFunc(unlock)
		carried := g.carries(id)
		v, p := g.view(ctx, a.caller, id)
		if p == nil && v.state.Paused == "" && v.state.Finished == nil && !carried { // it may have been gone on with just now
			carried = g.carries(id)
			before := v.state.LastID
			if v, p = g.view(ctx, a.caller, id); p == nil && v.state.LastID > before {
				carried = true
			}
		}
		if p != nil || !carried {
			return v, p
		}
		a.unlock() // it still does what else it was asked for
		_, _ = g.await(ctx, id)
	}
}

// answerTo returns what the last messages say came of a call.
func answerTo(messages []lathe.Message, id string) (lathe.ToolResult, bool) {
	for i := len(messages) - 1; i >= 0 && messages[i].Role == lathe.RoleTool; i-- {
		if answered(&messages[i]) == id {
			return messages[i].Parts[0].(lathe.ToolResult), true
		}
	}
	return lathe.ToolResult{}, false
}

// An onEvent is a sink that does the same at each event.
type onEvent func()

// Emit implements [lathe.Sink].
func (f onEvent) Emit(context.Context, lathe.Event) { f() }
