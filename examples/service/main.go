// Command service answers questions about orders over HTTP. Its runs survive the end of its process; a refund needs an approval and is
// never repeated. It neither authenticates nor authorizes approvers: its proxy must, and sets X-User.
//
//	curl -N -d 'Please refund the order "A-17".' http://127.0.0.1:8080/ask
//	curl http://127.0.0.1:8080/waiting
//	curl -X POST -H 'X-User: ann' http://127.0.0.1:8080/approve/DIGEST
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/agent"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/observe"
	"github.com/lathe-run/lathe/sim"
	"github.com/lathe-run/lathe/store/sqlite"
	"github.com/lathe-run/lathe/tool"
)

type order struct {
	Number string `json:"number" jsonschema:"description=such as A-17,pattern=^[A-Z]-[0-9]+$"`
}

var payments = flag.String("payments", "http://127.0.0.1:8081", "URL to which refunds are posted")

// findOrder only reads: the policy allows it. It returns "" for an order that does not exist.
func findOrder(_ context.Context, in order) (string, error) {
	return map[string]string{"A-17": "delivered"}[in.Number], nil
}

// refund writes: the policy asks for an approval, and a call that a killed process has begun is not repeated. It is not declared
// Idempotent because not every payment service honours the key; with one that does, Idempotent repeats such a call under the same key.
func refund(ctx context.Context, in order) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, *payments, strings.NewReader(in.Number))
	if err != nil {
		return "", err
	}
	req.Header.Set("Idempotency-Key", lathe.CallMetaFrom(ctx).IdempotencyKey)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode/100 != 2 {
		return "", tool.Fail(lathe.CodeExecutionFailed, "the payment service answered %s", resp.Status) // the model reads this
	}
	return "refunded", nil
}

// stream writes the events of a run as server-sent events. Deltas have no id: a client that reconnects finds their text in the ends of the
// turns. An error after the first event ends the stream, and the client reconnects.
func stream(w http.ResponseWriter, r *http.Request, a *agent.Agent, run string, after int64) {
	for e, err := range a.Events(r.Context(), run, after) {
		if err != nil && w.Header().Get("Content-Type") == "" {
			http.Error(w, err.Error(), lathe.CodeOf(err).HTTPStatus())
		}
		if err != nil {
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		if e.ID != 0 {
			fmt.Fprintf(w, "id: %d\n", e.ID)
		}
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e.Data.EventType(), must(json.Marshal(e)))
		_ = http.NewResponseController(w).Flush()
	}
}

func main() {
	addr, file := flag.String("addr", "127.0.0.1:8080", "address to listen on"), flag.String("store", "service.db", "SQLite file of the runs")
	flag.Parse()
	stopped, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	runs := must(sqlite.Open(*file, nil))
	defer func() { _ = runs.Close() }()
	logger, metrics := slog.Default(), observe.NewMetrics(nil)
	a := must(agent.New(sim.New(nil).Model("sim/demo"), &agent.Options{ // or a model of package provider
		Instructions: "You answer questions about orders.",
		Tools: []lathe.Tool{tool.Func("find_order", "Returns the state of an order.", findOrder, &tool.FuncOptions{Effect: lathe.ReadOnly}),
			tool.Func("refund", "Refunds an order.", refund, &tool.FuncOptions{Effect: lathe.Writes})},
		Store: runs, Sinks: []event.Sink{metrics, observe.NewSlog(logger)}, Log: logger}))
	resumed, err := a.Recover(stopped)                    // runs of a killed process continue, and what waited for an approval waits again
	logger.Info("recovered", "runs", resumed, "err", err) // err: of runs that cannot be resumed; the service starts all the same
	http.Handle("GET /metrics", metrics.Handler())
	http.HandleFunc("POST /ask", func(w http.ResponseWriter, r *http.Request) {
		question, _ := io.ReadAll(io.LimitReader(r.Body, 64<<10))
		if run, err := a.Start(r.Context(), lathe.User(string(question))); err != nil { // it continues if the client leaves
			http.Error(w, err.Error(), lathe.CodeOf(err).HTTPStatus())
		} else {
			stream(w, r, a, run, 0)
		}
	})
	http.HandleFunc("GET /runs/{run}", func(w http.ResponseWriter, r *http.Request) {
		after, _ := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64) // 0 without the header: all events
		stream(w, r, a, r.PathValue("run"), after)
	})
	http.HandleFunc("GET /waiting", func(w http.ResponseWriter, r *http.Request) {
		if waiting, err := a.Waiting(r.Context()); err != nil {
			http.Error(w, err.Error(), lathe.CodeOf(err).HTTPStatus())
		} else {
			_ = json.NewEncoder(w).Encode(map[string]any{"waiting": waiting})
		}
	})
	for path, decide := range map[string]func(context.Context, string, string) error{"POST /approve/": a.Approve, "POST /deny/": a.Deny} {
		http.HandleFunc(path+"{digest}", func(w http.ResponseWriter, r *http.Request) {
			if err := decide(r.Context(), r.PathValue("digest"), r.Header.Get("X-User")); err != nil {
				http.Error(w, err.Error(), lathe.CodeOf(err).HTTPStatus())
			}
		})
	}
	listener := must(net.Listen("tcp", *addr))
	logger.Info("ready", "addr", listener.Addr())
	srv := &http.Server{Handler: http.NewCrossOriginProtection().Handler(http.DefaultServeMux)} // pages of other origins cannot approve
	go func() { _ = srv.Serve(listener) }()
	<-stopped.Done()
	deadline, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	a.Close(deadline) // refuses new runs and waits for those in progress; the next process resumes the runs that take longer
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
