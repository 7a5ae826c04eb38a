package mcp

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"

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

	mu          sync.Mutex    // guards all fields below except sessionless
	sessionless clientSession // state of calls without a session; it has a lock of its own

	// Set by sync.
	specs    []*lathe.ToolSpec          // tools that the caller may see
	executor lathe.Executor             // executor for which offers was registered
	offers   map[string]*lathe.ToolSpec // tools registered with the SDK, by name
	others   map[string]bool            // names of tools that clients execute

	// Set by enter, until the session ends.
	sessions map[*mcp.ServerSession]*clientSession
	byID     map[string]*clientSession // sessions over HTTP, by their id

	// Set by digest.
	hashed []*lathe.ToolSpec // the tools of which hash is the hash
	hash   string

	watching map[string]*watched  // subscribed resources by URI; see subscribe
	checking bool                 // a goroutine is checking subscribed files for changes
	parked   map[string]*exchange // exchanges that wait for their clients, by requestState; see exchange.park
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
			if err := mcp.AddReceivingCustomMethod(t.server, method, notDispatched); err != nil {
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
	specs := t.selectTools(runner)
	if slices.Equal(specs, t.specs) && settings.Executor == t.executor {
		return
	}
	all := settings.Executor != t.executor // the executor affects the definition of each tool
	t.specs, t.executor = specs, settings.Executor
	next := map[string]*lathe.ToolSpec{}
	for _, spec := range specs {
		next[spec.Name] = spec
		if all || t.offers[spec.Name] != spec {
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

// selectTools returns the tools that the caller may see: those that the policy allows, with or without an approval, and that clients do not
// execute. It sets t.others to the names of those that clients execute. t.mu is held.
func (t *tenant) selectTools(runner *tool.Runner) []*lathe.ToolSpec {
	if runner.Settings().ToolUseMode == lathe.ModeDisabled {
		return nil
	}
	t.others = map[string]bool{}
	return slices.DeleteFunc(specsOf(t, runner), func(s *lathe.ToolSpec) bool {
		ofClient := s.Owner == lathe.OwnerClient
		if ofClient {
			t.others[s.Name] = true
		}
		return ofClient
	})
}

// specsOf returns the tools that a run of the caller would have with a runner.
func specsOf(t *tenant, runner *tool.Runner) []*lathe.ToolSpec {
	w := runner.Begin(t.runInfo(), &tool.RunOptions{Allow: t.caller.Allow, Limits: t.caller.Limits})
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

// runInfo describes the caller to policies and sinks.
func (t *tenant) runInfo() *lathe.RunInfo {
	labels := map[string]string{}
	maps.Copy(labels, t.s.opts.Labels)
	maps.Copy(labels, t.caller.Labels)
	labels["entry"] = "mcp"
	return &lathe.RunInfo{Principal: t.caller.Principal, Profile: t.caller.Profile, Depth: t.s.opts.Depth, Labels: labels}
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
var ofCatalog = []string{
	"resources/list", "resources/read", "resources/templates/list", "resources/subscribe", "resources/unsubscribe",
	"prompts/list", "prompts/get", "completion/complete",
}

// receive returns the middleware of every request. It handles some methods itself and passes the others to the SDK.
func (t *tenant) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if slices.Contains(ofCatalog, method) && t.s.offer.Load().empty() {
			return nil, errNoMethod
		}
		session, _ := req.GetSession().(*mcp.ServerSession)
		switch method {
		case "initialize":
			cs, err := t.enter(session)
			if err != nil {
				return nil, err
			}
			res, err := next(ctx, method, req)
			cs.initialized(res, err)
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

// idle reports whether the caller has neither open sessions nor parked exchanges.
func (t *tenant) idle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for range t.server.Sessions() {
		return false
	}
	return len(t.sessions)+len(t.parked) == 0
}
