package mcp

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/digest"
	"github.com/lathe-run/lathe/tool"
)

// A tenant is the state of one caller: its tools, its sessions and its HTTP handlers. A caller cannot access the sessions of another one.
type tenant struct {
	s        *Server
	caller   Caller
	server   *mcp.Server
	catalog  *tenantCatalog
	stateful *mcp.StreamableHTTPHandler // for protocol versions up to 2025-11-25
	modern   *mcp.StreamableHTTPHandler // for protocol versions from 2026-07-28 on

	mu          sync.Mutex
	specs       []*lathe.ToolSpec          // tools at the last sync
	executor    lathe.Executor             // executor at the last sync
	offers      map[string]*lathe.ToolSpec // tools registered with the SDK, by name
	others      map[string]bool            // names of tools that clients execute
	sessions    map[*mcp.ServerSession]*clientSession
	byID        map[string]*clientSession // sessions over HTTP, by their id
	sessionless clientSession             // state of calls without a session
	hashed      []*lathe.ToolSpec         // the tools of which hash is the hash
	hash        string
	watching    map[string]*watched  // subscribed resources by URI
	looking     bool                 // a goroutine is checking subscribed files for changes
	parked      map[string]*exchange // exchanges that wait for their clients, by requestState
}

func newTenant(s *Server, c *Caller) *tenant {
	t := &tenant{s: s, caller: c.clone(), offers: map[string]*lathe.ToolSpec{}, sessions: map[*mcp.ServerSession]*clientSession{}, byID: map[string]*clientSession{},
		watching: map[string]*watched{}, parked: map[string]*exchange{}}
	t.catalog = &tenantCatalog{tenant: t}
	t.sessionless.ctx = s.ctx
	o := &s.opts
	caps := &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}, Logging: &mcp.LoggingCapabilities{}} //nolint:staticcheck // deprecated from 2026-07-28 on, and asked for in both eras
	if !s.offer.Load().empty() {
		caps.Completions = &mcp.CompletionCapabilities{}
	}
	if o.Tasks.After > 0 {
		caps.AddExtension(extTasks, nil)
	}
	t.server = mcp.NewServer(&mcp.Implementation{Name: o.Name, Title: o.Title, Version: o.Version}, &mcp.ServerOptions{
		Instructions:       o.Instructions,
		PageSize:           o.PageSize,
		Capabilities:       caps,
		SubscribeHandler:   t.subscribe,
		UnsubscribeHandler: t.unsubscribe,
		// What one caller may see must not be cached for another.
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.TTLMs, c.CacheScope = 0, "private" },
	})
	if o.Tasks.After > 0 {
		for method := range taskMethods {
			if err := mcp.AddReceivingCustomMethod(t.server, method, notTaken); err != nil {
				panic("mcp: " + err.Error()) // the SDK already has a method of this name
			}
		}
	}
	t.server.AddReceivingMiddleware(t.receive)
	if observers := event.MCPObservers(o.Sinks); len(observers) > 0 {
		t.server.AddReceivingMiddleware(t.observed(observers)) // around t.receive
	}
	// serveHTTP checks Host, Origin, sizes and protocol versions before it calls these handlers.
	common := mcp.StreamableHTTPOptions{DisableLocalhostProtection: true, MaxRequestBodyBytes: -1}
	get := func(*http.Request) *mcp.Server { return t.server }
	stateful, modern := common, common
	stateful.SessionTimeout = o.SessionIdle
	modern.Stateless, modern.PropagateRequestCancellation = true, true
	t.stateful, t.modern = mcp.NewStreamableHTTPHandler(get, &stateful), mcp.NewStreamableHTTPHandler(get, &modern)
	t.sync()
	return t
}

// sync registers the current tools with the SDK, which notifies the sessions if they have changed.
func (t *tenant) sync() {
	t.mu.Lock()
	defer t.mu.Unlock()
	runner := t.s.runners.runner()
	settings := runner.Settings()
	t.catalog.syncCatalog(runner)
	specs := t.allowed(runner)
	if slices.Equal(specs, t.specs) && settings.Executor == t.executor {
		return
	}
	anew := settings.Executor != t.executor // the executor affects the definition of each tool
	t.specs, t.executor = specs, settings.Executor
	next := map[string]*lathe.ToolSpec{}
	for _, spec := range specs {
		next[spec.Name] = spec
		if anew || t.offers[spec.Name] != spec {
			t.server.AddTool(definition(spec, &settings), notReached)
		}
	}
	var gone []string
	for name := range t.offers {
		if next[name] == nil {
			gone = append(gone, name)
		}
	}
	if len(gone) > 0 {
		t.server.RemoveTools(gone...)
	}
	t.offers = next
}

// allowed returns the tools that the caller may see: those that the policy allows, with or without an approval, and that clients do not
// execute. It records the names of the latter in t.others. t.mu is held.
func (t *tenant) allowed(runner *tool.Runner) []*lathe.ToolSpec {
	if runner.Settings().ToolUseMode == lathe.ModeDisabled {
		return nil
	}
	t.others = map[string]bool{}
	return slices.DeleteFunc(specsOf(t, runner), func(s *lathe.ToolSpec) bool {
		if s.Owner == lathe.OwnerClient {
			t.others[s.Name] = true
		}
		return s.Owner == lathe.OwnerClient
	})
}

// specsOf returns the tools that a run of the caller would have with a runner.
func specsOf(t *tenant, runner *tool.Runner) []*lathe.ToolSpec {
	w := runner.Begin(t.runInfo(nil, "", ""), &tool.RunOptions{Allow: t.caller.Allow, Limits: t.caller.Limits})
	return slices.Clone(w.Specs())
}

// digest returns the number and the hash of the tools that a call may use. The last hash is stored, because most calls have the same tools.
func (t *tenant) digest(specs []*lathe.ToolSpec) event.ToolsDigest {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.hash == "" || !slices.Equal(specs, t.hashed) {
		t.hashed, t.hash = specs, digest.Tools(specs)
	}
	return event.ToolsDigest{Count: len(specs), Hash: t.hash}
}

func (t *tenant) runInfo(v *clientSession, transport, protocol string) *lathe.RunInfo {
	labels := map[string]string{}
	maps.Copy(labels, t.s.opts.Labels)
	maps.Copy(labels, t.caller.Labels)
	labels["entry"] = "mcp"
	info := &lathe.RunInfo{Principal: t.caller.Principal, Profile: t.caller.Profile, Depth: t.s.opts.Depth, Labels: labels}
	if v != nil {
		labels["transport"], labels["protocol"] = transport, protocol
		info.SessionID = v.id
	}
	return info
}

// notReached is the handler under which tools are registered with the SDK. It is never called: receive handles tools/call.
func notReached(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return nil, internalError("the call did not reach the runner")
}

// maxCursor bounds the cursor of a client in bytes, before it is decoded.
const maxCursor = 1_024

func cursorOf(req mcp.Request) string {
	switch p := req.GetParams().(type) {
	case *mcp.ListToolsParams:
		if p != nil {
			return p.Cursor
		}
	case *mcp.ListPromptsParams:
		if p != nil {
			return p.Cursor
		}
	case *mcp.ListResourceTemplatesParams:
		if p != nil {
			return p.Cursor
		}
	}
	return ""
}

// ofCatalog are the methods that require a catalog.
var ofCatalog = map[string]bool{
	"resources/list": true, "resources/read": true, "resources/templates/list": true, "resources/subscribe": true, "resources/unsubscribe": true,
	"prompts/list": true, "prompts/get": true, "completion/complete": true,
}

// initialized records the protocol version of the session from the result of initialize, and removes extensions from the capabilities in
// it.
func (cs *clientSession) initialized(res mcp.Result, err error) {
	r, ok := res.(*mcp.InitializeResult)
	if !ok || err != nil {
		return
	}
	cs.speak(r.ProtocolVersion)
	caps := *r.Capabilities
	caps.Extensions = nil // extensions belong to the era without sessions
	r.Capabilities = &caps
}

// receive returns the middleware of every request. It handles some methods itself and passes the others to the SDK.
func (t *tenant) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if ofCatalog[method] && t.s.offer.Load().empty() {
			return nil, noMethod()
		}
		session, _ := req.GetSession().(*mcp.ServerSession)
		switch method {
		case "initialize":
			v, err := t.enter(session)
			if err != nil {
				return nil, err
			}
			res, err := next(ctx, method, req)
			v.initialized(res, err)
			return res, err
		case "tools/list", "resources/templates/list", "prompts/list":
			if len(cursorOf(req)) > maxCursor {
				return nil, invalidParams("no such cursor")
			}
			t.sync()
		case "tools/call":
			call, ok := req.(*mcp.CallToolRequest)
			if !ok || call.Params == nil || call.Params.Name == "" {
				return nil, invalidParams("the call names no tool")
			}
			return t.callTool(ctx, call)
		case "resources/list":
			t.sync()
			p, _ := req.GetParams().(*mcp.ListResourcesParams)
			return t.catalog.listResources(p)
		case "resources/read":
			return t.catalog.readResource(ctx, req)
		case "completion/complete":
			t.sync()
			p, _ := req.GetParams().(*mcp.CompleteParams)
			return t.catalog.complete(p)
		case "tasks/get", "tasks/update", "tasks/cancel":
			if t.s.opts.Tasks.After <= 0 {
				break
			}
			return t.serveTask(ctx, method, req)
		case "prompts/get", "resources/subscribe", "subscriptions/listen":
			t.sync()
		}
		return next(ctx, method, req)
	}
}

// A clientSession is the state of one session: the id under which its calls are recorded, and the tools that it has used. A policy can
// therefore consider the calls of a session together.
type clientSession struct {
	id     string
	ctx    context.Context // ends with the session
	cancel context.CancelFunc
	gone   chan struct{} // closed when the state of the session has been removed

	mu      sync.Mutex
	used    []string // names of tools that have run, in the order of first use
	last    time.Time
	version string // protocol version; "" before initialize is answered
}

func (cs *clientSession) speak(version string) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.version = version
}

// protocol returns the protocol version of the session, or "" before initialize is answered.
func (cs *clientSession) protocol() string {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.version
}

// maxUsed bounds the tools that a clientSession records. A tool set is not larger.
const maxUsed = 10_000

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
	v := &clientSession{id: s.opts.NewID("mcp_"), gone: make(chan struct{})}
	v.ctx, v.cancel = context.WithCancel(s.ctx)
	t.sessions[session] = v
	if id := session.ID(); id != "" {
		t.byID[id] = v
	}
	s.sessions++
	s.watching.Go(func() {
		defer close(v.gone)
		_ = session.Wait() // why the session ended does not matter
		v.cancel()
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
	return v, nil
}

// sessionNamed returns the state of an HTTP session by its id.
func (t *tenant) sessionNamed(id string) (*clientSession, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v, ok := t.byID[id]
	return v, ok
}

// leave cancels the calls of the session that a client ends.
func (t *tenant) leave(id string) {
	if v, ok := t.sessionNamed(id); ok {
		v.cancel()
	}
}

// sessionOf returns the clientSession of a call. Calls of a caller without a session share one, which is renewed if there was no such call
// for SessionIdle.
func (t *tenant) sessionOf(session *mcp.ServerSession) *clientSession {
	t.mu.Lock()
	v := t.sessions[session]
	t.mu.Unlock()
	if v != nil {
		return v
	}
	v = &t.sessionless
	v.mu.Lock()
	defer v.mu.Unlock()
	now := t.s.opts.Now()
	if v.id == "" || now.Sub(v.last) > t.s.opts.SessionIdle {
		v.id, v.used = t.s.opts.NewID("mcp_"), nil
	}
	v.last = now
	return v
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

func (cs *clientSession) note(name string) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if len(cs.used) < maxUsed && !slices.Contains(cs.used, name) {
		cs.used = append(cs.used, name)
	}
}

// idle reports whether the caller has neither open sessions nor parked exchanges.
func (t *tenant) idle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for range t.server.Sessions() {
		return false
	}
	return len(t.sessions)+len(t.parked) == 0
}
