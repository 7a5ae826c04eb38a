package store_test

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/store"
)

// Two runs of a conversation hold its long texts once, and one of them keeps them when the other is deleted.
func TestMemoryHoldsTextsOnce(t *testing.T) {
	t.Parallel()
	s, ctx := store.NewMemory(nil), t.Context()
	texts := func(id string) (out []string) {
		for e, err := range s.Read(ctx, id, 0) {
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range e.Data.(*event.RunStarted).Messages {
				for _, p := range m.Parts {
					switch p := p.(type) {
					case lathe.Text:
						out = append(out, p.Text)
					case lathe.ToolCall:
						out = append(out, p.Arguments)
					case lathe.ToolResult:
						out = append(out, p.Content)
					case lathe.Reasoning:
						out = append(out, p.Text, p.Data)
					default:
						t.Fatalf("unexpected %T", p)
					}
				}
			}
		}
		return out
	}
	long := func(c string) string { return strings.Repeat(c, 1000) }
	for _, id := range []string{"run_a", "run_b"} {
		e := event.Event{Data: &event.RunStarted{Messages: []lathe.Message{
			{Role: lathe.RoleUser, Parts: []lathe.Part{lathe.Text{Text: long("a")}}},
			{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Reasoning{Text: long("b"), Data: long("c")}, lathe.ToolCall{ID: "call_1", Name: "f", Arguments: long("d")}}},
			{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: "call_1", Content: long("e")}}},
		}}}
		e.RunID, e.ID = id, 1
		if _, err := s.Append(ctx, id, 0, e); err != nil {
			t.Fatal(err)
		}
	}
	a, b := texts("run_a"), texts("run_b")
	for i := range a {
		if unsafe.StringData(a[i]) != unsafe.StringData(b[i]) {
			t.Errorf("text %d is held twice", i)
		}
	}
	if err := s.Delete(ctx, "run_a"); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(texts("run_b"), ""); got != long("a")+long("b")+long("c")+long("d")+long("e") {
		t.Errorf("the texts have changed: %d bytes", len(got))
	}
}
