package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
)

// A blank answer is explained on stderr with a next step, and so are calls that had no effect beside an answer.
func TestScreenExplainsBlankAnswers(t *testing.T) {
	t.Parallel()
	for _, b := range []lathe.Blank{lathe.BlankCallsIgnored, lathe.BlankLength, lathe.BlankReasoning, lathe.BlankOutputDropped, lathe.BlankEmpty, "of a later version"} {
		if got := screenOf(t, &lathe.RunFinished{Reason: lathe.ReasonAnswered, Blank: b}); !strings.HasPrefix(got, "warning: the answer is blank: ") || strings.Count(got, "\n") != 2 {
			t.Errorf("%s: %q", b, got)
		}
	}
	got := screenOf(t, &lathe.ModelCallFinished{Status: "success", IgnoredToolCalls: 2}, &lathe.RunFinished{Reason: lathe.ReasonAnswered})
	if !strings.HasPrefix(got, "warning: 2 tool calls of the model had no effect") {
		t.Errorf("ignored calls: %q", got)
	}
	if got := screenOf(t, &lathe.ModelCallFinished{Status: "success"}, &lathe.RunFinished{Reason: lathe.ReasonAnswered}); strings.Contains(got, "warning") {
		t.Errorf("an answer: %q", got)
	}
}

func screenOf(t *testing.T, events ...lathe.EventData) string {
	var out, errw bytes.Buffer
	s := &screen{out: &out, err: &errw, text: true}
	for _, d := range events {
		s.Emit(t.Context(), lathe.Event{Data: d})
	}
	return errw.String()
}
