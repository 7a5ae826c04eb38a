package sim

import (
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

func TestRuneCutKeepsRunesWhole(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		n    int
		want string
	}{{"", 1, ""}, {"ab", 1, "a"}, {"é", 1, "é"}, {"éa", 1, "é"}, {"aé", 2, "a"}, {"日本", 4, "日"}, {"日本", 9, "日本"}} {
		if got := c.text[:runeCut(c.text, c.n)]; got != c.want {
			t.Errorf("%q at %d: %q, want %q", c.text, c.n, got, c.want)
		}
	}
}

// Each edit of a fault changes the events of a turn with two calls, or of one without, on each wire that it is for.
func TestEveryEditChangesTheEventsOfItsWires(t *testing.T) {
	t.Parallel()
	for _, f := range Faults() {
		if f.edit == nil {
			continue
		}
		for _, p := range protocols {
			if !f.On(p.Wire()) || p == chatCompletions {
				continue
			}
			changed := false
			two := []lathe.ToolCall{{ID: "call_1", Name: "f", Arguments: `{"a":"b"}`}, {ID: "call_2", Name: "g", Arguments: "{}"}}
			for _, turn := range []*Turn{{Text: "a text", Calls: two}, {Text: "a text"}} {
				req := &wire.ClientRequest{Request: lathe.Request{Model: "m"}}
				turn.Usage = usageOf(&req.Request, turn)
				events := func() []streamed {
					return f.flow.events(p, &wire.AnswerHead{ID: "1", Request: req}, turn, turn.finished(p, &req.Request))
				}
				before := events()
				after := f.edit(p.Wire(), events())
				changed = changed || joined(before) != joined(after)
			}
			if !changed {
				t.Errorf("%s changes nothing on %s", f.Name, p.Wire())
			}
		}
	}
}

func joined(events []streamed) string {
	var b strings.Builder
	for i, e := range events {
		b.WriteString((&lines{}).frame(i, e))
		if e.cut {
			b.WriteString("cut")
		}
	}
	return b.String()
}
