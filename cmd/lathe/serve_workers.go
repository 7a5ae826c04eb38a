package main

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/config"
	"github.com/lathe-run/lathe/gateway"
	"github.com/lathe-run/lathe/internal/wire/fleet"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool/remote"
)

// A workshop is the part of the daemon that has tools executed elsewhere.
type workshop struct {
	queue   lathe.CallQueue
	tools   *remote.Catalogue
	workers *gateway.Workers
	running sync.WaitGroup
	stop    context.CancelFunc
}

// openWorkshop puts the calls of workers into the store, or without one in memory: then they end with the process.
func (d *daemon) openWorkshop(cfg *config.Config) error {
	w := &workshop{}
	if d.store != nil {
		w.queue, _ = any(d.store).(lathe.CallQueue)
	}
	if w.queue == nil {
		w.queue = store.NewMemory(nil)
	}
	w.tools = remote.New(w.queue, &remote.Options{Log: d.log})
	var err error
	w.workers, err = gateway.NewWorkers(&gateway.WorkerOptions{Queue: w.queue, Roster: w.tools, Fleets: fleetsOf(cfg), Lease: cfg.Serve.WorkerLease, Log: d.log})
	if err != nil {
		return &exitError{exitConfig, causeOf(err)}
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(d.cmd.Context()))
	w.stop = stop
	w.running.Go(func() { w.tools.Follow(ctx) })
	w.running.Go(func() { w.workers.Serve(ctx) })
	d.workshop = w
	return nil
}

func fleetsOf(cfg *config.Config) (out []gateway.Fleet) {
	for _, name := range slices.Sorted(maps.Keys(cfg.Workers)) {
		w := cfg.Workers[name]
		out = append(out, gateway.Fleet{Name: name, Token: w.Token.Secret(), Tools: w.Tools, Effects: w.Believed(), Keys: w.Keys, MaxConcurrency: w.MaxConcurrency})
	}
	return out
}

// sendAwayTime is how long workers have to go to another gateway.
const sendAwayTime = 5 * time.Second

// sendAway has the workers go to other gateways. Calls that they have go on, and their results are told
// to whoever serves the same store.
func (w *workshop) sendAway() {
	ctx, cancel := context.WithTimeout(context.Background(), sendAwayTime)
	defer cancel()
	w.workers.Close(ctx)
}

// close ends what runs for workers.
func (w *workshop) close() {
	w.sendAway()
	w.stop()
	w.running.Wait()
}

// withWorkers takes the connections of workers, and leaves everything else to next.
func (w *workshop) withWorkers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == fleet.Path {
			w.workers.ServeHTTP(rw, r)
			return
		}
		next.ServeHTTP(rw, r)
	})
}
