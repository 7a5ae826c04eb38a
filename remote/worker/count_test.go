package worker_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/remote/worker"
)

// A worker counts what came of its calls, and how often it has connected.
func TestWorkerCountsItsCalls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		net, n := &network{}, startNode(t, memory())
		defer n.stop()
		net.lead(n)
		var w *worker.Worker
		inside := make(chan worker.Count, 1)
		stop := startWorkerAs(t, net, &worker.Options{Concurrency: 3}, &w, does("good", lathe.ReadOnly, func(context.Context, json.RawMessage) (*lathe.Output, error) {
			inside <- w.Count()
			return &lathe.Output{Data: json.RawMessage(`1`)}, nil
		}), does("bad", lathe.ReadOnly, func(context.Context, json.RawMessage) (*lathe.Output, error) {
			return &lathe.Output{IsError: true}, nil
		}))
		n.has("good", true)
		n.run(t.Context(), "run_1", "good")
		n.run(t.Context(), "run_2", "bad")
		if got, want := <-inside, (worker.Count{Connected: true, Credit: 3, InFlight: 1, Connects: 1}); got != want {
			t.Errorf("within a call: %+v, want %+v", got, want)
		}
		synctest.Wait()
		if got, want := w.Count(), (worker.Count{Connected: true, Credit: 3, Connects: 1, OK: 1, Failed: 1}); got != want {
			t.Errorf("after them: %+v, want %+v", got, want)
		}
		net.fail(true)
		synctest.Wait()
		n.run(t.Context(), "run_3", "good")
		<-inside
		synctest.Wait()
		if got, want := w.Count(), (worker.Count{Connected: true, Credit: 3, Connects: 2, OK: 2, Failed: 1}); got != want {
			t.Errorf("connected again: %+v, want %+v", got, want)
		}
		stop()
		if got := w.Count(); got.Connected || got.Credit != 0 || got.InFlight != 0 {
			t.Errorf("at its end: %+v", got)
		}
	})
}
