package tool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/tool"
)

// keeper is a policy that keeps what it is asked about, and asks about the calls of the tool asks.
type keeper struct {
	asks string

	mu   sync.Mutex
	seen []*lathe.CallInfo
}

func (*keeper) Tool(*lathe.RunInfo, *lathe.ToolSpec) lathe.Verdict {
	return lathe.Verdict{Decision: lathe.Allow}
}
func (*keeper) Step(*lathe.StepInfo) lathe.Verdict { return lathe.Verdict{Decision: lathe.Allow} }
func (k *keeper) Call(c *lathe.CallInfo) lathe.Verdict {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen = append(k.seen, c)
	_ = append(c.Used, lathe.ToolUse{Name: "appended"}) // must not reach the list of another call
	if c.Tool.Name == k.asks {
		return lathe.Verdict{Decision: lathe.Ask}
	}
	return lathe.Verdict{Decision: lathe.Allow}
}

// A policy may keep the calls that it is asked about: later calls, of this run or of others, do not change them.
func TestPolicyMayKeepCallInfo(t *testing.T) {
	t.Parallel()
	k := &keeper{}
	r, err := tool.NewRunner(newSet(t, benchTool()), &tool.Options{Policy: k})
	if err != nil {
		t.Fatal(err)
	}
	for run := range 3 {
		w := r.Begin(&lathe.RunInfo{RunID: fmt.Sprint("run_", run)}, nil)
		for i := range 3 {
			w.Execute(t.Context(), i+1, []tool.Call{{ToolCall: lathe.ToolCall{ID: fmt.Sprint("call_", i), Name: "weather",
				Arguments: fmt.Sprintf(`{"city":"city %d of run %d"}`, i, run)}}}, func(event.Data) {})
		}
	}
	if len(k.seen) != 9 {
		t.Fatalf("%d calls, want 9", len(k.seen))
	}
	for n, c := range k.seen {
		run, i := n/3, n%3
		want := fmt.Sprintf(`{"city":"city %d of run %d"}`, i, run)
		if c.Call.ID != fmt.Sprint("call_", i) || c.Call.Arguments != want || string(c.Args) != want || c.Turn != i+1 || c.Run.RunID != fmt.Sprint("run_", run) {
			t.Errorf("call %d is now %+v, %s in %s", n, *c.Call, c.Args, c.Run.RunID)
		}
		if used := slices.IndexFunc(c.Used, func(u lathe.ToolUse) bool { return u.Name == "weather" && u.Calls == i }) >= 0; used != (i > 0) {
			t.Errorf("call %d: used is now %+v", n, c.Used)
		}
	}
}

// The list of used tools of each call is its own: with many tools, with more calls than share a block of memory, and of
// calls that run side by side.
func TestPolicyMayKeepUsedTools(t *testing.T) {
	t.Parallel()
	const tools, runs = 12, 5
	var set []lathe.Tool
	for i := range tools {
		set = append(set, reader(fmt.Sprint("tool_", i), echo))
	}
	for name, parallel := range map[string]int{"in order": 1, "side by side": 4} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := &keeper{}
			r := newRunner(t, &tool.Options{Policy: k, Settings: lathe.Settings{MaxParallel: parallel}}, set...)
			for run := range runs {
				w := r.Begin(&lathe.RunInfo{RunID: fmt.Sprint(run)}, nil)
				var calls []tool.Call
				for i := range tools {
					calls = append(calls, call(fmt.Sprint("tool_", i), "{}"))
				}
				w.Execute(t.Context(), 1, calls, func(event.Data) {})
			}
			if len(k.seen) != tools*runs {
				t.Fatalf("%d calls, want %d", len(k.seen), tools*runs)
			}
			for _, c := range k.seen {
				var want, got []string
				for i := range c.Seq {
					want = append(want, fmt.Sprintf("tool_%d 1", i))
				}
				for _, u := range c.Used {
					got = append(got, fmt.Sprint(u.Name, " ", u.Calls))
				}
				if !slices.Equal(got, want) {
					t.Errorf("run %s, call %d: used is now %q, want %q", c.Run.RunID, c.Seq, got, want)
				}
			}
		})
	}
}

// A policy that is asked again, about the arguments of an approver, keeps what it was asked first.
func TestPolicyMayKeepCallInfoOfEditedCall(t *testing.T) {
	t.Parallel()
	k := &keeper{asks: "t"}
	edit := approver(func(context.Context, *lathe.ApprovalRequest) (lathe.Approval, error) {
		return lathe.Approval{Approved: true, Arguments: json.RawMessage(`{"n":2}`)}, nil
	})
	w := open(t, &tool.Options{Policy: k, Approver: edit}, reader("t", echo))
	w.Execute(t.Context(), 1, []tool.Call{call("t", `{"n":1}`)}, func(event.Data) {})
	if len(k.seen) != 2 {
		t.Fatalf("the policy was asked %d times, want 2", len(k.seen))
	}
	if first, second := string(k.seen[0].Args), string(k.seen[1].Args); first != `{"n":1}` || second != `{"n":2}` {
		t.Errorf("the policy was asked about %s and %s", first, second)
	}
}
