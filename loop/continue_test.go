package loop_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/runinput"
	"github.com/lathe-run/lathe/loop"
)

func result(id string, code lathe.Code, content string) lathe.Message {
	return lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: id, Name: "write", Content: content, IsError: code != "", Code: code}}}
}

func asked(calls ...string) lathe.Message {
	m := lathe.Message{Role: lathe.RoleAssistant}
	for _, id := range calls {
		m.Parts = append(m.Parts, lathe.ToolCall{ID: id, Name: "write", Arguments: "{}"})
	}
	return m
}

// codes writes the roles of messages, with the codes of the results.
func codes(messages []lathe.Message) (out []string) {
	for i := range messages {
		s := string(messages[i].Role)
		for _, p := range messages[i].Parts {
			if r, ok := p.(lathe.ToolResult); ok {
				s += " " + r.CallID + " " + string(r.Code)
			}
		}
		out = append(out, s)
	}
	return out
}

func TestTakeOverAnswersEachCall(t *testing.T) {
	t.Parallel()
	synthetic := lathe.User("answer")
	synthetic.Synthetic = true
	for name, tt := range map[string]struct {
		messages []lathe.Message
		ran      string
		want     []string
	}{
		"nothing":                {nil, "", nil},
		"results":                {[]lathe.Message{asked("a", "b"), result("a", "", "1"), result("b", "timeout", "2")}, "a", []string{"assistant", "tool a ", "tool b timeout"}},
		"an answer at the end":   {[]lathe.Message{asked("a"), result("a", "", "1"), lathe.Assistant("done")}, "a", []string{"assistant", "tool a "}},
		"a request for one":      {[]lathe.Message{asked("a"), result("a", "", "1"), lathe.Assistant(" "), synthetic}, "a", []string{"assistant", "tool a "}},
		"cancelled while it ran": {[]lathe.Message{asked("a"), result("a", "cancelled", "1")}, "a", []string{"assistant", "tool a interrupted"}},
		"cancelled before":       {[]lathe.Message{asked("a"), result("a", "cancelled", "1")}, "", []string{"assistant", "tool a cancelled"}},
		"no result":              {[]lathe.Message{asked("a", "b", "c"), result("b", "", "1")}, "a", []string{"assistant", "tool a interrupted", "tool b ", "tool c cancelled"}},
		"text between":           {[]lathe.Message{lathe.Assistant("so"), asked("a"), result("a", "", "1"), asked("b")}, "b", []string{"assistant", "assistant", "tool a ", "assistant", "tool b interrupted"}},
	} {
		got := loop.TakeOver(tt.messages, func(id string) bool { return id == tt.ran })
		if diff := cmp.Diff(tt.want, codes(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for i := range got {
			if r, ok := got[i].Parts[0].(lathe.ToolResult); ok && !json.Valid([]byte(r.Content)) {
				t.Errorf("%s: the result of %s is %q", name, r.CallID, r.Content)
			}
		}
	}
}

// A run that continues another one goes on from the calls that it took over: they are in its first event, they
// satisfy a mode and a tool choice that require a call, and a blank answer after them is asked for again.
func TestContinuedRunCountsItsCalls(t *testing.T) {
	t.Parallel()
	in := func(taken ...lathe.Message) *loop.Input {
		in := user("hi")
		in.Messages = append(in.Messages, taken...)
		runinput.Of(in).Continues, runinput.Of(in).TakenOver, in.Park = "run_0", len(taken), true
		in.Settings = &lathe.Settings{ToolUseMode: lathe.ModeEnforced, ToolChoice: lathe.ToolChoice{Mode: lathe.ChoiceRequired}}
		return in
	}
	m := &script{turns: []turn{textTurn(" "), textTurn("done")}}
	l := newLoop(t, m, nil, echo("write"))
	res, events := collect(t, t.Context(), l, in(asked("a"), result("a", "", `{"n":1}`)))
	if res.Reason != lathe.ReasonAnswered || res.Answer != "done" || res.ToolCalls != 0 {
		t.Errorf("got %+v", res)
	}
	began := events[0].Data.(*event.RunStarted)
	if began.Continues != "run_0" || began.TakenOver != 2 || len(began.Messages) != 3 {
		t.Errorf("began with %+v", began)
	}
	if got := m.requests()[0].choice.Mode; got != "" {
		t.Errorf("the first model call has the tool choice %q", got)
	}

	failed := newLoop(t, &script{turns: []turn{textTurn("done")}}, nil, echo("write"))
	if res, _ := collect(t, t.Context(), failed, in(asked("a"), result("a", "timeout", `{}`))); res.Reason != lathe.ReasonToolError {
		t.Errorf("after a call that failed: %+v", res)
	}

	// A process that resumes the run knows them, too.
	first := &log{}
	first.run(t, newLoop(t, &script{turns: []turn{textTurn("done")}}, nil, echo("write")), in(asked("a"), result("a", "", `{"n":1}`)), 2)
	s := first.fold(t)
	if s.Continues != "run_0" || s.TakenOver != 2 || s.Start != 3 {
		t.Errorf("the log says %+v", s)
	}
	if res, _ := collect(t, t.Context(), newLoop(t, &script{turns: []turn{textTurn("done")}}, nil, echo("write")), &loop.Input{Resume: s}); res.Reason != lathe.ReasonAnswered {
		t.Errorf("resumed: %+v", res)
	}
}
