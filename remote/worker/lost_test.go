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

// A write whose frame was lost with its connection is made once, by the worker that reconnects, and its
// outcome is never reported as unknown.
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
		received := make(chan lathe.ToolResult, 1)
		go func() { received <- n.run(t.Context(), "run_1", "put") }()
		synctest.Wait() // the call is started, and no worker has received it
		cut()
		if res := <-received; res.IsError || ran.Load() != 1 || time.Since(began) > 5*time.Second {
			t.Errorf("%+v after %s; it ran %d times", res, time.Since(began), ran.Load())
		}
	})
}
