package gateway_test

import (
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/gateway"
	"github.com/lathe-run/lathe/internal/secret"
	"github.com/lathe-run/lathe/internal/wire/fleet"
	"github.com/lathe-run/lathe/observe"
)

// counts polls until the workers of the fleet f stand so.
func (r *workerRig) counts(want observe.WorkerCount) {
	r.t.Helper()
	want.Fleet = "f"
	deadline := time.Now().Add(30 * time.Second)
	for {
		var got observe.WorkerCount
		for _, c := range r.w.Count() {
			if c.Fleet == "f" {
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
	r := newWorkerRig(t, gateway.WorkerOptions{})
	r.counts(observe.WorkerCount{})
	p := r.hello(workerToken, "w")
	r.counts(observe.WorkerCount{Connected: 1, Credit: 4, Connects: 1})
	r.put("k")
	f := p.next(fleet.Call)
	r.counts(observe.WorkerCount{Connected: 1, Credit: 4, InFlight: 1, Connects: 1})
	p.send(&fleet.Frame{Type: fleet.Error, Ref: f.Ref, NotRun: true})
	f = p.next(fleet.Call)
	p.send(&fleet.Frame{Type: fleet.Result, Ref: f.Ref, Output: &lathe.CallResult{}})
	p.send(&fleet.Frame{Type: fleet.Result, Ref: fleet.Ref{Key: "k", Attempt: 9}, Output: &lathe.CallResult{}})
	r.put("k2")
	f = p.next(fleet.Call)
	p.send(&fleet.Frame{Type: fleet.Error, Ref: f.Ref, Code: lathe.CodeTimeout})
	r.counts(observe.WorkerCount{Connected: 1, Credit: 4, Connects: 1, OK: 1, Failed: 1, NotRun: 1, Late: 1})
	_ = p.ws.CloseNow()
	r.counts(observe.WorkerCount{Connects: 1, OK: 1, Failed: 1, NotRun: 1, Late: 1})
	p = r.hello(workerToken, "w")
	r.counts(observe.WorkerCount{Connected: 1, Credit: 4, Connects: 2, OK: 1, Failed: 1, NotRun: 1, Late: 1})
	if err := r.w.Reload([]gateway.Fleet{{Name: "g", Token: secret.New(workerToken + "g")}}); err != nil {
		t.Fatal(err)
	}
	p.ended()
	r.gone("f")
}

// A result that is being kept when its fleet goes has the fleet counted no more.
func TestAFleetThatIsGoneIsNotCounted(t *testing.T) {
	t.Parallel()
	r := newWorkerRig(t, gateway.WorkerOptions{})
	r.queue.kept, r.queue.goOn = make(chan struct{}), make(chan struct{})
	p := r.hello(workerToken, "w")
	r.put("k")
	f := p.next(fleet.Call)
	p.send(&fleet.Frame{Type: fleet.Result, Ref: f.Ref, Output: &lathe.CallResult{}})
	<-r.queue.kept
	if err := r.w.Reload([]gateway.Fleet{{Name: "g", Token: secret.New(workerToken + "g")}}); err != nil {
		t.Fatal(err)
	}
	close(r.queue.goOn)
	p.ended()
	r.gone("f")
}

// gone polls until nothing is told of a fleet.
func (r *workerRig) gone(name string) {
	r.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for told := true; told; time.Sleep(10 * time.Millisecond) {
		told = false
		for _, c := range r.w.Count() {
			told = told || c.Fleet == name
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("the workers of %s are told of still", name)
		}
	}
}
