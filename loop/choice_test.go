package loop_test

import (
	"slices"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// A server that does not hold to the tool that tool_choice names has a fault of that name.
func TestIgnoredToolChoiceIsCounted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		turn    turn
		ignored bool
	}{
		"heeded":       {ask(call("a", "echo", `{}`)), false},
		"another tool": {ask(call("a", "other", `{}`)), true},
		"one too many": {ask(call("a", "echo", `{}`), call("b", "other", `{}`)), true},
		"no call":      {textTurn("ok"), true},
	} {
		m := &script{turns: []turn{c.turn, textTurn("ok")}}
		_, events := collect(t, t.Context(), newLoop(t, m, relaxed(lathe.Settings{ToolChoice: lathe.ToolChoice{Mode: lathe.ChoiceFunction, Name: "echo"}}),
			echo("echo"), echo("other")), user("x"))
		done := all[*event.ModelCallFinished](events)
		for i, d := range done {
			if got := slices.Contains(d.Faults, lathe.Fault{Kind: "tool_choice_ignored", Count: 1}); got != (c.ignored && i == 0) {
				t.Errorf("%s: model call %d has the faults %v", name, i, d.Faults)
			}
		}
	}
}
