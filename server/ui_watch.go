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
func (h *uiHandler) watchChat(rw http.ResponseWriter, r *http.Request, c *caller, id string, protocol uistream.Protocol, state *uistream.State) *problem {
	after, p := position(r)
	if p == nil {
		id, p = h.runOfChat(r.Context(), c, id)
	}
	switch {
	case p != nil:
		return p
	case id == "":
		return answerNothing(rw)
	}
	w := newWatch(h.runViews, id, 0, untilPaused)
	defer w.unsubscribe()
	newest, p := h.newest(r.Context(), c, id)
	switch {
	case p != nil:
		return p
	case after > newest.ID:
		p = conflict("event_id_ahead", "The run has no such event.")
		p.NewestEvent = newest.ID
		return p
	}
	c.runID = id
	w.enc = uistream.NewEncoder(protocol, &uistream.Options{Approvals: h.opts.Approvals != nil, State: state})
	w.keepAlive = protocol.AppendKeepAlive
	if err := w.skip(r.Context(), after); err != nil {
		return h.runFailed(c, err)
	}
	if w.enc.HasEnded() { // the page has received the whole run
		return answerNothing(rw)
	}
	w.streamUI(rw, r, protocol)
	return nil
}

// skip reads the events up to the one with the id after, which the page has received. The encoder must read them; their
// output is discarded.
func (w *watch) skip(ctx context.Context, after int64) error {
	if after == 0 {
		return nil
	}
	for e, err := range w.views.opts.Index.Read(ctx, w.runID, 0) {
		if err != nil {
			return err
		}
		w.enc.Append(nil, &e)
		_, w.over = e.Data.(*event.RunPaused) // the page reads the events after a pause as a separate stream
		w.last = e.ID
		if w.last >= after {
			break
		}
	}
	return nil
}

// setHeaders sets the response headers of a protocol for chat pages.
func setHeaders(h http.Header, protocol uistream.Protocol) {
	for _, kv := range protocol.Headers() {
		h.Set(kv[0], kv[1])
	}
}

// streamUI writes the events of the run until it has ended or is suspended, and the end of the stream.
func (w *watch) streamUI(rw http.ResponseWriter, r *http.Request, protocol uistream.Protocol) {
	defer w.open(rw, func(h http.Header) { setHeaders(h, protocol) })()
	err := w.run(r.Context())
	if r.Context().Err() != nil {
		return // the client has disconnected
	}
	if err != nil {
		w.buf = w.enc.AppendFailure(w.buf, lathe.CodeUnavailable, "the gateway stops; the run goes on")
	}
	w.buf = w.enc.AppendEnd(w.buf)
	_ = w.flush() // the client may have disconnected
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
