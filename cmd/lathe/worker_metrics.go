package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/lathe-run/lathe/internal/daemon"
	"github.com/lathe-run/lathe/observe"
	"github.com/lathe-run/lathe/remote/worker"
)

// workerMetricsTime limits the time of a request for metrics, and how long the end of the worker waits for it.
const workerMetricsTime = 5 * time.Second

// serveWorkerMetrics serves the metrics, the liveness and the readiness of a worker, until stop is called.
func serveWorkerMetrics(ctx context.Context, out io.Writer, addr string, m *observe.Metrics, w *worker.Worker) (stop func(), err error) {
	m.CountWorkers(func() []observe.WorkerCount {
		c := w.Count()
		n := observe.WorkerCount{Credit: c.Credit, InFlight: c.InFlight, Connects: c.Connects, OK: c.OK, Failed: c.Failed, NotRun: c.NotRun, Late: c.Late}
		if c.Connected {
			n.Connected = 1
		}
		return []observe.WorkerCount{n}
	})
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.Handler())
	mux.HandleFunc("GET /livez", func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, "ok\n") }) // the client may have disconnected
	ready := func(rw http.ResponseWriter, _ *http.Request) {
		if !w.Count().Connected {
			http.Error(rw, "not connected", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(rw, "ok\n") // the client may have disconnected
	}
	mux.HandleFunc("GET /readyz", ready)
	mux.HandleFunc("GET /healthz", ready)
	ln, err := daemon.Listen(ctx, addr, "--metrics-addr")
	if err != nil {
		return nil, err
	}
	srv := &http.Server{Handler: mux, ReadTimeout: workerMetricsTime, WriteTimeout: workerMetricsTime, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = srv.Serve(ln) // ends with Shutdown
	}()
	fmt.Fprintf(out, "metrics are served on http://%s/metrics\n", ln.Addr())
	return func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), workerMetricsTime)
		defer cancel()
		if srv.Shutdown(end) != nil {
			_ = srv.Close() // interrupts requests that have not finished in time
		}
		<-over
	}, nil
}
