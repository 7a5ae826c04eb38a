package tool_test

import (
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/tool"
)

func assistant(ids ...string) *lathe.Message {
	m := &lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Text{Text: "x"}}}
	for _, id := range ids {
		m.Parts = append(m.Parts, lathe.ToolCall{ID: id, Name: "t"})
	}
	return m
}

func idsOf(m *lathe.Message) string {
	var ids []string
	for _, c := range m.Calls() {
		ids = append(ids, c.ID)
	}
	return strings.Join(ids, " ")
}

func TestAdopt(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 4_096)
	for _, tt := range []struct {
		name  string
		turns [][]string
		want  []string
	}{
		{"as they are", [][]string{{"a", "functions.x:0"}}, []string{"a functions.x:0"}},
		{"trimmed", [][]string{{" a\n"}}, []string{"a"}},
		{"blank", [][]string{{"", "  "}}, []string{"call_1 call_2"}},
		{"duplicates", [][]string{{"dup", "dup", "dup"}}, []string{"dup dup__2 dup__3"}},
		{"duplicates meet a suffix", [][]string{{"dup__2", "dup", "dup"}}, []string{"dup__2 dup dup__3"}},
		{"duplicates of another turn", [][]string{{"a"}, {"a"}, {"a", "b"}}, []string{"a", "a__2", "a__3 b"}},
		{"of the history", [][]string{{"old"}}, []string{"old__2"}},
		{"made ones that are taken", [][]string{{"call_1", ""}}, []string{"call_1 call_1__2"}},
		{"at the limit", [][]string{{long}}, []string{long}},
		{"beyond the limit", [][]string{{long + "x"}}, []string{"call_1"}},
		{"not plain", [][]string{{"a\x00b", "a\nb", "\xff"}}, []string{"call_1 call_2 call_3"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newRunner(t, nil, reader("t", echo)).Begin(nil, &tool.RunOptions{History: []lathe.Message{*assistant("old")}})
			for i, ids := range tt.turns {
				m := assistant(ids...)
				w.Adopt(m)
				if got := idsOf(m); got != tt.want[i] {
					t.Errorf("turn %d: %.80q, want %.80q", i, got, tt.want[i])
				}
				var calls []tool.Call
				for _, c := range m.Calls() {
					calls = append(calls, tool.Call{ToolCall: c})
				}
				out := w.Execute(t.Context(), i+1, calls, func(event.Data) {})
				for j, msg := range out.Messages {
					if got := result(t, msg).CallID; got != calls[j].ID {
						t.Errorf("turn %d: call %.40q is answered as %.40q", i, calls[j].ID, got)
					}
				}
			}
		})
	}
}

// A model may return a shared message, such as a recorded one: Adopt must not modify it.
func TestAdoptLeavesTheModelsPartsAlone(t *testing.T) {
	t.Parallel()
	w := open(t, nil, reader("t", echo))
	theirs := assistant("", "a", "a")
	mine := *theirs
	w.Adopt(&mine)
	if got, want := idsOf(theirs), " a a"; got != want {
		t.Errorf("the model's message has ids %q, want %q", got, want)
	}
	if got, want := idsOf(&mine), "call_1 a a__2"; got != want {
		t.Errorf("ids %q, want %q", got, want)
	}
}

// Execute makes the ids of calls unique if the caller has not called Adopt.
func TestExecuteWithoutAdopt(t *testing.T) {
	t.Parallel()
	w := open(t, nil, reader("t", echo))
	var got []string
	for range 2 {
		out := w.Execute(t.Context(), 1, []tool.Call{{ToolCall: lathe.ToolCall{ID: "a", Name: "t"}}, call("t", "")}, func(event.Data) {})
		for _, m := range out.Messages {
			got = append(got, result(t, m).CallID)
		}
	}
	if ids := strings.Join(got, " "); ids != "a call_1 a__2 call_2" {
		t.Errorf("ids %q", ids)
	}
}
