package loop_test

import (
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
)

// TestCompactEvent: what a store keeps of the events of a run that has ended, in each mode. Twice is the same as once.
func TestCompactEvent(t *testing.T) {
	t.Parallel()
	const secretText = "the canary of the commentary"
	events := func() []event.Event {
		return []event.Event{
			{ID: 1, Data: &event.RunStarted{Messages: []lathe.Message{lathe.User("a question"),
				{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Reasoning{Text: "canary thought"}, lathe.ToolCall{ID: "c", Name: "t", Arguments: "{}"}}},
				{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: "c", Content: strings.Repeat("y", 200) + "canary"}}}}}},
			{ID: 2, Data: &event.ModelCallFinished{Status: "success", Message: &lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{
				lathe.Reasoning{Text: "canary thought"}, lathe.Text{Text: secretText, Commentary: true}, lathe.Text{Text: "the answer"}}}}},
			{ID: 3, Data: &event.ToolCallParseError{RawExcerpt: secretText}},
			{ID: 4, Data: &event.ToolCallProposed{RawName: "t", RawArgs: `{"x":1}`}},
			{ID: 5, Data: &event.ToolCallResult{Result: strings.Repeat("y", 200) + "canary", Blobs: []lathe.Blob{{MediaType: "image/png", Data: make([]byte, 500)}}}},
			{ID: 6, Data: &event.RunFinished{Answer: "the answer"}},
		}
	}
	for _, tt := range []struct {
		mode   loop.RetentionMode
		raw    bool
		canary int // places in which content with the word is left
	}{
		{loop.MetricsOnly, false, 0},
		{"", false, 0},
		{loop.RawEphemeral, false, 0},
		{loop.HashedSlice, false, 0},
		{loop.RedactedSnippets, false, 2}, // commentary, and the excerpt
		{loop.MetricsOnly, true, 2},       // the results
	} {
		keep := &loop.Retention{Mode: tt.mode, StoreRaw: tt.raw, MaxOutputBytes: 80}
		left, removed := 0, 0
		for _, e := range events() {
			before, err := e.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			once := keep.CompactEvent(e)
			after, err := once.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			if again, err := e.MarshalJSON(); err != nil || string(again) != string(before) {
				t.Errorf("%s: event %d itself was changed", tt.mode, e.ID)
			}
			if twice, err := keep.CompactEvent(once).MarshalJSON(); err != nil || string(twice) != string(after) {
				t.Errorf("%s: event %d the second time:\n%s\nthe first time:\n%s", tt.mode, e.ID, twice, after)
			}
			var read event.Event
			if err := read.UnmarshalJSON(after); err != nil || read.Removed != once.Removed {
				t.Errorf("%s: event %d: %d bytes were removed, read as %d, %v", tt.mode, e.ID, once.Removed, read.Removed, err)
			}
			left += strings.Count(string(after), "canary")
			removed += once.Removed
			if e.ID == 4 && string(after) != string(before) || e.ID == 6 && !strings.Contains(string(after), "the answer") {
				t.Errorf("%s: %s", tt.mode, after)
			}
			if d, ok := once.Data.(*event.RunStarted); ok && (!d.Retention.Applied || d.Retention.MaxOutputBytes != 80) {
				t.Errorf("%s: the run says %+v", tt.mode, d.Retention)
			}
		}
		if left != tt.canary {
			t.Errorf("%s, raw %t: the word is left %d times, want %d", tt.mode, tt.raw, left, tt.canary)
		}
		if removed == 0 {
			t.Errorf("%s: nothing was removed", tt.mode)
		}
	}
}
