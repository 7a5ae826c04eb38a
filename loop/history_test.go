package loop_test

import (
	"strconv"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/loop"
)

func TestHistoryMustBeSendable(t *testing.T) {
	t.Parallel()
	calls := func(ids ...string) lathe.Message {
		m := lathe.Message{Role: lathe.RoleAssistant}
		for _, id := range ids {
			m.Parts = append(m.Parts, call(id, "echo", `{}`))
		}
		return m
	}
	result := func(id string) lathe.Message {
		return lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: id, Content: "1"}}}
	}
	u := lathe.User("x")
	for _, tc := range []struct {
		name    string
		history []lathe.Message
		ok      bool
	}{
		{"no calls", []lathe.Message{lathe.System("s"), u, lathe.Assistant("a"), u}, true},
		{"answered", []lathe.Message{u, calls("a", "b"), result("a"), result("b"), u}, true},
		{"answered in another order", []lathe.Message{u, calls("a", "b"), result("b"), result("a")}, true},
		{"an id again, later", []lathe.Message{u, calls("a"), result("a"), calls("a"), result("a")}, true},
		{"nothing", nil, false},
		{"not answered", []lathe.Message{u, calls("a")}, false},
		{"one not answered", []lathe.Message{u, calls("a", "b"), result("a"), u}, false},
		{"answered late", []lathe.Message{u, calls("a"), u, result("a")}, false},
		{"answered twice", []lathe.Message{u, calls("a"), result("a"), result("a")}, false},
		{"one id for two", []lathe.Message{u, calls("a", "a"), result("a")}, false},
		{"no call", []lathe.Message{u, result("a")}, false},
		{"another call", []lathe.Message{u, calls("a"), result("b")}, false},
		{"a call of the user", []lathe.Message{{Role: lathe.RoleUser, Parts: []lathe.Part{call("a", "echo", `{}`)}}, result("a")}, false},
		{"no result in the tool message", []lathe.Message{u, calls("a"), {Role: lathe.RoleTool}}, false},
	} {
		m := &script{turns: []turn{textTurn("ok")}}
		res, events := collect(t, t.Context(), newLoop(t, m, nil, echo("echo")), &loop.Input{Messages: tc.history})
		if tc.ok != (res.Reason == lathe.ReasonAnswered) || !tc.ok && (lathe.CodeOf(res.Err) != lathe.CodeInvalidRequest || len(m.requests()) > 0) {
			t.Errorf("%s: reason %q, error %v", tc.name, res.Reason, res.Err)
		}
		checkFrame(t, res, events)
	}
}

// The check of a history is linear in its calls: with a look at all open calls for each answer, this many
// take longer than the time limit of go test.
func TestHistoryWithManyCallsIsChecked(t *testing.T) {
	t.Parallel()
	const n = 400_000
	history := make([]lathe.Message, n+2)
	history[0], history[1] = lathe.User("x"), lathe.Message{Role: lathe.RoleAssistant, Parts: make([]lathe.Part, n)}
	for i := range n {
		id := "c" + strconv.Itoa(i)
		history[1].Parts[i] = call(id, "echo", `{}`)
		history[n+1-i] = lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: id, Content: "1"}}}
	}
	history = append(history, lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: "another", Content: "1"}}})
	res, _ := collect(t, t.Context(), newLoop(t, &script{}, nil, echo("echo")), &loop.Input{Messages: history})
	if lathe.CodeOf(res.Err) != lathe.CodeInvalidRequest {
		t.Errorf("reason %q, error %v", res.Reason, res.Err)
	}
}

// Ids that the history has are not given to new calls.
func TestNewCallsGetNewIDs(t *testing.T) {
	t.Parallel()
	m := &script{turns: []turn{ask(call("a", "echo", `{}`)), textTurn("ok")}}
	in := user("x")
	in.Messages = append(in.Messages, lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{call("a", "echo", `{}`)}},
		lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: "a", Content: "1"}}}, lathe.User("again"))
	res, events := collect(t, t.Context(), newLoop(t, m, nil, echo("echo")), in)
	if got, want := shape(res.History), "user x | assistant call:a | tool a=ok | user again | assistant call:a__2 | tool a__2=ok | assistant ok"; got != want {
		t.Errorf("history:\n got %s\nwant %s", got, want)
	}
	checkRun(t, res, events)
}
