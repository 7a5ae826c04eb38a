package app

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// Shutdown lets requests and runs finish. At once /readyz fails and requests that begin a run get 503. After
// serve.drain_delay it waits for requests, ends the streams of MCP clients, shuts the servers down, stops runs that no
// request waits for, and disconnects workers. What has not finished within serve.drain_timeout, or when ctx is done, is
// interrupted. It returns the number of runs that are left in the store for the next process. Close must be called after
// it.
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
	a.mcp.Close() // its streams have no other end
	for _, s := range servers {
		if err := s.Shutdown(ctx); err != nil {
			_ = s.Close() // cuts what has not finished in time
		}
	}
	if a.executor != nil {
		a.executor.Drain(ctx)
	}
	left = a.supervisor.Drain(ctx)
	a.pools.disconnect() // until now they could deliver results
	return left
}

// meterTimeout bounds the time in which Close records what model calls used.
const meterTimeout = 10 * time.Second

// Close stops everything that New has started. It interrupts requests and runs that have not ended: call [App.Shutdown]
// before it to let them finish. It blocks until the events of ended runs are stored. Further calls do nothing.
func (a *App) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil
	}
	a.closed = true
	a.stopTasks()
	a.tasks.Wait()
	if a.executor != nil {
		ctx, leave := context.WithCancel(context.Background())
		leave()
		a.executor.Drain(ctx)
	}
	if a.server != nil {
		ctx, interrupt := context.WithCancel(context.Background())
		interrupt()
		a.server.Drain(ctx)
		a.mcp.Close()
		_ = a.supervisor.Drain(ctx) // the runs are in the store
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
		_ = a.engine.Flush(context.Background(), "") // each append has a bounded time, and this context has no end
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
