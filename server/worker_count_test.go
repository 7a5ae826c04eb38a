package server_test

import (
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire/workers"
	"github.com/lathe-run/lathe/observe"
	"github.com/lathe-run/lathe/remote"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/server"
)

// counts polls until the workers of the fleet f stand so.
func (r *workerRig) counts(want observe.WorkerCount) {
	r.t.Helper()
	want.Pool = "f"
	deadline := time.Now().Add(30 * time.Second)
	for {
		var got observe.WorkerCount
		for _, c := range r.w.Count() {
			if c.Pool == "f" {
				got = c
			}
		}
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("the workers stand so: %+v, want %+v", got, want)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// The gateway counts workers, and calls by what came of them, for each token of its configuration and for no other.
func TestWorkersAreCounted(t *testing.T) {
	t.Parallel()
	r := newWorkerRig(t, server.WorkerOptions{})
	r.counts(observe.WorkerCount{})
	p := r.hello(workerToken, "w")
	r.counts(observe.WorkerCount{Connected: 1, Credit: 4, Connects: 1})
	r.put("k")
	f := p.next(workers.Call)
	r.counts(observe.WorkerCount{Connected: 1, Credit: 4, InFlight: 1, Connects: 1})
	p.send(&workers.Frame{Type: workers.Error, Ref: f.Ref, NotRun: true})
	f = p.next(workers.Call)
	p.send(&workers.Frame{Type: workers.Result, Ref: f.Ref, Output: &remote.Result{}})
	p.send(&workers.Frame{Type: workers.Result, Ref: workers.Ref{Key: "k", Attempt: 9}, Output: &remote.Result{}})
	r.put("k2")
	f = p.next(workers.Call)
	p.send(&workers.Frame{Type: workers.Error, Ref: f.Ref, Code: lathe.CodeTimeout})
	r.counts(observe.WorkerCount{Connected: 1, Credit: 4, Connects: 1, OK: 1, Failed: 1, NotRun: 1, Late: 1})
	_ = p.ws.CloseNow()
	r.counts(observe.WorkerCount{Connects: 1, OK: 1, Failed: 1, NotRun: 1, Late: 1})
	p = r.hello(workerToken, "w")
	r.counts(observe.WorkerCount{Connected: 1, Credit: 4, Connects: 2, OK: 1, Failed: 1, NotRun: 1, Late: 1})
	if err := r.w.Reload([]server.WorkerPool{{Name: "g", Token: secret.New(workerToken + "g")}}); err != nil {
		t.Fatal(err)
	}
	p.ended()
	r.gone("f")
}

// A result that is being kept when its fleet goes has the fleet counted no more.
func TestAFleetThatIsGoneIsNotCounted(t *testing.T) {
	t.Parallel()
	r := newWorkerRig(t, server.WorkerOptions{})
	r.queue.kept, r.queue.goOn = make(chan struct{}), make(chan struct{})
	p := r.hello(workerToken, "w")
	r.put("k")
	f := p.next(workers.Call)
	p.send(&workers.Frame{Type: workers.Result, Ref: f.Ref, Output: &remote.Result{}})
	<-r.queue.kept
	if err := r.w.Reload([]server.WorkerPool{{Name: "g", Token: secret.New(workerToken + "g")}}); err != nil {
		t.Fatal(err)
	}
	close(r.queue.goOn)
	p.ended()
	r.gone("f")
}

// gone polls until the counts of a worker pool are removed.
func (r *workerRig) gone(name string) {
	r.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for told := true; told; time.Sleep(10 * time.Millisecond) {
		told = false
		for _, c := range r.w.Count() {
			told = told || c.Pool == name
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("the workers of %s are told of still", name)
		}
	}
}
