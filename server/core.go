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

// The handlers are layers of types, each of which embeds the one below: core (the state that all share), runViews (what the
// logs of runs say), runStarter (runs that requests start and wait for), and one handler for each protocol.

// core is the state that the handlers of a server share.
type core struct {
	opts     Options
	work     work
	locks    *runLocks
	inflight inflightRuns
	facts    store.SignalStore // nil: no store keeps runs
	shared   store.Shared      // nil: no other process executes runs of the store
	relays   relays
	waiters  waiters // watchers of runs
	sockets  sockets // WebSockets of clients
	objects  *knownObjects
	memory   *memory.Pool
	seals    *seal.Keys

	draining atomic.Bool
	stop     context.CancelCauseFunc // cancels the runs of clients
	stopped  context.Context
	leave    context.CancelFunc // ends the streams of watchers
	leaving  context.Context
}

// newCore checks the options and sets their defaults.
func newCore(opts *Options) (*core, error) {
	if opts == nil || opts.Engine == nil {
		return nil, errors.New("an engine is required")
	}
	co := &core{opts: *opts, locks: newRunLocks()}
	co.opts.Limits = opts.Limits.withDefaults()
	if co.opts.Now == nil {
		co.opts.Now = time.Now
	}
	if co.opts.Log == nil {
		co.opts.Log = slog.New(slog.DiscardHandler)
	}
	if co.opts.Index != nil {
		var ok bool
		if co.facts, ok = co.opts.Index.(store.SignalStore); !ok {
			return nil, errors.New("the store must keep facts")
		}
		co.shared, _ = co.opts.Index.(store.Shared)
		if co.opts.Approvals != nil {
			co.opts.Approvals.Keep(co.facts)
		}
	}
	co.memory = memory.New(co.opts.Limits.MaxInflightBytes, opts.Metrics)
	var err error
	keeper, _ := opts.Index.(store.SecretKeeper)
	if co.seals, err = seal.NewKeys(opts.SealKey, opts.PreviousSealKey, keeper); err != nil {
		return nil, err
	}
	co.objects = newKnownObjects(co.opts.Index, co.opts.Now)
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

// runViews read what the logs of runs say.
type runViews struct{ *core }

// A runStarter starts the runs that requests ask for, and streams what they say to the clients.
type runStarter struct{ *runViews }

// A planner makes the plan of a request for an answer of a model, whatever the protocol: its run, or the run that answers it.
type planner struct {
	*runStarter
	turns     *splice.Turns
	responses *responseReader
	earlier   *earlierRuns
	reasoning reasoningOrigins
	newer     newerHeaders
}

// A chatHandler answers requests for an answer of a model.
type chatHandler struct{ *planner }

// A responsesHandler serves stored responses.
type responsesHandler struct{ *planner }

// A tokenCounter counts the tokens of requests for an answer.
type tokenCounter struct{ *planner }

// A runsHandler serves /api/runs: it starts, lists, shows and streams runs.
type runsHandler struct{ *runStarter }

// A sessionsHandler serves the sessions of clients: the runs that belong together, under their titles.
type sessionsHandler struct{ *runStarter }

// A removalHandler removes runs: one, those of a session or those of a principal.
type removalHandler struct{ *sessionsHandler }

// An inputHandler serves the input of runs that are under way: approvals, results of client tools, cancellation.
type inputHandler struct{ *runStarter }

// A uiHandler serves the streams of chat pages.
type uiHandler struct{ *runStarter }

// A catalogHandler serves what there is: models, tools, limits, summaries of model calls.
type catalogHandler struct{ *core }

// A peerHandler serves the other processes of the cluster.
type peerHandler struct{ *core }
