package loop

import (
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// A message of reasoning alone is on record and not in the history, also of a run that is resumed.
func TestReasoningAloneIsNotInTheHistory(t *testing.T) {
	t.Parallel()
	thought := &lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Reasoning{Text: "hm"}}}
	for name, c := range map[string]struct {
		m    *lathe.Message
		want bool
	}{"none": {nil, false}, "reasoning": {thought, false}, "answer": {&lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Text{Text: "a"}}}, true}} {
		s := &State{Turn: 1}
		s.modelCalled(&event.ModelCallFinished{Status: "success", Message: c.m})
		if s.answered != c.want || (len(s.Messages) == 1) != c.want {
			t.Errorf("%s: answered %v with %d messages", name, s.answered, len(s.Messages))
		}
	}
}
