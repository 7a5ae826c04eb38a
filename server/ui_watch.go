package server

import (
	"context"
	"net/http"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/wire/uistream"
	"github.com/lathe-run/lathe/store"
)

// watchUI handles GET /api/chat/{id}/stream: it streams a run in the protocol of a chat page, from its beginning or after
// an event. The id is that of a run or of a session; for a session watchUI streams its newest run if that run is in
// progress.
func (h *uiHandler) watchUI(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	protocol, p := uiProtocol(r)
	if p != nil {
		return p
	}
	return h.watchChat(w, r, c, r.PathValue("id"), protocol, nil)
}

// resumeUI handles POST /api/chat/resume. It does what watchUI does for pages with the transport of assistant-ui, which
// name the session in a body that may also contain a state.
func (h *uiHandler) resumeUI(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	req, err := uistream.ParseResume(c.body, h.uiLimits())
	if err != nil {
		return badUI(err)
	}
	return h.watchChat(w, r, c, req.ID, uistream.AssistantTransport, req.State)
}

// watchChat streams a run to a chat page. id is that of a run or of a session. It responds with 204 if there is nothing to
// stream.
func (h *uiHandler) watchChat(w http.ResponseWriter, r *http.Request, c *caller, id string, protocol uistream.Protocol, state *uistream.State) *problem {
	after, p := position(r)
	if p == nil {
		id, p = h.runOfChat(r.Context(), c, id)
	}
	var sub = h.opts.Bus.Subscribe(id)
	var newest int64
	if p == nil && id != "" {
		newest, _, p = h.newest(r.Context(), c, id)
	}
	if p == nil && after > newest && id != "" {
		p = conflict("event_id_ahead", "The run has no such event.")
		p.NewestEvent = newest
	}
	x := &watch{views: h.runViews, runID: id, sub: sub, follow: "pause", enc: uistream.NewEncoder(protocol, &uistream.Options{Approvals: h.opts.Approvals != nil, State: state})}
	defer func() { x.sub.Close() }()
	if p != nil {
		return p
	}
	if id == "" {
		return answerNothing(w)
	}
	c.runID = id
	for x.last < after { // the encoder must read the events that the page has received; their output is discarded
		for e, err := range h.opts.Index.Read(r.Context(), id, x.last) {
			if err != nil {
				return h.runFailed(c, err)
			}
			x.enc.Append(nil, &e)
			_, x.over = e.Data.(*event.RunPaused) // the page reads the events after a pause as a separate stream
			if x.last = e.ID; x.last >= after {
				break
			}
		}
	}
	if x.enc.HasEnded() { // the page has received the whole run
		return answerNothing(w)
	}
	x.tellUI(w, r, protocol)
	return nil
}

// setHeaders sets the response headers of a protocol for chat pages.
func setHeaders(h http.Header, protocol uistream.Protocol) {
	for _, kv := range protocol.Headers() {
		h.Set(kv[0], kv[1])
	}
}

// tellUI writes the events of the run until it has ended or is suspended, and the end of the stream.
func (x *watch) tellUI(w http.ResponseWriter, r *http.Request, protocol uistream.Protocol) {
	x.keepAlive = protocol.AppendKeepAlive
	defer x.open(w, func(h http.Header) { setHeaders(h, protocol) })()
	err := x.run(r.Context())
	if r.Context().Err() != nil {
		return // the client has disconnected
	}
	if err != nil {
		x.buf = x.enc.AppendFailure(x.buf, lathe.CodeUnavailable, "the gateway stops; the run goes on")
	}
	x.buf = x.enc.AppendEnd(x.buf)
	_ = x.flush() // the client may have disconnected
}

// runOfChat returns id if it is the id of a run. If it is that of a session, runOfChat returns the newest run of the
// session if that is in progress, else "".
func (h *uiHandler) runOfChat(ctx context.Context, c *caller, id string) (string, *problem) {
	if strings.HasPrefix(id, "run_") {
		return id, nil
	}
	if len(id) > maxSession {
		return "", badRequest("id", "It is no id of a run or a conversation.")
	}
	run, p := h.newestRun(ctx, c, &store.RunFilter{SessionID: id})
	if run.Status != "running" {
		return "", p
	}
	return run.RunID, nil
}

// newestRun returns the newest run of the caller that matches f; the zero value if none exists.
func (rv *runViews) newestRun(ctx context.Context, c *caller, f *store.RunFilter) (run store.RunSummary, p *problem) {
	f.Principal, f.Limit = c.key.Name, 1
	rows, _, err := rv.opts.Index.Runs(ctx, f)
	if len(rows) > 0 {
		run = rows[0]
	}
	return run, rv.storeFailed(c, err)
}
