package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/agent"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/lathetest"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
)

// team returns the options of an agent "front" with a handoff to "billing", which refunds.
func team(billing lathe.Model, refunds *int) *agent.Options {
	return &agent.Options{Name: "front", Instructions: "You greet.", Tools: []lathe.Tool{weather()}, Handoffs: []agent.Handoff{{Model: billing,
		Options: agent.Options{Name: "billing", Description: "For refunds.", Instructions: "You refund.", Tools: []lathe.Tool{refund(refunds)}}}}}
}

func toolNames(req *lathe.Request) (names []string) {
	for _, spec := range req.Tools {
		names = append(names, spec.Name)
	}
	return names
}

// speakers returns the agents of the model calls of a run, as its log has them.
func speakers(t *testing.T, a *agent.Agent, runID string) (names []string) {
	t.Helper()
	for e, err := range a.Events(t.Context(), runID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := e.Data.(*event.ModelCallStarted); ok {
			names = append(names, d.Agent)
		}
	}
	return names
}

// The other agent answers in the same run and in later runs of the conversation, with its own instructions and tools, until it hands back.
func TestTransfer(t *testing.T) {
	t.Parallel()
	front := lathetest.NewModel(lathetest.Call("transfer_to_billing", `{"reason":"a refund"}`), lathetest.Text("Welcome back."))
	billing := lathetest.NewModel(lathetest.Text("Which order?"), lathetest.Text("A-1, I see."), lathetest.Call("transfer_to_front", `{}`))
	refunds := 0
	a := newAgent(t, front, team(billing, &refunds))
	res, err := a.Run(t.Context(), lathe.User("I want my money back."))
	if err != nil || res.Answer != "Which order?" {
		t.Fatalf("%+v, %v", res, err)
	}
	if got := speakers(t, a, res.RunID); !slices.Equal(got, []string{"front", "billing"}) || res.Trace[1].Agent != "billing" {
		t.Errorf("the log has %v, the trace %+v", got, res.Trace)
	}
	res, err = a.Run(t.Context(), append(res.History, lathe.User("A-1"))...)
	if err != nil || res.Answer != "A-1, I see." {
		t.Fatalf("%+v, %v", res, err)
	}
	res, err = a.Run(t.Context(), append(res.History, lathe.User("Thanks, bye."))...)
	if err != nil || res.Answer != "Welcome back." {
		t.Fatalf("%+v, %v", res, err)
	}
	f, b := front.Requests(), billing.Requests()
	if f[0].Messages[0].Text() != "You greet." || b[0].Messages[0].Text() != "You refund." || b[2].Messages[0].Text() != "You refund." || f[1].Messages[0].Text() != "You greet." {
		t.Errorf("instructions %q, %q, %q, %q", f[0].Messages[0].Text(), b[0].Messages[0].Text(), b[2].Messages[0].Text(), f[1].Messages[0].Text())
	}
	if got := toolNames(&f[0]); !slices.Equal(got, []string{"transfer_to_billing", "weather"}) {
		t.Errorf("tools of the front: %v", got)
	}
	if got := toolNames(&b[0]); !slices.Equal(got, []string{"refund", "transfer_to_front"}) {
		t.Errorf("tools of billing: %v", got)
	}
	if res.History[0].Role != lathe.RoleUser {
		t.Errorf("the history begins with %+v", res.History[0])
	}
}

// A system message of the conversation follows the instructions, in one message.
func TestTransferKeepsTheSystemMessage(t *testing.T) {
	t.Parallel()
	front := lathetest.NewModel(lathetest.Text("Hi."))
	a := newAgent(t, front, team(lathetest.NewModel(), new(int)))
	if _, err := a.Run(t.Context(), lathe.System("Speak French."), lathe.User("hi")); err != nil {
		t.Fatal(err)
	}
	if m := front.Requests()[0].Messages; len(m) != 2 || m[0].Text() != "You greet.\n\nSpeak French." {
		t.Errorf("messages %+v", m)
	}
}

// After a restart at any event of the log, the agent that has the conversation continues the run, and its policy decides on its calls.
func TestTransferSurvivesARestart(t *testing.T) {
	t.Parallel()
	models := func() (front, billing *lathetest.Model) {
		return lathetest.NewModel(lathetest.Call("transfer_to_billing", `{}`)), lathetest.NewModel(lathetest.Call("refund", `{"order":"A-1"}`), lathetest.Text("Refunded."))
	}
	runs, refunds := store.NewMemory(nil), 0
	front, billing := models()
	o := team(billing, &refunds)
	o.Store = runs
	a := newAgent(t, front, o)
	res, err := a.Run(t.Context(), lathe.User("I want my money back."))
	if !errors.Is(err, agent.ErrWaiting) || refunds != 0 {
		t.Fatalf("%+v, %v, %d refunds", res, err, refunds)
	}
	var log []event.Event
	for e, err := range runs.Read(t.Context(), res.RunID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		log = append(log, e)
	}
	for n := 1; n <= len(log); n++ {
		t.Run(fmt.Sprintf("%02d %s", n, log[n-1].Data.EventType()), func(t *testing.T) {
			t.Parallel()
			later := store.NewMemory(nil)
			if _, err := later.Append(t.Context(), res.RunID, 0, log[:n]...); err != nil {
				t.Fatal(err)
			}
			refunds := 0
			front, billing := models()
			made := 0 // the model calls that the log has
			for _, e := range log[:n] {
				if d, ok := e.Data.(*event.ModelCallFinished); ok && d.Status == "success" {
					made++
				}
			}
			if made > 0 {
				front = lathetest.NewModel()
			}
			if made > 1 {
				billing = lathetest.NewModel(lathetest.Text("Refunded."))
			}
			o := team(billing, &refunds)
			o.Store = later
			a := newAgent(t, front, o)
			if _, err := a.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			end, err := a.Wait(t.Context(), res.RunID)
			if d, ok := log[n-1].Data.(*event.ToolCallPlanned); ok && d.Tool == "refund" { // the call may have been made
				if err != nil || end.Answer != "Refunded." || refunds != 0 || end.Trace[1].Calls[0].Code != lathe.CodeInterrupted {
					t.Fatalf("%+v, %v, %d refunds", end, err, refunds)
				}
				return
			}
			if !errors.Is(err, agent.ErrWaiting) || refunds != 0 {
				t.Fatalf("%v, %d refunds", err, refunds)
			}
			waiting, err := a.Waiting(t.Context())
			if err != nil || len(waiting) != 1 || waiting[0].Tool != "refund" || waiting[0].Effect != "writes" {
				t.Fatalf("%+v, %v", waiting, err)
			}
			if err := a.Approve(t.Context(), waiting[0].Digest, "ann"); err != nil {
				t.Fatal(err)
			}
			if end, err = a.Wait(t.Context(), res.RunID); err != nil || end.Answer != "Refunded." || refunds != 1 {
				t.Errorf("%+v, %v, %d refunds", end, err, refunds)
			}
			if got := speakers(t, a, res.RunID); got[0] != "front" || slices.Contains(got[2:], "front") || got[len(got)-1] != "billing" {
				t.Errorf("model calls of %v", got)
			}
		})
	}
}

// The results of transfers that are refused are for the model that has made them.
func TestTransferIsRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		call string
		with func(*agent.Options)
		code lathe.Code
		text string
	}{
		"no such agent": {"transfer_to_biling", func(*agent.Options) {}, lathe.CodeUnknownTool, "transfer_to_billing"},
		"to itself":     {"transfer_to_front", func(*agent.Options) {}, lathe.CodeUnknownTool, "transfer_to_billing"},
		"by the policy": {"transfer_to_billing", func(o *agent.Options) {
			o.Policy = policy.Tools{Allow: []string{"weather"}, Else: policy.Effects{}}
		}, lathe.CodePolicyDenied, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := team(lathetest.NewModel(), new(int))
			tc.with(o)
			a := newAgent(t, lathetest.NewModel(lathetest.Call(tc.call, `{}`), lathetest.Text("I cannot.")), o)
			res, err := a.Run(t.Context(), lathe.User("hi"))
			if err != nil || res.Answer != "I cannot." || len(res.Trace[0].Calls) != 1 || res.Trace[0].Calls[0].Code != tc.code || res.Trace[1].Agent != "front" {
				t.Fatalf("%+v, %v", res, err)
			}
			if result := res.History[2].Parts[0].(lathe.ToolResult); !strings.Contains(result.Content, tc.text) {
				t.Errorf("the model reads %q", result.Content)
			}
		})
	}
}

// A transfer by a spelling of the name that the runner accepts hands the conversation over, since its result says so.
func TestTransferByAnotherSpelling(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"transfer.to.billing", "transfer_to.billing", " transfer_to_billing", "functions.transfer_to_billing"} {
		a := newAgent(t, lathetest.NewModel(lathetest.Call(name, `{}`), lathetest.Text("I am the front.")), team(lathetest.NewModel(lathetest.Text("Which order?")), new(int)))
		if res, err := a.Run(t.Context(), lathe.User("hi")); err != nil || res.Answer != "Which order?" {
			t.Errorf("%q: %+v, %v", name, res, err)
		}
	}
}

// Only a result of role tool for a call of a transfer decides who answers; of several in one message, the last one does.
func TestTransfersInAHistory(t *testing.T) {
	t.Parallel()
	call := func(names ...string) (m lathe.Message) {
		m.Role = lathe.RoleAssistant
		for i, name := range names {
			m.Parts = append(m.Parts, lathe.ToolCall{ID: fmt.Sprint(i), Name: name, Arguments: "{}"})
		}
		return m
	}
	result := func(role lathe.Role, name string) lathe.Message {
		return lathe.Message{Role: role, Parts: []lathe.Part{lathe.ToolResult{CallID: "0", Name: name}}}
	}
	second := lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: "1", Name: "transfer_to_front"}}}
	to := "transfer_to_billing"
	for name, tc := range map[string]struct {
		history []lathe.Message
		want    string
	}{
		"a transfer":                       {[]lathe.Message{call(to), result(lathe.RoleTool, to)}, "billing"},
		"a result without a name":          {[]lathe.Message{call(to), result(lathe.RoleTool, "")}, "billing"},
		"a result in a message of a user":  {[]lathe.Message{result(lathe.RoleUser, to)}, "front"},
		"the name of another call":         {[]lathe.Message{call("weather"), result(lathe.RoleTool, to)}, "front"},
		"two transfers, the last one back": {[]lathe.Message{call(to, "transfer_to_front"), result(lathe.RoleTool, to), second}, "front"},
		"a later call with an equal id":    {[]lathe.Message{call(to), result(lathe.RoleTool, to), call("weather"), result(lathe.RoleTool, "weather")}, "billing"},
	} {
		a := newAgent(t, lathetest.NewModel(lathetest.Text("front")), team(lathetest.NewModel(lathetest.Text("billing")), new(int)))
		res, err := a.Run(t.Context(), slices.Concat([]lathe.Message{lathe.User("hi")}, tc.history, []lathe.Message{lathe.User("go on")})...)
		if err != nil || res.Answer != tc.want {
			t.Errorf("%s: %+v, %v, want an answer of %s", name, res, err, tc.want)
		}
	}
}

// Two agents that hand over to each other stop at the limit. Transfers of earlier runs do not count.
func TestTransfersEnd(t *testing.T) {
	t.Parallel()
	to := func(name string) lathetest.Step { return lathetest.Call("transfer_to_"+name, `{}`) }
	front := lathetest.NewModel(to("billing"), to("billing"), lathetest.Text("Enough."), to("billing"))
	billing := lathetest.NewModel(to("front"), to("front"), lathetest.Text("Again."))
	o := team(billing, new(int))
	o.MaxTransfers = 3
	a := newAgent(t, front, o)
	res, err := a.Run(t.Context(), lathe.User("hi"))
	if err != nil || res.Answer != "" && !strings.Contains("Again. Enough.", res.Answer) {
		t.Fatalf("%+v, %v", res, err)
	}
	last := res.Trace[3].Calls[0]
	if last.Code != lathe.CodePolicyDenied || res.Trace[3].Agent != "billing" || res.Trace[4].Agent != "billing" || res.Answer != "Again." {
		t.Errorf("%+v", res.Trace)
	}
	if _, err = a.Run(t.Context(), append(res.History, lathe.User("more"))...); lathe.CodeOf(err) != lathe.CodeInvalidRequest { // the script of billing has ended
		t.Errorf("the later run is not one of billing: %v", err)
	}
}

// A tool of the program whose name begins like that of a transfer is none.
func TestOwnToolsAreNoTransfers(t *testing.T) {
	t.Parallel()
	own := func() lathetest.Step { return lathetest.Call("transfer_to_warehouse", `{}`) }
	billing := lathetest.NewModel(own(), lathetest.Text("Done."))
	o := team(billing, new(int))
	o.MaxTransfers = 1
	tools := &o.Handoffs[0].Options.Tools
	*tools = append(*tools, tool.Func("transfer_to_warehouse", "Moves an order.", func(context.Context, struct{}) (string, error) { return "moved", nil },
		&tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"*"}}))
	o.Tools = append(o.Tools, (*tools)[1])
	a := newAgent(t, lathetest.NewModel(own(), own(), lathetest.Call("transfer_to_billing", `{}`)), o)
	res, err := a.Run(t.Context(), lathe.User("hi"))
	if err != nil || res.Answer != "Done." {
		t.Fatalf("%+v, %v", res, err)
	}
	for _, turn := range res.Trace {
		for _, c := range turn.Calls {
			if !c.OK {
				t.Errorf("%s ends with %s", c.Tool, c.Code)
			}
		}
	}
}

// The messages decide which agent answers, also if the caller has written them: the other agent then answers, under its own policy.
func TestMessagesOfTheCallerSelectTheAgent(t *testing.T) {
	t.Parallel()
	refunds := 0
	a := newAgent(t, lathetest.NewModel(), team(lathetest.NewModel(lathetest.Call("refund", `{"order":"A-1"}`)), &refunds))
	res, err := a.Run(t.Context(), lathe.User("hi"),
		lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.ToolCall{ID: "c", Name: "transfer_to_billing", Arguments: "{}"}}},
		lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: "c", Name: "transfer_to_billing", Content: "forged"}}},
		lathe.User("Refund A-1."))
	if !errors.Is(err, agent.ErrWaiting) || res.Trace[0].Agent != "billing" || refunds != 0 {
		t.Errorf("%+v, %v, %d refunds", res, err, refunds)
	}
}

func TestHandoffsAreChecked(t *testing.T) {
	t.Parallel()
	model := lathetest.NewModel()
	var absent *lathetest.Model
	other := func(m lathe.Model, o agent.Options) *agent.Options {
		return &agent.Options{Name: "front", Handoffs: []agent.Handoff{{Model: m, Options: o}}}
	}
	for want, o := range map[string]*agent.Options{
		"handoff 0 has no name":            other(model, agent.Options{}),
		"two agents have the name":         other(model, agent.Options{Name: "front"}),
		"has no model":                     other(absent, agent.Options{Name: "billing"}),
		"those of the first agent":         other(model, agent.Options{Name: "billing", Store: store.NewMemory(nil)}),
		"MaxTransfers is -1":               {MaxTransfers: -1},
		"transfer_to_no blanks":            other(model, agent.Options{Name: "no blanks"}),
		"handoff billing: tool: register":  other(model, agent.Options{Name: "billing", Tools: []lathe.Tool{weather(), weather()}}),
		"no tool has that name: did you m": other(model, agent.Options{Name: "billing", Policy: policy.Tools{Allow: []string{"transfer_to_frnt"}, Else: policy.Effects{}}}),
	} {
		if _, err := agent.New(model, o); lathe.CodeOf(err) != lathe.CodeInvalidConfig || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := agent.New(absent, nil); lathe.CodeOf(err) != lathe.CodeInvalidConfig {
		t.Errorf("a model that is a nil pointer: %v", err)
	}
}
