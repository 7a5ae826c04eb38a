package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

type approver func(ctx context.Context, req *lathe.ApprovalRequest) (lathe.Approval, error)

func (a approver) Approve(ctx context.Context, req *lathe.ApprovalRequest) (lathe.Approval, error) {
	return a(ctx, req)
}

func asking(a approver) *tool.Options {
	return &tool.Options{Policy: policy.Tools{Ask: []string{"ask"}, Allow: []string{"ok"}}, Approver: a}
}

func TestApproval(t *testing.T) {
	t.Parallel()
	schema := `{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}`
	for _, tt := range []struct {
		name     string
		answer   approver
		want     lathe.Code
		ran      string // the arguments that the tool got
		decision string
		events   string
	}{
		{"approved", func(context.Context, *lathe.ApprovalRequest) (lathe.Approval, error) {
			return lathe.Approval{Approved: true, By: "eve"}, nil
		}, "", `{"n":1}`, "approved by eve", "Executed Result"},
		{"edited", func(context.Context, *lathe.ApprovalRequest) (lathe.Approval, error) {
			return lathe.Approval{Approved: true, By: "eve", Arguments: json.RawMessage(`{"n":2}`)}, nil
		}, "", `{"n":2}`, "edited by eve", "Executed Result"},
		{"edited into what the schema refuses", func(context.Context, *lathe.ApprovalRequest) (lathe.Approval, error) {
			return lathe.Approval{Approved: true, Arguments: json.RawMessage(`{"m":2}`)}, nil
		}, lathe.CodeInvalidArguments, "", "edited by ", "Result"},
		{"edited into no JSON", func(context.Context, *lathe.ApprovalRequest) (lathe.Approval, error) {
			return lathe.Approval{Approved: true, Arguments: json.RawMessage(`{"n":`)}, nil
		}, lathe.CodeInvalidJSON, "", "edited by ", "Result"},
		{"edited into too much", func(context.Context, *lathe.ApprovalRequest) (lathe.Approval, error) {
			return lathe.Approval{Approved: true, Arguments: json.RawMessage(strings.Repeat(" ", 300_000) + "{}")}, nil
		}, lathe.CodeArgumentsTooLarge, "", "edited by ", "Result"},
		{"edited into nothing", func(context.Context, *lathe.ApprovalRequest) (lathe.Approval, error) {
			return lathe.Approval{Approved: true, Arguments: json.RawMessage{}}, nil
		}, lathe.CodeInvalidJSON, "", "edited by ", "Result"},
		{"denied", func(context.Context, *lathe.ApprovalRequest) (lathe.Approval, error) {
			return lathe.Approval{By: "eve", ReasonCode: "denied_by_user"}, nil
		}, lathe.CodeApprovalDenied, "", "denied by eve", "Result"},
		{"arguments do not make an approval", func(context.Context, *lathe.ApprovalRequest) (lathe.Approval, error) {
			return lathe.Approval{Arguments: json.RawMessage(`{}`)}, nil
		}, lathe.CodeApprovalDenied, "", "denied by ", "Result"},
		{"approver fails", func(context.Context, *lathe.ApprovalRequest) (lathe.Approval, error) {
			return lathe.Approval{Approved: true}, errBoom
		}, lathe.CodeApprovalDenied, "", "denied by ", "Result"},
		{"approver panics", func(context.Context, *lathe.ApprovalRequest) (lathe.Approval, error) { panic(errBoom) },
			lathe.CodeApprovalDenied, "", "denied by ", "Result"},
		{"no approver answers", func(ctx context.Context, _ *lathe.ApprovalRequest) (lathe.Approval, error) {
			<-ctx.Done()
			return lathe.Approval{}, ctx.Err()
		}, lathe.CodeApprovalExpired, "", "expired by ", "Result"},
		{"the answer comes too late", func(ctx context.Context, _ *lathe.ApprovalRequest) (lathe.Approval, error) {
			<-ctx.Done()
			return lathe.Approval{Approved: true}, nil
		}, lathe.CodeApprovalExpired, "", "expired by ", "Result"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ran := ""
				f := reader("ask", func(_ context.Context, args json.RawMessage) (*lathe.Output, error) {
					ran = string(args)
					return &lathe.Output{Data: json.RawMessage(`1`)}, nil
				})
				f.spec.Schema = json.RawMessage(schema)
				w := open(t, asking(tt.answer), f)
				res, rec, _ := one(t, w, call("ask", `{"n":1}`))
				if res.Code != tt.want || ran != tt.ran {
					t.Errorf("code %q ran with %q, want %q and %q", res.Code, ran, tt.want, tt.ran)
				}
				if got, want := rec.types(), "Proposed Planned ApprovalRequested ApprovalResolved "+tt.events; got != want {
					t.Errorf("events %q, want %q", got, want)
				}
				resolved, asked := find[*event.ApprovalResolved](t, rec), find[*event.ApprovalRequested](t, rec)
				if got := resolved.Decision + " by " + resolved.By; got != tt.decision {
					t.Errorf("resolved %q, want %q", got, tt.decision)
				}
				if (resolved.Decision == "edited") != (resolved.Arguments != nil) {
					t.Errorf("resolved %+v", resolved)
				}
				if string(asked.Arguments) != `{"n":1}` || len(asked.ArgsDigest) != 64 || asked.Rule != policy.RuleAsked ||
					!asked.ExpiresAt.Equal(asked.ExpiresAt.Truncate(time.Hour)) {
					t.Errorf("asked %+v", asked)
				}
				if r := find[*event.ToolCallResult](t, rec); r.PolicyDecision != "ask" || tt.want == lathe.CodeApprovalExpired && r.Limit != "approval_ttl" {
					t.Errorf("result %+v", r)
				}
				if res.Code != "" && strings.Contains(res.Content, "boom") {
					t.Errorf("answer %s", res.Content)
				}
			})
		})
	}
}

// An approver cannot make a call that the policy denies.
func TestEditedArgumentsMeetThePolicyAgain(t *testing.T) {
	t.Parallel()
	opts := asking(func(context.Context, *lathe.ApprovalRequest) (lathe.Approval, error) {
		return lathe.Approval{Approved: true, Arguments: json.RawMessage(`{"path":"/etc"}`)}, nil
	})
	opts.Policy = policy.All(opts.Policy, noEtc{})
	res, rec, _ := one(t, open(t, opts, reader("ask", echo)), call("ask", `{"path":"/tmp"}`))
	if res.Code != lathe.CodePolicyDenied || find[*event.ToolCallResult](t, rec).PolicyRule != "no_etc" {
		t.Errorf("answer %+v", res)
	}
}

type noEtc struct{}

func (noEtc) Tool(*lathe.RunInfo, *lathe.ToolSpec) lathe.Verdict {
	return lathe.Verdict{Decision: lathe.Allow}
}
func (noEtc) Step(*lathe.StepInfo) lathe.Verdict { return lathe.Verdict{Decision: lathe.Allow} }
func (noEtc) Call(c *lathe.CallInfo) lathe.Verdict {
	if strings.Contains(string(c.Args), "/etc") {
		return lathe.Verdict{Rule: "no_etc"}
	}
	return lathe.Verdict{Decision: lathe.Allow, Rule: "zz"}
}

func TestParkedCalls(t *testing.T) {
	t.Parallel()
	answers := map[string]lathe.Approval{} // by digest
	var asked []string
	opts := asking(func(_ context.Context, req *lathe.ApprovalRequest) (lathe.Approval, error) {
		asked = append(asked, req.Call.ID)
		if a, ok := answers[req.Digest]; ok {
			return a, nil
		}
		return lathe.Approval{}, lathe.ErrPending
	})
	var ran []string
	body := func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
		ran = append(ran, lathe.CallMetaFrom(ctx).CallID)
		return &lathe.Output{Data: json.RawMessage(`1`)}, nil
	}
	w := open(t, opts, reader("ask", body), reader("ok", body))
	id := func(id, name, args string) tool.Call {
		return tool.Call{ToolCall: lathe.ToolCall{ID: id, Name: name, Arguments: args}}
	}
	rec := &recorder{}
	out := w.Execute(t.Context(), 1, []tool.Call{id("a", "ok", "{}"), id("b", "ask", "{}"), id("c", "ok", "{}"), id("d", "ok", "["), id("e", "ask", "{}")}, rec.emit)
	if !out.Parked || len(out.Pending) != 3 || len(out.Waiting) != 3 || codes(t, out) != " invalid_json" || strings.Join(ran, " ") != "a" {
		t.Fatalf("outcome %+v after %v", out, ran)
	}
	if got, want := rec.types(), "Proposed Planned Executed Result Proposed Planned ApprovalRequested Proposed Planned Proposed Planned Result Proposed Planned ApprovalRequested"; got != want {
		t.Errorf("events %q, want %q", got, want)
	}
	if diff := cmp.Diff([]string{"b", "e"}, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}

	// No approver has answered yet: the calls stay parked, and no event is emitted a second time.
	rec = &recorder{}
	out = w.Execute(t.Context(), 1, out.Waiting, rec.emit)
	if !out.Parked || len(out.Waiting) != 3 || len(out.Messages) != 0 || rec.types() != "" {
		t.Fatalf("outcome %+v, events %q", out, rec.types())
	}

	answers[out.Waiting[0].Parked.Digest] = lathe.Approval{Approved: true}
	answers[out.Waiting[2].Parked.Digest] = lathe.Approval{ReasonCode: "denied_by_user"}
	rec = &recorder{}
	waiting := out.Waiting
	out = w.Execute(t.Context(), 1, waiting, rec.emit)
	if out.Parked || codes(t, out) != "  approval_denied" || strings.Join(ran, " ") != "a b c" {
		t.Errorf("outcome %+v after %v", out, ran)
	}
	if got, want := rec.types(), "ApprovalResolved Executed Result Executed Result ApprovalResolved Result"; got != want {
		t.Errorf("events %q, want %q", got, want)
	}
	if seq := find[*event.ToolCallResult](t, rec).Seq; seq != 1 {
		t.Errorf("seq %d, want that of the plan", seq)
	}

	// An approval is good once: what has been answered is not answered again.
	rec = &recorder{}
	if out = w.Execute(t.Context(), 1, waiting, rec.emit); len(out.Messages) != 0 || len(rec.events) != 0 || len(ran) != 3 {
		t.Errorf("answered calls ran again: %+v %v", out, ran)
	}
}

// A call that is approved at once, while one before it waits, is not run out of order. It is asked
// for again: an approval is not kept.
func TestApprovedWhileAnotherWaits(t *testing.T) {
	t.Parallel()
	var asked []string
	pending := true
	opts := asking(func(_ context.Context, req *lathe.ApprovalRequest) (lathe.Approval, error) {
		asked = append(asked, req.Call.ID)
		if req.Call.ID == "a" && pending {
			return lathe.Approval{}, lathe.ErrPending
		}
		return lathe.Approval{Approved: true}, nil
	})
	w := open(t, opts, reader("ask", echo))
	out := w.Execute(t.Context(), 1, []tool.Call{{ToolCall: lathe.ToolCall{ID: "a", Name: "ask"}}, {ToolCall: lathe.ToolCall{ID: "b", Name: "ask"}}}, func(event.Data) {})
	if len(out.Messages) != 0 || len(out.Waiting) != 2 {
		t.Fatalf("outcome %+v", out)
	}
	pending = false
	out = w.Execute(t.Context(), 1, out.Waiting, func(event.Data) {})
	if got := codes(t, out); got != " " || strings.Join(asked, "") != "abab" {
		t.Errorf("codes %q after asking for %v", got, asked)
	}
}

func TestParkedCallOfAnotherWork(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	answer := lathe.ErrPending
	opts := asking(func(context.Context, *lathe.ApprovalRequest) (lathe.Approval, error) {
		return lathe.Approval{Approved: answer == nil}, answer
	})
	opts.Now = func() time.Time { return now }
	f := reader("ask", returns(`1`))
	r := newRunner(t, opts, f)
	run := &lathe.RunInfo{RunID: "run_1"}
	rec := &recorder{}
	waiting := r.Begin(run, nil).Execute(t.Context(), 1, []tool.Call{call("ask", "{}")}, rec.emit).Waiting
	answer = nil
	resume := func(change func(*tool.Parked)) (lathe.ToolResult, string) {
		t.Helper()
		p := *waiting[0].Parked
		change(&p)
		c := tool.Call{ToolCall: waiting[0].ToolCall, Parked: &p}
		w := r.Begin(run, &tool.RunOptions{Resumed: &tool.Resumed{Planned: 1}, History: []lathe.Message{{Role: lathe.RoleAssistant, Parts: []lathe.Part{c.ToolCall}}}})
		res, rec, _ := one(t, w, c)
		return res, rec.types()
	}
	if res, events := resume(func(*tool.Parked) {}); res.IsError || events != "ApprovalResolved Executed Result" {
		t.Errorf("%+v, events %q", res, events)
	}
	if res, events := resume(func(p *tool.Parked) { p.Digest = strings.Repeat("0", 64) }); res.Code != lathe.CodeApprovalExpired || events != "ApprovalResolved Result" {
		t.Errorf("an approval of something else: %+v, events %q", res, events)
	}
	now = now.Add(time.Hour)
	if res, _ := resume(func(*tool.Parked) {}); res.Code != lathe.CodeApprovalExpired {
		t.Errorf("after its time: %+v", res)
	}
}

// An approval that was asked for is resolved, also where the call does not come to it any more.
func TestParkedCallThatEndsBeforeItsApproval(t *testing.T) {
	t.Parallel()
	never := func(context.Context, *lathe.ApprovalRequest) (lathe.Approval, error) {
		t.Error("asked again")
		return lathe.Approval{Approved: true}, nil
	}
	strict := reader("ask", returns(`1`))
	strict.spec.Schema = json.RawMessage(`{"type":"object","required":["n"]}`)
	for name, tt := range map[string]struct {
		tool     lathe.Tool
		opts     *tool.Options
		run      tool.RunOptions
		refuse   lathe.Code
		want     lathe.Code
		resolved string
		events   string
	}{
		"the tool is gone":         {tool: reader("other", returns(`1`)), want: lathe.CodeUnknownTool, resolved: "denied: changed"},
		"its schema has changed":   {tool: strict, want: lathe.CodeInvalidArguments, resolved: "denied: changed"},
		"the policy has changed":   {opts: &tool.Options{Policy: policy.Tools{}}, want: lathe.CodePolicyDenied, resolved: "denied: changed"},
		"no approver can be asked": {opts: &tool.Options{Policy: policy.Tools{Ask: []string{"ask"}}}, want: lathe.CodePolicyDenied, resolved: "denied: changed"},
		"a limit has changed":      {run: tool.RunOptions{Limits: &lathe.Limits{MaxToolArgsBytes: 1}}, want: lathe.CodeArgumentsTooLarge, resolved: "denied: changed"},
		"the run is over":          {refuse: lathe.CodeCancelled, want: lathe.CodeCancelled, resolved: "denied: cancelled"},
		"no approver need be asked": {opts: &tool.Options{Policy: policy.AllowAll(), Approver: approver(never)}, resolved: "approved: changed",
			events: "ApprovalResolved Executed Result"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := &lathe.RunInfo{RunID: "run_1"}
			pending := asking(func(context.Context, *lathe.ApprovalRequest) (lathe.Approval, error) {
				return lathe.Approval{}, lathe.ErrPending
			})
			waiting := newRunner(t, pending, reader("ask", returns(`1`))).Begin(run, nil).
				Execute(t.Context(), 1, []tool.Call{call("ask", "{}")}, (&recorder{}).emit).Waiting
			if tt.tool == nil {
				tt.tool = reader("ask", returns(`1`))
			}
			if tt.opts == nil {
				tt.opts = asking(never)
			}
			c := waiting[0]
			c.Refuse = tt.refuse
			tt.run.Resumed = &tool.Resumed{Planned: 1}
			res, rec, _ := one(t, newRunner(t, tt.opts, tt.tool).Begin(run, &tt.run), c)
			if tt.events == "" {
				tt.events = "ApprovalResolved Result"
			}
			if res.Code != tt.want || rec.types() != tt.events {
				t.Errorf("code %q, events %q; want %q and %q", res.Code, rec.types(), tt.want, tt.events)
			}
			if d := find[*event.ApprovalResolved](t, rec); d.Decision+": "+d.ReasonCode != tt.resolved || d.ToolCallID != c.ID || d.Seq != 0 {
				t.Errorf("resolved %+v, want %s", d, tt.resolved)
			}
		})
	}
}

func TestApprovalIsCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		opts := asking(func(ctx context.Context, _ *lathe.ApprovalRequest) (lathe.Approval, error) {
			cancel()
			<-ctx.Done()
			return lathe.Approval{}, ctx.Err()
		})
		rec := &recorder{}
		out := open(t, opts, reader("ask", echo)).Execute(ctx, 1, []tool.Call{call("ask", "")}, rec.emit)
		if got := codes(t, out); got != "cancelled" {
			t.Errorf("codes %q", got)
		}
		if got, want := rec.types(), "Proposed Planned ApprovalRequested ApprovalResolved Result"; got != want {
			t.Errorf("events %q, want %q", got, want)
		}
	})
}

// The digest binds the run, the call, the tool, its schema and the arguments' value.
func TestApprovalDigest(t *testing.T) {
	t.Parallel()
	digest := func(run, id, name, args, schema string) string {
		t.Helper()
		var got string
		opts := asking(func(_ context.Context, req *lathe.ApprovalRequest) (lathe.Approval, error) {
			got = req.Digest
			return lathe.Approval{}, errors.New("no")
		})
		opts.Policy = policy.Effects{ReadOnly: lathe.Ask}
		f := reader(name, echo)
		f.spec.Schema = json.RawMessage(schema)
		w := newRunner(t, opts, f).Begin(&lathe.RunInfo{RunID: run}, nil)
		w.Execute(t.Context(), 1, []tool.Call{{ToolCall: lathe.ToolCall{ID: id, Name: name, Arguments: args}}}, func(event.Data) {})
		return got
	}
	base := digest("r", "c", "t", `{"a":1,"b":2}`, anyObject)
	if same := digest("r", "c", "t", ` {"b":2.0,"a":1}`, anyObject); same != base {
		t.Error("the same arguments, written otherwise, have another digest")
	}
	for name, other := range map[string]string{
		"run": digest("r2", "c", "t", `{"a":1,"b":2}`, anyObject), "call": digest("r", "c2", "t", `{"a":1,"b":2}`, anyObject),
		"tool": digest("r", "c", "t2", `{"a":1,"b":2}`, anyObject), "args": digest("r", "c", "t", `{"a":1,"b":3}`, anyObject),
		"schema": digest("r", "c", "t", `{"a":1,"b":2}`, `{"type":"object","title":"x"}`),
	} {
		if other == base || len(other) != 64 {
			t.Errorf("another %s has the digest %q too", name, other)
		}
	}
}
