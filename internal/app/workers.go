package app

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/remote"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool/remotetool"
)

// workerPools executes tools on workers on other machines.
type workerPools struct {
	queue   remote.Queue
	tools   *remotetool.Catalogue
	workers *server.Workers
	running sync.WaitGroup
	stop    context.CancelFunc
}

// newWorkerPools stores the calls of workers in the store. Without a store they are in memory and end with the process. The caller must
// call close.
func newWorkerPools(cfg *config.Config, kept Store, log *slog.Logger) (*workerPools, error) {
	w := &workerPools{}
	w.queue, _ = kept.(remote.Queue)
	if w.queue == nil {
		w.queue = store.NewMemory(nil)
	}
	w.tools = remotetool.New(w.queue, &remotetool.Options{Log: log})
	var err error
	w.workers, err = server.NewWorkers(&server.WorkerOptions{Queue: w.queue, Registry: w.tools, Pools: poolsOf(cfg), Lease: cfg.Serve.WorkerLease, Log: log})
	if err != nil {
		return nil, configError(Cause(err))
	}
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	w.running.Go(func() { w.tools.Follow(ctx) })
	w.running.Go(func() { w.workers.Serve(ctx) })
	return w, nil
}

func poolsOf(cfg *config.Config) (out []server.WorkerPool) {
	for name, w := range text.ByName(cfg.Workers) {
		out = append(out, server.WorkerPool{Name: name, Token: w.Token.Secret(), Tools: w.Tools, Effects: w.Believed(), Keys: presentKeys(cfg, slices.Clone(w.Keys)), MaxConcurrency: w.MaxConcurrency})
	}
	return out
}

// disconnectTime limits the time in which workers finish the protocol before they are disconnected.
const disconnectTime = 5 * time.Second

// disconnect redirects the workers to other servers of the same store. Their calls continue, and they deliver the results to those servers.
func (w *workerPools) disconnect() {
	ctx, cancel := context.WithTimeout(context.Background(), disconnectTime)
	defer cancel()
	w.workers.Close(ctx)
}

// close disconnects the workers and stops the maintenance of their calls.
func (w *workerPools) close() {
	w.disconnect()
	w.stop()
	w.running.Wait()
}
