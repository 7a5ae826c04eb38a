package server

import (
	"context"
	"sync"

	"github.com/lathe-run/lathe/event"
)

// A run of this process is executed either by a request or by the supervisor.

// inflightRuns contains the runs that requests of this process execute.
type inflightRuns struct{ of sync.Map } // maps run id to *inflightRun

// add registers a run until remove is called.
func (l *inflightRuns) add(f *inflightRun) { l.of.Store(f.id, f) }

func (l *inflightRuns) remove(f *inflightRun) { l.of.CompareAndDelete(f.id, f) }

// interrupt cancels all registered runs with the cause.
func (l *inflightRuns) interrupt(cause error) {
	for _, f := range l.of.Range {
		f.(*inflightRun).cancel(cause)
	}
}

func (l *inflightRuns) find(id string) *inflightRun {
	found, _ := l.of.Load(id)
	f, _ := found.(*inflightRun)
	return f
}

// executes reports whether this process executes the run now.
func (co *core) executes(id string) bool {
	return co.inflight.find(id) != nil || co.opts.Supervisor != nil && co.opts.Supervisor.Owns(id)
}

// waitRun blocks until a run that this process executes has ended or is suspended, or ctx is done; res is nil in the
// latter case. ok is false if this process does not execute the run.
func (co *core) waitRun(ctx context.Context, id string) (res *event.Result, ok bool) {
	if f := co.inflight.find(id); f != nil {
		select {
		case <-f.over:
			return f.res, true
		case <-ctx.Done():
			return nil, true
		}
	}
	if co.opts.Supervisor == nil { // no request executes the run any more, and nothing else can
		return nil, false
	}
	res, ok, _ = co.opts.Supervisor.Wait(ctx, id) // the error is not needed: the log of the run has its result
	return res, ok
}

// interrupt cancels a run that this process executes, and reports whether it executes the run.
func (co *core) interrupt(id string) bool {
	if f := co.inflight.find(id); f != nil {
		f.cancel(context.Canceled)
		return true
	}
	return co.opts.Supervisor.Cancel(id)
}
