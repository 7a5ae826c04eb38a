package tool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/leaktest"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func parallel(n int) *tool.Options {
	return &tool.Options{Policy: policy.AllowAll(), Settings: lathe.Settings{MaxParallel: n}, Limits: lathe.Limits{MaxToolCalls: 10_000, MaxRepeatedCalls: 10_000}}
}

// Calls to tools that only read run side by side up to the bound, all others alone and in order.
func TestCallsSideBySide(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int]string{
		0: "r0 r1 r2 w3 r4 r5 6s", 1: "r0 r1 r2 w3 r4 r5 6s",
		2: "r0 r1 r2 w3 r4 r5 4s", 8: "r0 r1 r2 w3 r4 r5 3s",
	} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var order []string
			running, writing := 0, false
			body := func(write bool) func(context.Context, json.RawMessage) (*lathe.Output, error) {
				return func(_ context.Context, args json.RawMessage) (*lathe.Output, error) {
					mu.Lock()
					running++
					if running > max(limit, 1) || writing || write && running > 1 {
						t.Errorf("limit %d: %d calls at once, writing %v", limit, running, writing || write)
					}
					writing = write
					mu.Unlock()
					<-time.After(time.Second)
					mu.Lock()
					running--
					writing = false
					order = append(order, strings.Trim(string(args), `{}":`))
					mu.Unlock()
					return &lathe.Output{Data: args}, nil
				}
			}
			write := reader("w", body(true))
			write.spec.Effect = lathe.Writes
			w := open(t, parallel(limit), reader("r", body(false)), write)
			var calls []tool.Call
			for i, name := range []string{"r", "r", "r", "w", "r", "r"} {
				calls = append(calls, call(name, fmt.Sprintf(`{"%s%d":""}`, name, i)))
			}
			start := time.Now()
			out := w.Execute(t.Context(), 1, calls, func(event.Data) {})
			elapsed := time.Since(start)
			slices.Sort(order[:3])
			slices.Sort(order[4:])
			if got := strings.Join(order, " ") + " " + elapsed.String(); got != want {
				t.Errorf("limit %d: %q, want %q", limit, got, want)
			}
			for i, m := range out.Messages {
				if got := result(t, m).Content; got != calls[i].Arguments {
					t.Errorf("limit %d: answer %d is %s", limit, i, got)
				}
			}
		})
	}
}

// Many turns of many calls: events are emitted one at a time, on the goroutine of Execute, in order for each
// call; seqs and answers in call order.
func TestParallelHammer(t *testing.T) {
	t.Parallel()
	f := reader("t", func(_ context.Context, args json.RawMessage) (*lathe.Output, error) {
		switch len(args) % 4 {
		case 0:
			panic(string(args))
		case 1:
			return nil, errBoom
		}
		return &lathe.Output{Data: args}, nil
	})
	f.spec.Concurrency, f.spec.CacheTTL = 5, time.Hour
	g := reader("u", echo)
	w := open(t, parallel(7), f, g)
	seq := 0
	for turn := range 30 {
		var calls []tool.Call
		for i := range 25 {
			name := "t"
			if i%9 == 8 {
				name = "u"
			}
			if i == 13 {
				name = "nope"
			}
			calls = append(calls, call(name, fmt.Sprintf(`{"i":%d,"pad":%q}`, i, strings.Repeat("x", turn%5))))
		}
		var busy atomic.Bool
		planned, last := []int{}, map[int]string{}
		out := w.Execute(t.Context(), turn, calls, func(d event.Data) {
			if !busy.CompareAndSwap(false, true) {
				t.Error("two events are emitted at once")
			}
			defer busy.Store(false)
			switch d := d.(type) {
			case *event.ToolCallProposed:
				last[d.Seq] += "P"
			case *event.ToolCallPlanned:
				planned = append(planned, d.Seq)
				last[d.Seq] += "p"
			case *event.ToolCallExecuted:
				last[d.Seq] += "x"
			case *event.ToolCallResult:
				last[d.Seq] += "r"
			}
		})
		if len(out.Messages) != len(calls) || len(planned) != len(calls) {
			t.Fatalf("turn %d: %d messages and %d planned for %d calls", turn, len(out.Messages), len(planned), len(calls))
		}
		for i := range calls {
			if out.Calls[i].Seq != seq || planned[i] != seq {
				t.Fatalf("turn %d: call %d has seq %d, planned as %d, want %d", turn, i, out.Calls[i].Seq, planned[i], seq)
			}
			if got := last[seq]; got != "Ppxr" && !(i == 13 && got == "Ppr") {
				t.Fatalf("turn %d: events of call %d are %q", turn, i, got)
			}
			if res := result(t, out.Messages[i]); !res.IsError && res.Content != calls[i].Arguments {
				t.Fatalf("turn %d: call %d got the answer of another: %s", turn, i, res.Content)
			}
			seq++
		}
		if out.Reason != "" {
			t.Fatalf("turn %d: reason %q", turn, out.Reason)
		}
	}
}

func TestParallelIsCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		w := open(t, parallel(3), reader("t", obeys))
		out := w.Execute(ctx, 1, []tool.Call{call("t", ""), call("t", ""), call("t", ""), call("t", ""), call("t", "")}, func(d event.Data) {
			if _, ok := d.(*event.ToolCallPlanned); ok {
				if n++; n == 3 {
					go cancel()
				}
			}
		})
		if got, want := codes(t, out), strings.TrimSpace(strings.Repeat("cancelled ", 5)); got != want {
			t.Errorf("codes %q, want %q", got, want)
		}
	})
}

// A consumer that panics leaves no goroutine behind (TestMain looks for them).
func TestParallelEmitPanics(t *testing.T) {
	t.Parallel()
	for at := range 6 {
		func() {
			defer func() {
				if recover() != "enough" {
					t.Error("the panic was lost")
				}
			}()
			n := 0
			w := open(t, parallel(3), reader("t", obeys))
			w.Execute(t.Context(), 1, []tool.Call{call("t", ""), call("t", ""), call("t", ""), call("t", "")}, func(event.Data) {
				if n++; n > at {
					panic("enough")
				}
			})
		}()
	}
}

func TestParallelParksCallsBehind(t *testing.T) {
	t.Parallel()
	opts := parallel(4)
	opts.Policy = policy.Tools{Ask: []string{"ask"}, Allow: []string{"ok"}}
	opts.Approver = approver(func(context.Context, *lathe.ApprovalRequest) (lathe.Approval, error) {
		return lathe.Approval{}, lathe.ErrPending
	})
	write := reader("ok", echo)
	write.spec.Effect = lathe.Writes
	w := open(t, opts, reader("ask", echo), write)
	out := w.Execute(t.Context(), 1, []tool.Call{call("ask", ""), call("ask", ""), call("ok", "")}, func(event.Data) {})
	if !out.Parked || len(out.Waiting) != 3 || len(out.Messages) != 0 || out.Waiting[2].Parked.Digest != "" {
		t.Errorf("outcome %+v", out)
	}
}
