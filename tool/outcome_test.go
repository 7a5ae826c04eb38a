package tool_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

// writer is a tool that writes; verify may be nil.
func writer(calls *int, verify func(context.Context, *lathe.CallMeta) (tool.Recovery, error)) lathe.Tool {
	type in struct {
		A int `json:"a"`
	}
	return tool.Func("act", "Acts.", func(context.Context, in) (map[string]int, error) { *calls++; return map[string]int{"new": 1}, nil },
		&tool.FuncOptions{Effect: lathe.Writes, Show: []string{"old", "new"}, CheckOutcome: verify, Timeout: time.Minute})
}

func begun() tool.Call {
	return tool.Call{ToolCall: lathe.ToolCall{ID: "call_1", Name: "act", Arguments: `{"a":1}`}, Parked: &tool.Parked{}, Begun: true}
}

// A call of a tool that writes, begun by a process that is gone, ends as its tool says.
func TestCheckOutcome(t *testing.T) {
	t.Parallel()
	old := &lathe.Output{Data: json.RawMessage(`{"old":1,"hidden":2}`)}
	for name, tt := range map[string]struct {
		v     tool.Recovery
		err   error
		panic bool
		want  string // the answer, or its code
		calls int
	}{
		"done":                {tool.Recovery{Outcome: tool.RecoveryDone, Output: old}, nil, false, `{"old":1}`, 0},
		"failed":              {tool.Recovery{Outcome: tool.RecoveryDone, Output: &lathe.Output{IsError: true, Code: lathe.CodeTimeout}}, nil, false, "timeout", 0},
		"done without output": {tool.Recovery{Outcome: tool.RecoveryDone}, nil, false, "interrupted", 0},
		"not run":             {tool.Recovery{Outcome: tool.RecoveryNotRun}, nil, false, `{"new":1}`, 1},
		"unknown":             {tool.Recovery{Output: old}, nil, false, "interrupted", 0},
		"error":               {tool.Recovery{Outcome: tool.RecoveryNotRun}, errBoom, false, "interrupted", 0},
		"panic":               {tool.Recovery{Outcome: tool.RecoveryNotRun}, nil, true, "interrupted", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls, asked := 0, 0
			var errs []error
			var key string
			probe := open(t, nil, writer(&calls, nil))
			res, _, _ := one(t, probe, call("act", `{"a":1}`))
			if res.IsError || calls != 1 {
				t.Fatalf("%s", res.Content)
			}
			calls = 0
			w := open(t, &tool.Options{Policy: policy.AllowAll(), OnError: func(_ context.Context, info *lathe.CallInfo, err error) {
				if info.Run.RunID != "run_1" || info.Tool.Name != "act" || info.Call.ID != "call_1" {
					t.Errorf("reported %+v", info)
				}
				errs = append(errs, err)
			}}, writer(&calls, func(ctx context.Context, m *lathe.CallMeta) (tool.Recovery, error) {
				asked++
				if key = m.IdempotencyKey; m.RunID != "run_1" || m.CallID != "call_1" || m.Tool != "act" || key == "" || lathe.CallMetaFrom(ctx) != m {
					t.Errorf("asked about %+v", m)
				}
				if tt.panic {
					panic("x")
				}
				return tt.v, tt.err
			}))
			res, rec, out := one(t, w, begun())
			if got := res.Content; res.IsError && string(res.Code) != tt.want || !res.IsError && got != tt.want {
				t.Errorf("answered %s, want %s", got, tt.want)
			}
			if calls != tt.calls || asked != 1 {
				t.Errorf("%d calls, asked %d times", calls, asked)
			}
			if (len(errs) > 0) != (tt.err != nil || tt.panic) {
				t.Errorf("reported %v", errs)
			}
			if tt.v.Outcome == tool.RecoveryDone && tt.v.Output != nil && (!out.Calls[0].Executed || find[*event.ToolCallExecuted](t, rec) == nil) {
				t.Error("what ran before is not reported as executed")
			}
		})
	}
}

// A call of a tool that reads or is idempotent runs again without CheckOutcome. A tool without CheckOutcome that writes is
// answered interrupted.
func TestCheckOutcomeIsForToolsThatWrite(t *testing.T) {
	t.Parallel()
	for effect, want := range map[lathe.Effect]lathe.Code{lathe.ReadOnly: "", lathe.Idempotent: "", lathe.Writes: lathe.CodeInterrupted} {
		calls := 0
		plain := &fake{spec: lathe.ToolSpec{Name: "act", Schema: json.RawMessage(`{"type":"object"}`), Effect: effect, Allowlist: []string{"*"}},
			call: func(context.Context, json.RawMessage) (*lathe.Output, error) { calls++; return &lathe.Output{}, nil }}
		res, _, _ := one(t, open(t, nil, plain), begun())
		if res.Code != want || (calls == 1) != (want == "") {
			t.Errorf("%s: %q after %d calls", effect, res.Code, calls)
		}
	}
}

// A tool that does not find out within the time of a call is not waited for.
func TestCheckOutcomeHasTheTimeOfACall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls, free := 0, make(chan struct{})
		began := time.Now()
		r := newRunner(t, nil, writer(&calls, func(context.Context, *lathe.CallMeta) (tool.Recovery, error) {
			<-free
			return tool.Recovery{Outcome: tool.RecoveryNotRun}, nil
		}))
		res, _, _ := one(t, r.Begin(&lathe.RunInfo{RunID: "run_1"}, nil), begun())
		if took := time.Since(began); res.Code != lathe.CodeInterrupted || took < time.Minute || took > time.Minute+time.Second || calls != 0 {
			t.Errorf("%s after %s, %d calls", res.Code, took, calls)
		}
		if r.Abandoned() != 1 {
			t.Errorf("%d abandoned", r.Abandoned())
		}
		close(free)
	})
}
