package mcp

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe"
)

// A clientSession is the state of one session: the id under which its calls are recorded, and the tools that it has used. A policy can
// therefore consider the calls of a session together.
type clientSession struct {
	id     string
	ctx    context.Context // ends with the session
	cancel context.CancelFunc
	gone   chan struct{} // closed when the state of the session has been removed

	mu      sync.Mutex
	used    []string  // names of tools that have run, in the order of first use
	last    time.Time // of the last call; set only for tenant.sessionless
	version string    // protocol version; "" before initialize is answered
}

// protocol returns the protocol version of the session, or "" before initialize is answered.
func (cs *clientSession) protocol() string {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.version
}

// initialized records the protocol version of the session from the result of initialize, and removes extensions from the capabilities in
// it.
func (cs *clientSession) initialized(res mcp.Result, err error) {
	r, ok := res.(*mcp.InitializeResult)
	if !ok || err != nil {
		return
	}
	cs.mu.Lock()
	cs.version = r.ProtocolVersion
	cs.mu.Unlock()
	caps := *r.Capabilities
	caps.Extensions = nil // extensions belong to the era without sessions
	r.Capabilities = &caps
}

// enter adds the state of a new session and removes it when the session ends. It returns an error if there are too many sessions.
func (t *tenant) enter(session *mcp.ServerSession) (*clientSession, error) {
	s := t.s
	s.mu.Lock()
	defer s.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case session == nil || s.closed:
		return nil, notNow("the server is about to end")
	case t.sessions[session] != nil:
		return t.sessions[session], nil // the SDK refuses a second initialize
	case s.sessions >= s.opts.MaxSessions:
		s.opts.Log.Warn("too many MCP sessions", "max_sessions", s.opts.MaxSessions)
		return nil, notNow("too many sessions: end one, or try again later")
	}
	cs := &clientSession{id: s.opts.NewID("mcp_"), gone: make(chan struct{})}
	cs.ctx, cs.cancel = context.WithCancel(s.ctx)
	t.sessions[session] = cs
	if id := session.ID(); id != "" {
		t.byID[id] = cs
	}
	s.sessions++
	s.watching.Go(func() {
		defer close(cs.gone)
		_ = session.Wait() // why the session ended does not matter
		cs.cancel()
		s.mu.Lock()
		s.sessions--
		s.mu.Unlock()
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.sessions, session)
		delete(t.byID, session.ID())
		for uri := range t.watching {
			t.unwatch(uri, session)
		}
	})
	return cs, nil
}

// sessionNamed returns the state of an HTTP session by its id, or nil.
func (t *tenant) sessionNamed(id string) *clientSession {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id]
}

// useSession returns the clientSession of a new call. Calls without a session share t.sessionless, which is renewed if there was no such
// call for SessionIdle.
func (t *tenant) useSession(session *mcp.ServerSession) *clientSession {
	t.mu.Lock()
	cs := t.sessions[session]
	t.mu.Unlock()
	if cs != nil {
		return cs
	}
	cs = &t.sessionless
	cs.mu.Lock()
	defer cs.mu.Unlock()
	now := t.s.opts.Now()
	if cs.id == "" || now.Sub(cs.last) > t.s.opts.SessionIdle {
		cs.id, cs.used = t.s.opts.NewID("mcp_"), nil
	}
	cs.last = now
	return cs
}

// history returns the id of the session and, as tool messages of a run, the tools that it has used.
func (cs *clientSession) history() (id string, h []lathe.Message) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, name := range cs.used {
		h = append(h, lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{Name: name}}})
	}
	return cs.id, h
}

// maxUsed bounds the tools that a clientSession records. A tool set is not larger.
const maxUsed = 10_000

// note records that a tool has run.
func (cs *clientSession) note(name string) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if len(cs.used) < maxUsed && !slices.Contains(cs.used, name) {
		cs.used = append(cs.used, name)
	}
}
