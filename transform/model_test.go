package transform

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/callid"
)

// A recorder notes the requests that reach it.
type recorder struct {
	script
	messages [][]lathe.Message
	tools    [][]*lathe.ToolSpec
}

func (r *recorder) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	r.messages = append(r.messages, req.Messages)
	r.tools = append(r.tools, req.Tools)
	return r.script.Generate(ctx, req)
}

func (r *recorder) Describe() lathe.ModelInfo { return lathe.ModelInfo{Provider: "p", Model: "m"} }

// everything lists all transforms that do something.
func everything() List {
	return List{Message: names(Message), Tool: names(Tool), Response: names(Response), ToolCall: names(ToolCall), ToolResult: names(ToolResult)}
}

func TestWrapAroundNothing(t *testing.T) {
	t.Parallel()
	m := &recorder{}
	for _, c := range []*Chain{nil, mustChain(t, List{}), mustChain(t, List{Response: []string{"assistant_function_call_to_tool_calls"}})} {
		if Wrap(m, c) != lathe.Model(m) {
			t.Errorf("an empty chain is wrapped around the model")
		}
	}
}

func TestWrapKeepsWhatTheModelIs(t *testing.T) {
	t.Parallel()
	m := &recorder{}
	w := Wrap(m, mustChain(t, everything()))
	if got := w.Describe(); got.Provider != "p" || got.Model != "m" {
		t.Errorf("got %+v", got)
	}
	bare := Wrap(script{}, mustChain(t, everything()))
	if got := bare.Describe(); got != (lathe.ModelInfo{WritesCalls: true}) {
		t.Errorf("a model that does not say what it is, is %+v", got)
	}
}

// Each request of a conversation begins with the messages of the one before, as they were sent, and has the same values for tools: by
// these the model beneath knows what it has encoded.
func TestConversationGrowsByAppending(t *testing.T) {
	t.Parallel()
	m := &recorder{script: script{{Kind: lathe.DeltaFinish, Finish: &lathe.Finish{}}}}
	w := Wrap(m, mustChain(t, everything()))
	history := []lathe.Message{lathe.System("s"), lathe.User("?")}
	specs := []*lathe.ToolSpec{{Name: "clock", Description: "the time"}}
	for turn := range 3 {
		for range w.Generate(t.Context(), &lathe.Request{Messages: history, Tools: specs}) {
		}
		id := fmt.Sprintf("call_%d", turn)
		history = append(history[:len(history):len(history)],
			lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Text{Text: " "}, lathe.ToolCall{ID: id, Name: "clock", Arguments: " "}}},
			lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: id, Content: `{"ok":true,"errors":[]}`}}})
	}
	last := m.messages[2]
	for i, before := range m.messages[:2] {
		if diff := cmp.Diff(before, last[:len(before)]); diff != "" {
			t.Errorf("request %d is not the beginning of the last one: %s", i, diff)
		}
	}
	if !same(m.tools[0], m.tools[2]) || m.tools[0][0].Description != "" || specs[0].Description == "" {
		t.Error("the tools are not the same values in each request, or the wrong ones changed")
	}
	call, result := last[2].Calls()[0], last[3].Parts[0].(lathe.ToolResult)
	if call.ID != result.CallID || !callid.IsShort(call.ID) || call.Arguments != "{}" || result.Content != `{"ok":true}` {
		t.Errorf("got %+v and %+v", call, result)
	}
	if history[2].Calls()[0].ID != "call_0" {
		t.Error("the history that was given has changed")
	}
}

func TestShortIDsComeBack(t *testing.T) {
	t.Parallel()
	list := List{ToolCall: []string{nineLetter}}
	var ids callid.Short
	short := ids.Of("call_0")
	again := lathe.ToolCall{ID: short, Name: "clock"}
	m := &recorder{script: script{{Kind: lathe.DeltaCallStart, ID: short, Name: "clock"}, {Kind: lathe.DeltaCallEnd},
		{Kind: lathe.DeltaFinish, Finish: &lathe.Finish{Message: lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{again}}}}}}
	req := &lathe.Request{Messages: []lathe.Message{lathe.User("?"),
		{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.ToolCall{ID: "call_0", Name: "clock"}}}}}
	for d := range Wrap(m, mustChain(t, list)).Generate(t.Context(), req) {
		switch {
		case d.Kind == lathe.DeltaCallStart && d.ID != "call_0":
			t.Errorf("the delta has the id %q", d.ID)
		case d.Kind == lathe.DeltaFinish && d.Finish.Message.Calls()[0].ID != "call_0":
			t.Errorf("the message has the id %q", d.Finish.Message.Calls()[0].ID)
		}
	}
	if got := m.messages[0][1].Calls()[0].ID; got != short {
		t.Errorf("the server got the id %q, want %q", got, short)
	}
}

func TestStoppingEarlyStopsTheModel(t *testing.T) {
	t.Parallel()
	for n := range 4 {
		m := script{{Kind: lathe.DeltaText, Text: "a <tool_call>clock</tool_call> b"}, {Kind: lathe.DeltaCallStart, Name: "clock"},
			{Kind: lathe.DeltaCallEnd}, {Kind: lathe.DeltaFinish, Finish: &lathe.Finish{}}}
		seen := 0
		for range Wrap(m, mustChain(t, everything())).Generate(t.Context(), &lathe.Request{Tools: tools}) {
			if seen++; seen > n {
				break
			}
		}
	}
}

func TestAnErrorComesLast(t *testing.T) {
	t.Parallel()
	failing := failure{script{{Kind: lathe.DeltaText, Text: "a <tool_call>clo"}}}
	text, failed := "", false
	for d, err := range Wrap(failing, mustChain(t, everything())).Generate(t.Context(), &lathe.Request{Tools: tools}) {
		if failed {
			t.Fatal("something came after the error")
		}
		failed = err != nil
		if d.Kind == lathe.DeltaText {
			text += d.Text
		}
	}
	if !failed || text != "a" {
		t.Errorf("got text %q, and an error: %v", text, failed)
	}
}

type failure struct{ script }

func (failure) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (f failure) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		for d := range f.script.Generate(ctx, req) {
			if !yield(d, nil) {
				return
			}
		}
		yield(lathe.Delta{}, &lathe.Error{Code: lathe.CodeUpstream})
	}
}

func TestNewRefusesUnknownNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		list List
		want string
	}{
		{List{Message: []string{"assistant_tool_calls_content_null_if_blanc"}}, "did you mean assistant_tool_calls_content_null_if_blank?"},
		{List{Response: []string{blankArgs}}, "is a tool_call transform, not a response transform"},
		{List{ToolResult: []string{"nothing"}}, "(tool_result_compact_envelope)"},
		{List{Tool: []string{""}}, "(openai_tools_strip_function_descriptions)"},
		{List{Tool: []string{strings.Repeat("x", 1000)}}, "no tool transform"},
	} {
		_, err := New(c.list, nil)
		if lathe.CodeOf(err) != lathe.CodeInvalidConfig || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 400 {
			t.Errorf("%+v: got %v, want %q", c.list, err, c.want)
		}
	}
	if _, err := New(List{ToolResult: []string{"Tool-Result-Compact-Envelope", "tool_result_compact_envelope"}}, nil); err != nil {
		t.Errorf("a name in another spelling is refused: %v", err)
	}
	if _, err := Check("result", "x"); err == nil {
		t.Error("an unknown kind is taken")
	}
}

func ExampleWrap() {
	chain, err := New(List{ToolCall: []string{"tool_call_ids_nine_alphanumeric"}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	var server recorder
	model := Wrap(&server, chain)
	for range model.Generate(context.Background(), &lathe.Request{Messages: []lathe.Message{
		{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: "call_49c89af0", Content: "12:00"}}},
	}}) {
	}
	fmt.Println(len(server.messages[0][0].Parts[0].(lathe.ToolResult).CallID))
	// Output: 9
}
