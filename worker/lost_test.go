package worker_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
)

// A write whose frame was lost with its connection is made once, by the worker that comes back: nobody is
// told that its outcome is not known.
func TestCallThatNeverArrived(t *testing.T) {
	bubble(t, func(t *testing.T) {
		net, n := &network{}, startNode(t, memory())
		defer n.stop()
		net.lead(n)
		var ran atomic.Int64
		defer startWorker(t, net, nil, does("put", lathe.Writes, func(context.Context, json.RawMessage) (*lathe.Output, error) {
			ran.Add(1)
			return &lathe.Output{Data: json.RawMessage(`"put"`)}, nil
		}))()
		n.has("put", true)
		cut, began := net.mute(), time.Now()
		told := make(chan lathe.ToolResult, 1)
		go func() { told <- n.run(t.Context(), "run_1", "put") }()
		synctest.Wait() // it is started, and nobody has it
		cut()
		if res := <-told; res.IsError || ran.Load() != 1 || time.Since(began) > 5*time.Second {
			t.Errorf("%+v after %s; it ran %d times", res, time.Since(began), ran.Load())
		}
	})
}
