package gateway

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire/uistream"
)

// watchUI tells a run as a chat page's stream, from its beginning or after an event. The id is that of
// a run, or of a conversation: then its newest run is told if that goes on.
func (g *Gateway) watchUI(w http.ResponseWriter, r *http.Request, c *caller) {
	protocol, p := uiProtocol(r)
	if p != nil {
		c.fail(w, p)
		return
	}
	g.watchChat(w, r, c, r.PathValue("id"), protocol, nil)
}

// resumeUI is watchUI for pages of assistant-ui's transport, which name the conversation in a body, and may
// hold a state.
func (g *Gateway) resumeUI(w http.ResponseWriter, r *http.Request, c *caller) {
	body, p := g.readBody(w, r)
	if p != nil {
		c.fail(w, p)
		return
	}
	req, err := uistream.ParseResume(body, g.uiLimits())
	if err != nil {
		c.fail(w, badUI(err))
		return
	}
	g.watchChat(w, r, c, req.ID, uistream.AssistantTransport, req.State)
}

func (g *Gateway) watchChat(w http.ResponseWriter, r *http.Request, c *caller, id string, protocol uistream.Protocol, state *uistream.State) {
	after, p := position(r)
	if p == nil {
		id, p = g.runOfChat(r.Context(), c, id)
	}
	var sub = g.opts.Bus.Subscribe(id)
	var newest int64
	if p == nil && id != "" {
		newest, _, p = g.newest(r.Context(), c, id)
	}
	if p == nil && after > newest && id != "" {
		p = conflict("event_id_ahead", "The run has no such event.")
		p.NewestEvent = newest
	}
	x := &watch{gateway: g, runID: id, sub: sub, follow: "pause", enc: uistream.NewEncoder(protocol, &uistream.Options{Approvals: g.opts.Desk != nil, State: state})}
	defer func() { x.sub.Close() }()
	switch {
	case p != nil:
		c.fail(w, p)
		return
	case id == "":
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusNoContent)
		return
	}
	c.runID = id
	for x.last < after { // what the page has seen, said to nobody
		for e, err := range g.opts.Index.Read(r.Context(), id, x.last) {
			if err != nil {
				c.fail(w, g.runFailed(c, err))
				return
			}
			x.enc.Append(nil, &e)
			_, x.over = e.Data.(*lathe.RunPaused) // as a stream of its own
			if x.last = e.ID; x.last >= after {
				break
			}
		}
	}
	if x.enc.HasEnded() { // it has seen all of it
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusNoContent)
		return
	}
	x.tellUI(w, r, protocol)
}

func (x *watch) tellUI(w http.ResponseWriter, r *http.Request, protocol uistream.Protocol) {
	g := x.gateway
	rc := http.NewResponseController(w)
	x.keepAlive = protocol.AppendKeepAlive
	x.out = &streamWriter{w: w, rc: rc, timeout: g.opts.Limits.WriteTimeout, head: func(h http.Header) {
		for _, kv := range protocol.Headers() {
			h.Set(kv[0], kv[1])
		}
		h.Set("X-Lathe-Run-Id", x.runID)
	}}
	defer func() { _ = rc.SetWriteDeadline(time.Time{}) }() // the connection may be used again
	if m := g.opts.Metrics; m != nil {
		m.AddStreamClients(1)
		defer m.AddStreamClients(-1)
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(g.leaving, cancel)()
	err := x.run(ctx)
	if r.Context().Err() != nil {
		return // nobody is there
	}
	if err != nil {
		x.buf = x.enc.AppendFailure(x.buf, lathe.CodeUnavailable, "the server stops; the run goes on")
	}
	x.buf = x.enc.AppendEnd(x.buf)
	_ = x.flush() // nobody to tell
}

// runOfChat returns the run behind an id: that run, or the newest of a conversation, where it goes on.
func (g *Gateway) runOfChat(ctx context.Context, c *caller, id string) (string, *problem) {
	if strings.HasPrefix(id, "run_") {
		return id, nil
	}
	if len(id) > maxSession {
		return "", badWish("id", "It is no id of a run or a conversation.")
	}
	rows, _, err := g.opts.Index.Runs(ctx, &lathe.RunFilter{SessionID: id, Principal: c.key.Name, Limit: 1})
	if err != nil {
		return "", g.storeFailed(c, err)
	}
	if len(rows) == 0 || rows[0].Status != "running" {
		return "", nil
	}
	return rows[0].RunID, nil
}
