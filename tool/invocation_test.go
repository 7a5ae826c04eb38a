package tool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/tool"
)

// A tool that never gives its processor back is left behind like one that waits.
func TestToolThatSpinsIsAbandoned(t *testing.T) {
	t.Parallel()
	var stop atomic.Bool
	over := make(chan struct{})
	f := reader("t", func(context.Context, json.RawMessage) (*lathe.Output, error) {
		defer close(over)
		for !stop.Load() { //nolint:revive // it is what the test is about
		}
		return &lathe.Output{Data: json.RawMessage(`1`)}, nil
	})
	f.spec.Timeout = time.Millisecond
	r := newRunner(t, nil, f)
	res, _, _ := one(t, r.Begin(nil, nil), call("t", ""))
	stop.Store(true)
	<-over
	if res.Code != lathe.CodeTimeout || r.Abandoned() != 1 {
		t.Errorf("code %q, %d abandoned", res.Code, r.Abandoned())
	}
}

// All goroutines of a tool get the same CallMeta, whichever asks first, and it stays valid after the call.
func TestCallMetaIsAskedForBySeveral(t *testing.T) {
	t.Parallel()
	var kept context.Context
	var metas [8]*lathe.CallMeta
	f := reader("t", func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
		kept = ctx
		var all sync.WaitGroup
		for i := range metas {
			all.Go(func() { metas[i] = lathe.CallMetaFrom(ctx) })
		}
		all.Wait()
		return &lathe.Output{Data: json.RawMessage(`1`)}, nil
	})
	one(t, open(t, nil, f), call("t", ""))
	for i, m := range metas {
		if m != metas[0] || m.RunID != "run_1" || m.Tool != "t" || len(m.IdempotencyKey) != 32 {
			t.Errorf("asker %d: %+v", i, m)
		}
	}
	if lathe.CallMetaFrom(kept) != metas[0] {
		t.Error("another meta after the call")
	}
}

// Quick, slow and ending tools, of several runs at once: each result comes to its own call.
func TestQuickAndSlowTools(t *testing.T) {
	t.Parallel()
	f := reader("t", func(ctx context.Context, args json.RawMessage) (*lathe.Output, error) {
		var in struct{ Wait bool }
		if err := json.Unmarshal(args, &in); err != nil {
			return nil, err
		}
		if in.Wait {
			back := make(chan struct{})
			go func() { close(back) }()
			<-back
		}
		return echo(ctx, args)
	})
	r := newRunner(t, nil, f)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			w := r.Begin(nil, &tool.RunOptions{Limits: &lathe.Limits{MaxToolCalls: 100}})
			for i := range 40 {
				args := fmt.Sprintf(`{"n":%d,"wait":%v}`, i, i%2 == 1)
				c := tool.Call{ToolCall: lathe.ToolCall{ID: strconv.Itoa(i), Name: "t", Arguments: args}}
				out := w.Execute(t.Context(), 1, []tool.Call{c}, func(event.Data) {})
				if res, ok := out.Messages[0].Parts[0].(lathe.ToolResult); !ok || res.Code != "" || res.Content != args {
					t.Errorf("call %d: %q %s", i, res.Code, res.Content)
				}
			}
		})
	}
	all.Wait()
}
