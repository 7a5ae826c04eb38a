package server

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/lathe-run/lathe/internal/gateway/memory"
	"github.com/lathe-run/lathe/internal/gateway/splice"
	"github.com/lathe-run/lathe/internal/seal"
	"github.com/lathe-run/lathe/store"
)

// The handlers are layers of types, each of which embeds the one below: core (the state that all of them share), runViews
// (reads the logs of runs), runStarter (starts runs and waits for them), and one handler for each group of routes.

// core is the state that the handlers of a server share.
type core struct {
	opts     Options
	work     work
	locks    runLocks
	inflight inflightRuns
	signals  store.SignalStore          // stores signals of runs; nil: the server has no store of runs
	shared   store.Shared               // the shared store; nil: no other process executes runs of the store
	relays   inUse[string, *deltaRelay] // by run id
	waiters  waiters                    // watchers that wait for notifications of runs
	sockets  sockets                    // WebSocket connections of clients
	objects  *knownObjects
	memory   *memory.Pool
	seals    *seal.Keys

	draining atomic.Bool
	stop     context.CancelCauseFunc // cancels stopped, which ends the runs of clients
	stopped  context.Context
	leave    context.CancelFunc // cancels leaving, which ends the streams of watchers
	leaving  context.Context
}

// newCore returns the core for the options, after it has checked them and set their defaults.
func newCore(opts *Options) (*core, error) {
	if opts == nil || opts.Engine == nil {
		return nil, errors.New("an engine is required")
	}
	co := &core{opts: *opts}
	co.opts.Limits = opts.Limits.withDefaults()
	if co.opts.Now == nil {
		co.opts.Now = time.Now
	}
	if co.opts.Log == nil {
		co.opts.Log = slog.New(slog.DiscardHandler)
	}
	if co.opts.Index != nil {
		var ok bool
		if co.signals, ok = co.opts.Index.(store.SignalStore); !ok {
			return nil, errors.New("the store must keep facts")
		}
		co.shared, _ = co.opts.Index.(store.Shared)
		if co.opts.Approvals != nil {
			co.opts.Approvals.Keep(co.signals)
		}
	}
	co.memory = memory.New(co.opts.Limits.MaxInflightBytes, opts.Metrics)
	var err error
	keeper, _ := opts.Index.(store.SecretKeeper)
	if co.seals, err = seal.NewKeys(opts.SealKey, opts.PreviousSealKey, keeper); err != nil {
		return nil, err
	}
	co.objects = &knownObjects{requests: requestStore(co.opts.Index), now: co.opts.Now}
	if err := co.opts.Cluster.check(); err != nil {
		return nil, err
	}
	if co.opts.Cluster.Client == nil {
		co.opts.Cluster.Client = relayClient()
	}
	co.stopped, co.stop = context.WithCancelCause(context.Background())
	co.leaving, co.leave = context.WithCancel(context.Background())
	return co, nil
}

// runViews reads the logs of runs for callers.
type runViews struct{ *core }

// A runStarter starts runs for requests, and streams their events to clients.
type runStarter struct{ *runViews }

// A planner makes the plan of a request for an answer of a model, on any protocol: a new run, or an existing run that
// answers the request.
type planner struct {
	*runStarter
	turns     *splice.Turns
	responses *responseReader
	earlier   *earlierRuns
	reasoning reasoningOrigins
	newer     newerHeaders
}

// A chatHandler serves requests for an answer of a model, on all protocols except that of chat pages.
type chatHandler struct{ *planner }

// A responsesHandler serves the stored responses of the Responses API.
type responsesHandler struct{ *planner }

// A tokenCounter serves requests that count the tokens of a request for an answer.
type tokenCounter struct{ *planner }

// A runsHandler serves /api/runs: it starts, imports, replays, lists, shows and streams runs.
type runsHandler struct{ *runStarter }

// A sessionsHandler serves /api/sessions: groups of runs with the same session id, and their titles.
type sessionsHandler struct{ *runStarter }

// A removalHandler deletes runs: one run, or those of a session or of a principal.
type removalHandler struct{ *sessionsHandler }

// An inputHandler serves the input of runs in progress: approvals, results of client tools, cancellation, resumption.
type inputHandler struct{ *runStarter }

func (h *planner) inputs() *inputHandler { return &inputHandler{h.runStarter} }

// A uiHandler serves the streams of chat pages.
type uiHandler struct {
	*runStarter
	earlier *earlierRuns
}

// A catalogHandler serves lists of models, tools, limits, evaluations and model calls.
type catalogHandler struct{ *core }

// A peerHandler serves requests of other processes of the cluster.
type peerHandler struct{ *core }
