package app

import (
	"context"
	"log/slog"

	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/server"
)

// An Executor executes the detached runs of an [App] step by step, for example as workflows of Temporal.
type Executor interface {
	server.Executor
	// Begin starts the execution of steps. [New] calls it once, at the end.
	Begin() error
	// Drain starts no further steps, and blocks until those in progress have ended or ctx is done; other processes execute the rest. It may
	// be called twice, and without Begin.
	Drain(ctx context.Context)
}

// ExecutorParts are the parts of an application that an [Executor] uses.
type ExecutorParts struct {
	Engine    *engine.Engine
	Store     Store
	Approvals *approval.Queue
	// Loop returns the loop of a model, like [server.Server.Loop]. It must not be called before Begin.
	Loop func(target string) (l *loop.Loop, release func(), err error)
	Log  *slog.Logger
}

// newExecutor makes the executor with Options.Executor, if that is set.
func (a *App) newExecutor() (err error) {
	if a.opts.Executor == nil {
		return nil
	}
	if _, memory := a.store.(memoryStore); a.store == nil || memory {
		return invalidConfig("runs that another engine executes need a store that outlives the process: --store sqlite:PATH or postgres://USER@HOST/DATABASE, or serve.store")
	}
	loopOf := func(target string) (*loop.Loop, func(), error) { return a.server.Loop(target) }
	a.executor, err = a.opts.Executor(&ExecutorParts{Engine: a.engine, Store: a.store, Approvals: a.approvals, Loop: loopOf, Log: a.log})
	if err != nil {
		a.executor = nil
		return failed(err)
	}
	return nil
}
