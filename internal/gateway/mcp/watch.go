package mcp

import (
	"context"
	"maps"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxWatched bounds the resources that the clients of one caller have subscribed to.
const maxWatched = 1_000

// A watched is a resource that sessions have subscribed to, with its stamp at the last check.
type watched struct {
	was      stamp
	sessions map[*mcp.ServerSession]bool
}

// subscribe checks and records a subscription. The SDK calls it before it registers the session itself.
func (t *tenant) subscribe(_ context.Context, req *mcp.SubscribeRequest) error {
	uri := req.Params.URI
	r, _ := t.s.offer.Load().find(uri)
	t.mu.Lock()
	defer t.mu.Unlock()
	if r == nil || t.catalog.readables[r.spec.Name] == nil {
		return mcp.ResourceNotFoundError(uri)
	}
	w := t.watching[uri]
	if w == nil {
		if len(t.watching) >= maxWatched {
			return notNow("too many subscriptions: end one first")
		}
		w = &watched{was: r.stamp(uri), sessions: map[*mcp.ServerSession]bool{}}
		t.watching[uri] = w
	}
	w.sessions[req.Session] = true
	return nil
}

func (t *tenant) unsubscribe(_ context.Context, req *mcp.UnsubscribeRequest) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unwatch(req.Params.URI, req.Session)
	return nil
}

// unwatch removes the subscription of a session. t.mu is held.
func (t *tenant) unwatch(uri string, session *mcp.ServerSession) {
	if w := t.watching[uri]; w != nil {
		delete(w.sessions, session)
		if len(w.sessions) == 0 {
			delete(t.watching, uri)
		}
	}
}

// checkWatched notifies subscribers of files that have changed since the last check. It returns immediately; the files are checked in a
// goroutine, of which a caller has at most one at a time.
func (t *tenant) checkWatched() {
	t.mu.Lock()
	all := maps.Clone(t.watching)
	if t.checking || len(all) == 0 {
		t.mu.Unlock()
		return
	}
	t.checking = true
	t.mu.Unlock()
	t.s.apart(func() {
		var changed []string
		for uri, w := range all {
			now := t.stamp(uri)
			t.mu.Lock()
			if now != w.was {
				w.was = now
				changed = append(changed, uri)
			}
			t.mu.Unlock()
		}
		for _, uri := range changed {
			t.updated(uri)
		}
		t.mu.Lock()
		t.checking = false
		t.mu.Unlock()
	})
}

// stamp returns the stamp of a resource in the current catalog. It has gone set if the caller may not see the resource.
func (t *tenant) stamp(uri string) stamp {
	r, _ := t.s.offer.Load().find(uri)
	t.mu.Lock()
	may := r != nil && t.catalog.readables[r.spec.Name] != nil
	t.mu.Unlock()
	if !may {
		return stamp{gone: true}
	}
	return r.stamp(uri)
}

// apart runs f in a goroutine for which Close waits. It returns false, and does not run f, if the server is closed.
func (s *Server) apart(f func()) (started bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.watching.Go(f)
	}
	return !s.closed
}

func (t *tenant) updated(uri string) {
	_ = t.server.ResourceUpdated(t.s.ctx, &mcp.ResourceUpdatedNotificationParams{URI: uri}) // the client may have left
}
