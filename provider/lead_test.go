package provider

import (
	"testing"

	"github.com/lathe-run/lathe"
)

// The mark is taken off the text that begins with it; other texts stay as they are.
func TestLeadIsTakenOffTheTextThatHasIt(t *testing.T) {
	t.Parallel()
	for first, want := range map[string]string{
		"</think>\nIt is": "It is | 42.", "\n </think>It is": "It is | 42.", "It is": "It is | 42.", "It </think> is": "It </think> is | 42.",
	} {
		fin := &lathe.Finish{Message: lathe.Message{Parts: []lathe.Part{lathe.Reasoning{Text: "Hm."}, lathe.Text{Text: first}, lathe.Text{Text: " | 42."}}}}
		a := attempt{lead: lead{over: true, mark: true}}
		if a.end(fin); fin.Message.Text() != want || len(fin.Faults) != 1 || fin.Faults[0] != (lathe.Fault{Kind: faultThinkingMark, Count: 1}) {
			t.Errorf("%q: %q, %+v", first, fin.Message.Text(), fin.Faults)
		}
	}
}
