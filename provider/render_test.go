package provider_test

import (
	"context"
	"iter"
	"reflect"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/provider"
)

// A listener is a model that keeps what it was asked and says nothing.
type listener struct{ asked []lathe.Request }

func (l *listener) Generate(_ context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	q := *req
	q.Messages = append([]lathe.Message(nil), req.Messages...)
	l.asked = append(l.asked, q)
	return func(yield func(lathe.Delta, error) bool) {
		yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: &lathe.Finish{Message: lathe.Assistant("well"), Reason: lathe.FinishStop}}, nil)
	}
}

func (l *listener) Describe() lathe.ModelInfo { return lathe.ModelInfo{Provider: "p", Model: "m"} }

func called(id, args string) lathe.Message {
	return lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{
		lathe.Reasoning{Text: "hm"}, lathe.Text{Text: "Let me see. "}, lathe.ToolCall{ID: id, Name: "add_numbers", Arguments: args, Dialect: "tags"}}}
}

func answered(id, content string) lathe.Message {
	return lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: id, Name: "add_numbers", Content: content}}}
}

// Within a run, what was rendered once is the same in every turn that follows, so that the server finds what it has cached.
func TestRenderedMessagesAreAStablePrefix(t *testing.T) {
	t.Parallel()
	l := &listener{}
	m, err := provider.WithDialect(l, "tags", nil)
	if err != nil {
		t.Fatal(err)
	}
	history := []lathe.Message{lathe.System("Be brief."), lathe.User("Add.")}
	for n := range 4 {
		generate(t, m, &lathe.Request{Messages: history, Tools: addTool})
		history = append(history, called("a", `{"a":1}`), answered("a", `{"sum":1}`))
		if n == 2 {
			history = append(history, lathe.User("And?"))
		}
	}
	for n := 1; n < len(l.asked); n++ {
		before, now := l.asked[n-1], l.asked[n]
		if now.Tools != nil || len(now.Messages) <= len(before.Messages) {
			t.Fatalf("turn %d sent %d tools and %d messages", n, len(now.Tools), len(now.Messages))
		}
		for i := range before.Messages {
			if !reflect.DeepEqual(before.Messages[i], now.Messages[i]) {
				t.Errorf("turn %d: message %d is %v, was %v", n, i, now.Messages[i], before.Messages[i])
			}
		}
	}
	last := l.asked[len(l.asked)-1].Messages
	for i, want := range []string{"TOOLS:\n- name: add_numbers\n", `<tool name="add_numbers" args>{"a":1}</tool>`, `<tool_result name="add_numbers">{"sum":1}</tool_result>`} {
		if got := last[[]int{0, 2, 3}[i]].Text(); !strings.Contains(got, want) {
			t.Errorf("message %q does not hold %q", got, want)
		}
	}
	// The whole history at once reads the same.
	generate(t, m, &lathe.Request{Messages: history[:len(history)-2], Tools: addTool})
	if got := l.asked[len(l.asked)-1].Messages; !reflect.DeepEqual(got, last) {
		t.Errorf("rendered at once:\n%v\nturn by turn:\n%v", got, last)
	}
	// Without tools, or with others, the beginning is another one.
	generate(t, m, &lathe.Request{Messages: history})
	if got := l.asked[len(l.asked)-1].Messages[0].Text(); got != "Be brief." {
		t.Errorf("system text without tools: %q", got)
	}
}

func TestToolChoiceIsSaidInWords(t *testing.T) {
	t.Parallel()
	no := false
	for _, c := range []struct {
		choice lathe.ToolChoice
		single *bool
		want   string
	}{
		{lathe.ToolChoice{Mode: lathe.ChoiceRequired}, nil, "You must call a tool now."},
		{lathe.ToolChoice{Mode: lathe.ChoiceFunction, Name: "add_numbers"}, nil, "You must call the tool add_numbers now."},
		{lathe.ToolChoice{}, &no, "Call one tool at a time."},
	} {
		l := &listener{}
		m, err := provider.WithDialect(l, "hermes", nil)
		if err != nil {
			t.Fatal(err)
		}
		generate(t, m, &lathe.Request{Messages: []lathe.Message{lathe.User("x")}, Tools: addTool, ToolChoice: c.choice, ParallelToolCalls: c.single})
		if got := l.asked[0]; !strings.HasSuffix(got.Messages[0].Text(), c.want) || got.ToolChoice.Mode != "" || got.ParallelToolCalls != nil {
			t.Errorf("%v: sent %v %q", c.choice, got.ToolChoice, got.Messages[0].Text())
		}
		generate(t, m, &lathe.Request{Messages: []lathe.Message{lathe.User("x")}, Tools: addTool, ToolChoice: lathe.ToolChoice{Mode: lathe.ChoiceNone}})
		if got := l.asked[1]; len(got.Messages) != 1 || len(got.Tools) != 0 {
			t.Errorf("tool_choice none sent %v", got)
		}
	}
}

// Analysis goes back between the calls of one turn, and not once the turn was answered. A call that
// could not be read goes back as one without arguments.
func TestHarmonyHistoryKeepsAnalysisUntilTheAnswer(t *testing.T) {
	t.Parallel()
	l := &listener{}
	m, err := provider.WithDialect(l, "harmony", nil)
	if err != nil {
		t.Fatal(err)
	}
	unreadable := lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Text{Text: "{"}, lathe.ToolCall{ID: "b", Arguments: "{", ParseError: lathe.CodePayloadParseError}}}
	answer := lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Reasoning{Text: "so"}, lathe.Text{Text: "1"}}}
	history := []lathe.Message{lathe.User("Add."), called("a", `{"a":1}`), answered("a", "1"), answer, lathe.User("Again."),
		called("c", `{"a":2}`), answered("c", "2"), unreadable, answered("b", "error")}
	generate(t, m, &lathe.Request{Messages: history, Tools: addTool})
	got := l.asked[0].Messages
	thinks := func(m lathe.Message) bool {
		for _, p := range m.Parts {
			if _, ok := p.(lathe.Reasoning); ok {
				return true
			}
		}
		return false
	}
	if len(got) != len(history)+1 || thinks(got[2]) || thinks(got[4]) || !thinks(got[6]) {
		t.Fatalf("sent %v", got)
	}
	if c := got[8].Calls(); len(c) != 1 || c[0].Name != "unknown" || c[0].Arguments != "{}" || c[0].ID != "b" {
		t.Errorf("the unreadable call went back as %+v", c)
	}
	if !thinks(history[1]) || history[7].Calls()[0].Arguments != "{" {
		t.Error("the caller's history was changed")
	}
}

// Native costs nothing: the model is the same value, so nothing is scanned. Neither is a text model
// without tools.
func TestNativeAndIdleCostNothing(t *testing.T) {
	testdata.CountsAllocations(t)
	l := &listener{}
	m, err := provider.WithDialect(l, "native", nil)
	if err != nil || m != lathe.Model(l) {
		t.Fatalf("native gives another model: %v, %v", m, err)
	}
	m, err = provider.WithDialect(quiet{}, "tags", nil)
	if err != nil {
		t.Fatal(err)
	}
	req := &lathe.Request{Messages: []lathe.Message{lathe.User("x")}}
	drain := func(m lathe.Model) func() {
		return func() {
			for range m.Generate(context.Background(), req) {
			}
		}
	}
	if n, own := testing.AllocsPerRun(100, drain(m)), testing.AllocsPerRun(100, drain(quiet{})); n != own {
		t.Errorf("a turn without tools allocates %v times, the model alone %v", n, own)
	}
}

// A quiet model streams one text many times and allocates nothing.
type quiet struct{}

var quietFinish = &lathe.Finish{Message: lathe.Assistant("<tool> is text"), Reason: lathe.FinishStop}

func (quiet) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (quiet) Generate(context.Context, *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return sayQuietly
}

func sayQuietly(yield func(lathe.Delta, error) bool) {
	for range 1000 {
		if !yield(lathe.Delta{Kind: lathe.DeltaText, Text: "some text "}, nil) {
			return
		}
	}
	yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: quietFinish}, nil)
}

func BenchmarkTextTurn(b *testing.B) {
	for _, name := range []string{"native", "tags idle", "tags", "harmony", "hermes", "auto"} {
		b.Run(name, func(b *testing.B) {
			req := &lathe.Request{Messages: []lathe.Message{lathe.User("x")}, Tools: addTool}
			dialectName, idle := strings.CutSuffix(name, " idle")
			if idle {
				req.Tools = nil
			}
			m, err := provider.WithDialect(quiet{}, dialectName, nil)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(1000 * int64(len("some text ")))
			b.ReportAllocs()
			for b.Loop() {
				for range m.Generate(b.Context(), req) {
				}
			}
		})
	}
}
