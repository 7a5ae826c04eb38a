package app

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// Shutdown waits for requests and runs to finish. /readyz fails at once, and requests that would begin a run get 503. After
// serve.drain_delay it waits for requests, ends the streams of MCP clients, shuts the servers down, stops runs that no request waits for,
// and disconnects workers. It interrupts what has not finished within serve.drain_timeout, or when ctx is done. It returns the number of
// runs that are left in the store for the next process. The caller must call Close afterwards.
func (a *App) Shutdown(ctx context.Context, servers ...*http.Server) (left int) {
	a.server.Unready()
	a.stopTasks()
	a.mu.Lock()
	c := a.current.cfg.Serve
	a.mu.Unlock()
	if c.DrainDelay > 0 {
		select {
		case <-time.After(c.DrainDelay):
		case <-ctx.Done():
		}
	}
	ctx, cancel := context.WithTimeout(ctx, c.DrainTimeout)
	defer cancel()
	a.server.Drain(ctx)
	a.mcp.Close() // the streams of MCP clients do not end by themselves
	for _, s := range servers {
		if err := s.Shutdown(ctx); err != nil {
			_ = s.Close() // interrupts requests that have not finished in time
		}
	}
	if a.executor != nil {
		a.executor.Drain(ctx)
	}
	left = a.supervisor.Drain(ctx)
	a.pools.disconnect() // workers could deliver results until now
	return left
}

// meterTimeout limits the time in which Close records the usage of model calls.
const meterTimeout = 10 * time.Second

// Close stops all that New has started and blocks until the events of ended runs are stored. Requests and runs in progress are interrupted:
// call [App.Shutdown] first. The error joins those of closing the audit log, recording usage and closing the store. Further calls return
// nil.
func (a *App) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil
	}
	a.closed = true
	a.stopTasks()
	a.tasks.Wait()
	interrupted, interrupt := context.WithCancel(context.Background())
	interrupt() // so that Drain does not wait
	if a.executor != nil {
		a.executor.Drain(interrupted)
	}
	if a.server != nil {
		a.server.Drain(interrupted)
		a.mcp.Close()
		_ = a.supervisor.Drain(interrupted) // the remaining runs are in the store
	}
	for _, closed := range a.retired {
		<-closed
	}
	if a.current != nil {
		a.current.close()
	}
	a.identities.close()
	if a.traces != nil {
		CloseTraces(context.Background(), a.traces, a.log)
	}
	if a.pools != nil {
		a.pools.close()
	}
	var errs []error
	if a.audit != nil {
		a.log.Info("the audit log ends", "head", a.audit.Head().String())
		errs = append(errs, a.audit.Close())
	}
	if a.engine != nil && a.store != nil {
		_ = a.engine.Flush(context.Background(), "") // returns no error that matters: each append has a time limit, and this context does not end
	}
	if a.meter != nil {
		ctx, cancel := context.WithTimeout(context.Background(), meterTimeout)
		errs = append(errs, a.meter.Close(ctx))
		cancel()
	}
	if a.ownStore {
		errs = append(errs, a.store.Close())
	}
	return errors.Join(errs...)
}
