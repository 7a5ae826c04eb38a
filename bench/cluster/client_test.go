package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// A parkedRun is a node with one run, which is parked for a reason until done is closed. act is called with the path of each POST;
// it returns the status of the answer, and whether the stream then has a keep-alive. alive has a value for each keep-alive.
type parkedRun struct {
	reason string
	done   chan struct{}
	alive  chan struct{}
	act    func(path string) (status int, keepAlive bool)
}

func (p *parkedRun) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodPost:
		status, keepAlive := p.act(r.URL.Path)
		w.WriteHeader(status)
		fmt.Fprint(w, `{}`)
		if keepAlive {
			p.alive <- struct{}{}
		}
	case r.URL.Path == "/api/runs/run_1/events":
		fmt.Fprint(w, "event: RunStarted\nid: 1\ndata: {}\n\nevent: RunPaused\nid: 2\ndata: {}\n\n")
		for over := false; !over; {
			_ = http.NewResponseController(w).Flush() // the client may be gone
			select {
			case <-p.alive:
				fmt.Fprint(w, ": keep-alive\n\n")
			case <-p.done:
				over = true
			case <-r.Context().Done():
				return
			}
		}
		fmt.Fprint(w, "event: RunFinished\nid: 3\ndata: {}\n\n")
	default:
		digest := ""
		if p.reason == "awaiting_approval" {
			digest = "d"
		}
		fmt.Fprintf(w, `{"status":"parked","reason":%q,"open_calls":[{"tool_call_id":"c1","args_digest":%q}]}`, p.reason, digest)
	}
}

// watch has a client see the run to its end. It fails if the client waits.
func (p *parkedRun) watch(t *testing.T) (*balancer, *run, bool) {
	t.Helper()
	p.done, p.alive = make(chan struct{}), make(chan struct{}, 1)
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	b := newBalancer([]*node{{base: server.URL}})
	t.Cleanup(b.http.CloseIdleConnections)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r := &run{id: "run_1"}
	saw := b.see(ctx, r)
	if ctx.Err() != nil {
		t.Fatal("the client waits for an interrupted run and does not resume it")
	}
	return b, r, saw
}

// A client resumes a run that is parked as interrupted, and again if a node has acknowledged that and died.
func TestInterruptedRunsAreResumed(t *testing.T) {
	asked := 0
	p := &parkedRun{reason: "interrupted"}
	p.act = func(path string) (int, bool) {
		if path != "/api/runs/run_1/resume" {
			t.Errorf("POST %s", path)
		}
		if asked++; asked == 2 {
			close(p.done)
		}
		return http.StatusAccepted, asked < 2
	}
	if b, _, saw := p.watch(t); !saw || asked != 2 || len(b.failed) > 0 {
		t.Errorf("saw the end: %v, resumed %d times, failed: %v", saw, asked, b.failed)
	}
}

// A client does not repeat an approval that was acknowledged.
func TestApprovalsAreGivenOnce(t *testing.T) {
	asked := 0
	p := &parkedRun{reason: "awaiting_approval"}
	p.act = func(string) (int, bool) {
		asked++
		close(p.done)
		return http.StatusAccepted, false
	}
	if b, r, saw := p.watch(t); !saw || asked != 1 || len(r.approved) != 1 || len(b.failed) > 0 {
		t.Errorf("saw the end: %v, asked %d times, approved %v, failed: %v", saw, asked, r.approved, b.failed)
	}
}

// A client gives a run up if a request failed on which the run waits.
func TestRunsOfFailedRequestsAreGivenUp(t *testing.T) {
	for _, reason := range []string{"awaiting_approval", "interrupted"} {
		p := &parkedRun{reason: reason, act: func(string) (int, bool) { return http.StatusInternalServerError, false }}
		if b, _, saw := p.watch(t); saw || len(b.failed) != 1 {
			t.Errorf("%s: saw the end: %v, failed: %v", reason, saw, b.failed)
		}
	}
}
