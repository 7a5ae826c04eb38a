package transform_test

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/transform"
)

// A talker answers each turn with the next text, in small pieces.
type talker struct {
	turns []string
	asked []*lathe.Request
}

func (*talker) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (m *talker) Generate(_ context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		copied := *req
		copied.Messages = append([]lathe.Message(nil), req.Messages...)
		m.asked = append(m.asked, &copied)
		text := m.turns[len(m.asked)-1]
		for i := 0; i < len(text); i += 5 {
			if !yield(lathe.Delta{Kind: lathe.DeltaText, Text: text[i:min(i+5, len(text))]}, nil) {
				return
			}
		}
		yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: &lathe.Finish{Reason: lathe.FinishStop,
			Message: lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Text{Text: text}}}}}, nil)
	}
}

// A whole run with a model that writes its calls into the text, one of them unreadably, behind a
// server that takes ids of nine characters only.
func TestRunThroughTransforms(t *testing.T) {
	t.Parallel()
	type in struct {
		City string `json:"city"`
	}
	calls := 0
	weather := tool.Func("weather", "tells the weather", func(_ context.Context, in in) (map[string]string, error) {
		calls++
		return map[string]string{"city": in.City}, nil
	}, &tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"*"}})
	set, err := tool.NewSet(weather)
	if err != nil {
		t.Fatal(err)
	}
	m := &talker{turns: []string{
		"Let me look.\n<tool_call>weather {\"city\":\"Oslo\"}</tool_call>\n<tool_call>weather what</tool_call>",
		`<tool_call>{"function":{"name":"weather","arguments":{"city":"</tool_call>"}}}</tool_call>`,
		"Rain. Write `<tool_call>weather</tool_call>` to ask again.",
	}}
	chain, err := transform.New(transform.List{Response: []string{"assistant_content_tool_call_tags_to_tool_calls"},
		ToolCall: []string{"tool_call_ids_nine_alphanumeric"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.Effects{ReadOnly: lathe.Allow}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := loop.New(transform.Wrap(m, chain), runner, nil)
	if err != nil {
		t.Fatal(err)
	}
	parseErrors := 0
	var res *event.Result
	for e := range l.Run(t.Context(), &loop.Input{Messages: []lathe.Message{lathe.User("How is the weather?")}}) {
		switch d := e.Data.(type) {
		case *event.ToolCallParseError:
			parseErrors++
		case *event.RunFinished:
			res = d.Result
		}
	}
	if res == nil || res.Reason != lathe.ReasonAnswered || res.Err != nil {
		t.Fatalf("got %+v", res)
	}
	if res.Answer != m.turns[2] {
		t.Errorf("the answer is %q", res.Answer)
	}
	if calls != 2 || parseErrors != 1 {
		t.Errorf("%d calls were made and %d could not be read, want 2 and 1", calls, parseErrors)
	}
	first := res.History[1]
	got := ""
	for _, p := range first.Parts {
		if text, ok := p.(lathe.Text); ok {
			got += text.Text
		}
	}
	if got != "Let me look.\n\n<tool_call>weather what</tool_call>" || first.Text() != "Let me look.\n\n" {
		t.Errorf("the first message says %q", got)
	}
	// What the server is sent: each id has nine characters, is answered once, and arguments are JSON.
	for _, req := range m.asked {
		open := map[string]int{}
		for _, msg := range req.Messages {
			for _, p := range msg.Parts {
				switch p := p.(type) {
				case lathe.ToolCall:
					open[p.ID]++
					if len(p.ID) != 9 || strings.ContainsAny(p.ID, "_-") || !json.Valid([]byte(p.Arguments)) {
						t.Errorf("a call is sent as %+v", p)
					}
				case lathe.ToolResult:
					open[p.CallID]--
				}
			}
		}
		for id, n := range open {
			if n != 0 {
				t.Errorf("the call %s has %d answers too few", id, n)
			}
		}
	}
	if got := res.History[1].Calls()[0]; got.ID != "tag_call_1" || !got.Recovered {
		t.Errorf("the history has the call %+v", got)
	}
}
