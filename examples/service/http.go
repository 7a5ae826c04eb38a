package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/agent"
	"github.com/lathe-run/lathe/approval"
)

// handler serves an agent:
//
//	POST /ask               starts a run with the question in the body, and streams its events until it ends or waits for an approval
//	GET  /runs/{run}        streams the events of a run after Last-Event-ID
//	GET  /waiting           lists the calls that wait for an approval
//	POST /approve/{digest}  approves a call, and POST /deny/{digest} denies it; its run is resumed in the background
//	GET  /metrics           serves metrics for Prometheus
//
// It does not authenticate: a proxy does, and sets X-User.
func handler(a *agent.Agent, metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /ask", func(w http.ResponseWriter, r *http.Request) {
		question, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		run, err := a.Start(r.Context(), lathe.User(string(question))) // it goes on if the client leaves
		if err != nil {
			fail(w, err)
			return
		}
		stream(w, r, a, run)
	})
	mux.HandleFunc("GET /runs/{run}", func(w http.ResponseWriter, r *http.Request) { stream(w, r, a, r.PathValue("run")) })
	mux.HandleFunc("GET /waiting", func(w http.ResponseWriter, r *http.Request) {
		waiting, err := a.Waiting(r.Context())
		if err != nil {
			fail(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(waiting)
	})
	for path, verb := range map[string]approval.Verb{"/approve/": approval.Approve, "/deny/": approval.Deny} {
		mux.HandleFunc("POST "+path+"{digest}", func(w http.ResponseWriter, r *http.Request) {
			if err := a.Answer(r.Context(), r.PathValue("digest"), approval.Answer{Verb: verb, By: r.Header.Get("X-User")}); err != nil {
				fail(w, err)
			}
		})
	}
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("POST /payments", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "refunded") }) // in place of a real service
	return http.NewCrossOriginProtection().Handler(mux)                                                          // pages of other origins cannot approve
}

// stream writes the events of a run as server-sent events. Deltas have no id: a client that reconnects with Last-Event-ID gets the text of
// the turns that it has missed in the events of their ends.
func stream(w http.ResponseWriter, r *http.Request, a *agent.Agent, run string) {
	after, _ := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64) // 0 without the header: all events
	begun := false
	for e, err := range a.Events(r.Context(), run, after) {
		if err != nil && begun {
			panic(http.ErrAbortHandler) // the client sees a broken stream, not the end of the run
		}
		if err != nil {
			fail(w, err)
			return
		}
		if !begun {
			w.Header().Set("Content-Type", "text/event-stream")
			begun = true
		}
		data, err := json.Marshal(e)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		if e.ID != 0 {
			fmt.Fprintf(w, "id: %d\n", e.ID)
		}
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e.Data.EventType(), data)
		_ = http.NewResponseController(w).Flush()
	}
}

// fail answers with the status that stands for the code of an error.
func fail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	switch lathe.CodeOf(err) {
	case lathe.CodeNotFound:
		status = http.StatusNotFound
	case lathe.CodeConflict, lathe.CodeApprovalExpired:
		status = http.StatusConflict
	case lathe.CodeInvalidRequest:
		status = http.StatusBadRequest
	case lathe.CodeUnavailable:
		status = http.StatusServiceUnavailable
	}
	http.Error(w, err.Error(), status)
}
