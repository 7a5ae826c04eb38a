package server

import (
	"net/http"
	"sync/atomic"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gateway/admission"
)

// A Server is the http.Handler of the gateway, with its middleware and routes. Its methods may be called from several goroutines at once.
type Server struct {
	*core
	table routes
	mux   *http.ServeMux
	// consoleMux serves the routes of the console's own listener.
	consoleMux *http.ServeMux
	gate       *gate
	browsers   *signIns
	unready    atomic.Bool // /readyz failed, and the cause was logged

	chat     *chatHandler
	stored   *responsesHandler
	counter  *tokenCounter
	runs     *runsHandler
	removal  *removalHandler
	inputs   *inputHandler
	ui       *uiHandler
	catalog  *catalogHandler
	peers    *peerHandler
	state    *stateHandler
	maintain *maintenance
}

// New returns a server. Options.Setup.Models and Options.Engine are required. An error has the code invalid_config.
func New(opts *Options) (*Server, error) {
	co, err := newCore(opts)
	if err != nil {
		return nil, invalid("new", err)
	}
	views := &runViews{co}
	exec := &runStarter{views}
	turns := newTurns(co)
	plans := &planner{runStarter: exec, turns: turns, responses: &responseReader{views, turns}, earlier: newEarlierRuns(views)}
	g := &Server{core: co,
		chat: &chatHandler{plans}, stored: &responsesHandler{plans}, counter: &tokenCounter{plans},
		runs: &runsHandler{exec}, removal: &removalHandler{&sessionsHandler{exec}}, inputs: &inputHandler{exec}, ui: &uiHandler{exec, plans.earlier}, catalog: &catalogHandler{co}, peers: &peerHandler{co},
		maintain: &maintenance{runStarter: exec, turns: turns}}
	g.browsers = &signIns{co, newSessions(co.opts.Now, co.opts.Limits.SessionLife), make(chan struct{}, maxSignIns)}
	g.gate = &gate{co, admission.New(co.opts.Now, co.opts.Limits.MaxConcurrent, co.opts.Limits.MaxWatchers), g.browsers}
	g.state = &stateHandler{co, g.gate.usage}
	if _, err := g.Reload(&opts.Setup); err != nil {
		return nil, err
	}
	g.table = g.routes()
	g.mux = g.mount(g.table)
	g.consoleMux = g.mount(g.consoleRoutes())
	return g, nil
}

// Reload replaces the setup for further requests. If s is not valid, it returns an error of code invalid_config and changes nothing.
// Requests and detached runs in progress keep the setup with which they began. former is closed when the last of them has ended. Reload
// does not block.
func (g *Server) Reload(s *Setup) (former <-chan struct{}, err error) {
	next, err := newSetup(s)
	if err != nil {
		return nil, invalid("reload", err)
	}
	next.log = g.opts.Log
	return g.work.replace(next), nil
}

// invalid wraps an error about options in a *lathe.Error with code invalid_config.
func invalid(op string, err error) error {
	if err == nil {
		return nil
	}
	return lathe.CodeInvalidConfig.Wrap("gateway: "+op, err)
}
