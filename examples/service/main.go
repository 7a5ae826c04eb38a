// Command service answers questions about orders over HTTP. Its runs survive the end of its process; a refund needs an approval and is
// never repeated. main.go connects the parts, http.go has the endpoints, tools.go the tools.
//
//	go run ./examples/service
//	curl -N -d 'Please refund the order "A-17".' http://127.0.0.1:8080/ask
//	curl http://127.0.0.1:8080/waiting
//	curl -X POST -H 'X-User: ann' http://127.0.0.1:8080/approve/DIGEST
//	curl -N http://127.0.0.1:8080/runs/RUN_ID
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/agent"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/observe"
	"github.com/lathe-run/lathe/sim"
	"github.com/lathe-run/lathe/store/sqlite"
	"github.com/lathe-run/lathe/tool/builtin"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "address to listen on")
	file := flag.String("store", "service.db", "SQLite file of the runs")
	payments := flag.String("payments", "", "URL to which refunds are posted (default: a stand-in of this process)")
	flag.Parse()
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	stopped, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	listener := must(net.Listen("tcp", *addr))
	if *payments == "" {
		*payments = "http://" + listener.Addr().String() + "/payments"
	}

	runs := must(sqlite.Open(*file, nil))
	metrics := observe.NewMetrics(nil)
	a := must(agent.New(sim.New(nil).Model("sim/demo"), &agent.Options{ // or a model of package provider
		Instructions: "You answer questions about orders.",
		Tools:        []lathe.Tool{findOrder(), refund(*payments), builtin.Calculator()},
		Store:        runs,
		Sinks:        []event.Sink{metrics, observe.NewSlog(logger)},
		Log:          logger,
	}))
	// The runs of a killed process are resumed, and the calls that wait for an approval are listed again.
	resumed, err := a.Recover(stopped)
	if err != nil {
		logger.Error("runs could not be resumed", "error", err)
	}

	srv := &http.Server{Handler: handler(a, metrics.Handler()), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(listener) }()
	logger.Info("ready", "addr", listener.Addr().String(), "resumed", resumed)
	select {
	case <-stopped.Done():
	case err := <-served:
		logger.Error("serving failed", "error", err)
	}
	stop() // a second signal ends the process at once
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err = srv.Shutdown(ctx)
	left := a.Close(ctx) // the next process resumes runs that are left
	logger.Info("closed", "left", left, "error", errors.Join(err, runs.Close()))
}

// must returns v, or ends the program with the error.
func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
