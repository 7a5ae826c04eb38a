package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	served "github.com/lathe-run/lathe/internal/gateway/mcp"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

var allowAll = policyFunc(func(*lathe.CallInfo) lathe.Decision { return lathe.Allow })

type byEffect struct{ policyFunc }

func (byEffect) Tool(_ *lathe.RunInfo, s *lathe.ToolSpec) lathe.Verdict {
	return lathe.Verdict{Decision: effectDecision(s), Rule: "effect"}
}

func (byEffect) Call(c *lathe.CallInfo) lathe.Verdict {
	return lathe.Verdict{Decision: effectDecision(c.Tool), Rule: "effect"}
}

func effectDecision(s *lathe.ToolSpec) lathe.Decision {
	switch s.Effect {
	case lathe.ReadOnly:
		return lathe.Allow
	case lathe.Idempotent:
		return lathe.Ask
	default:
		return lathe.Deny
	}
}

type approver func(*lathe.ApprovalRequest) (lathe.Approval, error)

func (f approver) Approve(_ context.Context, r *lathe.ApprovalRequest) (lathe.Approval, error) {
	return f(r)
}

func TestT38_PolicyAppliesInEveryEra(t *testing.T) {
	t.Parallel()
	ran := func(context.Context, json.RawMessage) (*lathe.Output, error) {
		t.Error("a tool ran that policy does not allow")
		return &lathe.Output{}, nil
	}
	asks := writer("asks", ran)
	asks.spec.Effect = lathe.Idempotent
	r := newRig(t, &tool.Options{Policy: byEffect{}}, nil, reader("reads", echo), asks, writer("writes", ran))
	url, c := r.web(), client(t)
	id := session(t, c, url)
	list := `{"jsonrpc":"2.0","id":9,"method":"tools/list","params":{%s}}`
	ways := map[string]func(name string) string{
		"stdio 2025-11-25": func(name string) string {
			m := call(9, name, `{}`)
			if name == "" {
				m = fmt.Sprintf(list, "")
			}
			return strings.Join(r.lines(nil, hello, ready, m)["9"], "")
		},
		"stdio 2026-07-28": func(name string) string {
			m := modernCall(9, name, `{}`)
			if name == "" {
				m = fmt.Sprintf(list, meta)
			}
			return strings.Join(r.lines(nil, m)["9"], "")
		},
		"http 2025-11-25": func(name string) string {
			m := call(9, name, `{}`)
			if name == "" {
				m = fmt.Sprintf(list, "")
			}
			_, _, answer := post(t, c, url, m, "Mcp-Session-Id", id)
			return answer
		},
		"http 2026-07-28": func(name string) string {
			if name == "" {
				_, _, answer := post(t, c, url, fmt.Sprintf(list, meta), modern("tools/list", "")...)
				return answer
			}
			_, _, answer := post(t, c, url, modernCall(9, name, `{}`), modern("tools/call", name)...)
			return answer
		},
	}
	for way, ask := range ways {
		if got := ask(""); strings.Count(got, `"inputSchema"`) != 1 || !strings.Contains(got, `"name":"reads"`) {
			t.Errorf("%s lists %s", way, got)
		}
		if got := ask("reads"); !strings.Contains(got, `"structuredContent":{}`) {
			t.Errorf("%s: %s", way, got)
		}
		for _, name := range []string{"asks", "writes"} {
			if got := ask(name); !strings.Contains(got, `"isError":true`) || !strings.Contains(got, `policy_denied`) {
				t.Errorf("%s, %s: %s", way, name, got)
			}
		}
	}
	count := map[string]int{}
	for _, e := range r.log.all() {
		if s, ok := e.Data.(*event.RunStarted); ok {
			count[s.Labels["transport"]+" "+s.Labels["protocol"]]++
		}
	}
	for way := range ways {
		if count[way] != 3 {
			t.Errorf("%d calls on record for %s", count[way], way)
		}
	}
}

func TestApprovals(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		answer approver
		want   string
	}{
		{"yes", func(*lathe.ApprovalRequest) (lathe.Approval, error) {
			return lathe.Approval{Approved: true, By: "me"}, nil
		}, `{"a":1}`},
		{"edited", func(*lathe.ApprovalRequest) (lathe.Approval, error) {
			return lathe.Approval{Approved: true, Arguments: json.RawMessage(`{"a":2}`)}, nil
		}, `{"a":2}`},
		{"no", func(*lathe.ApprovalRequest) (lathe.Approval, error) { return lathe.Approval{}, nil }, "approval_denied"},
		{"later", func(*lathe.ApprovalRequest) (lathe.Approval, error) { return lathe.Approval{}, lathe.ErrPending }, "approval_denied"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			asks := writer("asks", echo)
			asks.spec.Effect = lathe.Idempotent
			r := newRig(t, &tool.Options{Policy: byEffect{}, Approver: tt.answer}, nil, asks)
			res, err := r.connectStdio(nil).CallTool(t.Context(), &mcp.CallToolParams{Name: "asks", Arguments: map[string]any{"a": 1}})
			if err != nil || !strings.Contains(text(res), tt.want) {
				t.Errorf("%v, %+v", err, res)
			}
			types := r.log.types()
			if types[0] != "RunStarted" || types[len(types)-1] != "RunFinished" || !slices.Contains(types, "ApprovalRequested") || !slices.Contains(types, "ApprovalResolved") {
				t.Errorf("events %v", types)
			}
		})
	}
}

func TestEventsAreThoseOfARun(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, &served.Options{Labels: map[string]string{"site": "here"}, Depth: 1}, reader("echo", echo))
	r.lines(&served.Caller{Principal: "anna"}, hello, ready, call(1, "echo", `{}`))
	events := r.log.all()
	if diff := cmp.Diff([]string{"RunStarted", "ToolCallProposed", "ToolCallPlanned", "ToolCallExecuted", "ToolCallResult", "RunFinished"}, r.log.types()); diff != "" {
		t.Error(diff)
	}
	for i, e := range events {
		if e.ID != int64(i+1) || e.RunID == "" || e.RunID != events[0].RunID || e.RequestID == "" || e.SessionID == "" || e.Time.IsZero() {
			t.Errorf("event %d: %+v", i, e)
		}
	}
	s := events[0].Data.(*event.RunStarted)
	want := map[string]string{"site": "here", "entry": "mcp", "transport": "stdio", "protocol": "2025-11-25"}
	if diff := cmp.Diff(want, s.Labels); diff != "" || s.Principal != "anna" || s.Tools.Count != 1 {
		t.Errorf("%+v %s", s, diff)
	}
}

func TestT11_PolicyAndToolSeeTheSameArguments(t *testing.T) {
	t.Parallel()
	for _, args := range []string{`{"a":1}`, `{ "a" : 1.50e3 , "b":[1,{"c":null}] }`, `{"a":"\u00e9\n","B":"x"}`, `{"n":123456789012345678901234567890}`} {
		var notified, got string
		p := policyFunc(func(c *lathe.CallInfo) lathe.Decision { notified = string(c.Args); return lathe.Allow })
		r := newRig(t, &tool.Options{Policy: p}, nil, reader("it", func(_ context.Context, a json.RawMessage) (*lathe.Output, error) {
			got = string(a)
			return &lathe.Output{}, nil
		}))
		r.lines(nil, hello, ready, call(1, "it", args))
		if notified != args || got != args {
			t.Errorf("sent %s, policy %s, tool %s", args, notified, got)
		}
	}
}

func TestT2_PolicySeesTheSessionWhole(t *testing.T) {
	t.Parallel()
	p := policyFunc(func(c *lathe.CallInfo) lathe.Decision {
		used := slices.ContainsFunc(c.Used, func(u lathe.ToolUse) bool { return u.Name == "private" })
		if c.Tool.Name == "send" && used {
			return lathe.Deny
		}
		return lathe.Allow
	})
	r := newRig(t, &tool.Options{Policy: p}, nil, reader("private", echo), reader("send", echo))
	if got := r.lines(nil, hello, ready, call(1, "send", `{}`)); !strings.Contains(got["1"][0], `"structuredContent":{}`) {
		t.Errorf("nothing was read: %v", got)
	}
	s := r.connectStdio(nil)
	url, c := r.web(), client(t)
	id := session(t, c, url)
	ask := map[string]func(name string) string{
		"session of stdio": func(name string) string {
			res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: name})
			if err != nil {
				t.Fatal(err)
			}
			return text(res)
		},
		"session of HTTP": func(name string) string {
			_, _, answer := post(t, c, url, call(1, name, `{}`), "Mcp-Session-Id", id)
			return answer
		},
		"no session": func(name string) string {
			_, _, answer := post(t, c, url, modernCall(1, name, `{}`), modern("tools/call", name)...)
			return answer
		},
	}
	for way, do := range ask {
		if got := do("send"); strings.Contains(got, "policy_denied") && way != "no session" {
			t.Errorf("%s: before: %s", way, got)
		}
		do("private")
		if got := do("send"); !strings.Contains(got, "policy_denied") {
			t.Errorf("%s: after: %s", way, got)
		}
	}
}

func TestNothingIsServedWithoutTools(t *testing.T) {
	t.Parallel()
	ran := func(context.Context, json.RawMessage) (*lathe.Output, error) {
		t.Error("it ran")
		return &lathe.Output{}, nil
	}
	for _, opts := range []*tool.Options{{Policy: policy.Effects{}}, {Policy: allowAll, Settings: lathe.Settings{ToolUseMode: lathe.ModeDisabled}}} {
		r := newRig(t, opts, nil, reader("it", ran))
		got := r.lines(nil, hello, ready, call(1, "it", `{}`), `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
		if !strings.Contains(got["1"][0], "policy_denied") || !strings.Contains(got["2"][0], `"tools":[]`) {
			t.Errorf("got %v", got)
		}
	}
}

func TestSinkThatPanics(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, &served.Options{Sinks: []event.Sink{badSink{}}}, reader("echo", echo))
	if got := r.lines(nil, hello, ready, call(1, "echo", `{}`)); !strings.Contains(got["1"][0], `"structuredContent":{}`) {
		t.Errorf("got %v", got)
	}
	if n := len(r.log.all()); n != 6 {
		t.Errorf("the other sink was told %d events", n)
	}
}

type badSink struct{}

func (badSink) Emit(context.Context, event.Event) { panic("no") }

func TestCallersHaveLimitsOfTheirOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil, reader("echo", echo))
	narrow := &served.Caller{Principal: "narrow", Limits: &lathe.Limits{MaxToolArgsBytes: 10}}
	for _, tt := range []struct {
		c    *served.Caller
		want string
	}{{narrow, "arguments_too_large"}, {&served.Caller{Principal: "narrow"}, `"structuredContent"`}, {nil, `"structuredContent"`}} {
		if got := r.lines(tt.c, hello, ready, call(1, "echo", `{"word":"longer than ten"}`)); !strings.Contains(got["1"][0], tt.want) {
			t.Errorf("%+v: %v", tt.c, got)
		}
	}
}

func TestUseAnotherRunner(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil, reader("old", echo))
	notified := make(chan struct{}, 10)
	s := r.connect(r.web(), &mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { notified <- struct{}{} }})
	if _, err := s.ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(reader("new", echo))
	if err != nil {
		t.Fatal(err)
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: allowAll})
	if err != nil {
		t.Fatal(err)
	}
	r.server.Use(runner)
	<-notified
	res, err := s.ListTools(t.Context(), nil)
	if err != nil || len(res.Tools) != 1 || res.Tools[0].Name != "new" {
		t.Errorf("%v, %+v", err, res)
	}
	if res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "new"}); err != nil || res.IsError {
		t.Errorf("%v, %+v", err, res)
	}
	if _, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "old"}); err == nil {
		t.Error("a tool that is gone was called")
	}
}
