package provider_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/provider"
)

// A recital is a model that says these deltas, then an error or a finish.
type recital struct {
	deltas []lathe.Delta
	finish *lathe.Finish
	err    error
}

func (*recital) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (r *recital) Generate(context.Context, *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		for _, d := range r.deltas {
			if !yield(d, nil) {
				return
			}
		}
		if r.err != nil {
			yield(lathe.Delta{}, r.err)
			return
		}
		yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: r.finish}, nil)
	}
}

func inTags(t testing.TB, m lathe.Model, opts *provider.DialectOptions) lathe.Model {
	t.Helper()
	m, err := provider.WithDialect(m, "tags", opts)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func line(d lathe.Delta) string {
	switch d.Kind {
	case lathe.DeltaText:
		return "text " + d.Text
	case lathe.DeltaReasoning:
		return "reasoning " + d.Text
	case lathe.DeltaCallStart:
		return fmt.Sprintf("start %d %s", d.Index, d.Name)
	case lathe.DeltaCallArgs:
		return fmt.Sprintf("args %d %s", d.Index, d.Text)
	case lathe.DeltaCallEnd:
		return fmt.Sprintf("end %d %t", d.Index, d.Incomplete)
	case lathe.DeltaParseError:
		return fmt.Sprintf("error %d %s", d.Index, d.Code)
	}
	return fmt.Sprint(d.Kind)
}

// Calls of the server's own and calls in the text are numbered together and stay in order.
func TestOwnCallsAndTextCallsShareTheirNumbers(t *testing.T) {
	t.Parallel()
	m := inTags(t, &recital{
		deltas: []lathe.Delta{
			{Kind: lathe.DeltaReasoning, Text: "hm"},
			{Kind: lathe.DeltaCallStart, Index: 3, ID: "own", Name: "x"},
			{Kind: lathe.DeltaText, Text: goodCall},
			{Kind: lathe.DeltaCallArgs, Index: 3, Text: "{}"},
			{Kind: lathe.DeltaText, Text: "so" + goodCall},
			{Kind: lathe.DeltaCallEnd, Index: 3},
		},
		finish: &lathe.Finish{Reason: lathe.FinishToolCalls, Message: lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{
			lathe.Reasoning{Text: "hm", Field: "thinking"}, lathe.Text{Text: goodCall + "so" + goodCall}, lathe.ToolCall{ID: "own", Name: "x", Arguments: "{}"}}}},
	}, &provider.DialectOptions{Rand: func() uint64 { return 0 }})
	deltas, f := generate(t, m, &lathe.Request{Tools: addTool, Messages: []lathe.Message{lathe.User("x")}})
	var got []string
	for _, d := range deltas {
		got = append(got, line(d))
	}
	want := "reasoning hm|start 0 x|start 1 add_numbers|args 1 {\"a\":7,\"b\":35}|end 1 false|args 0 {}|text so|start 2 add_numbers|args 2 {\"a\":7,\"b\":35}|end 2 false|end 0 false"
	if s := strings.Join(got, "|"); s != want {
		t.Errorf("deltas\n%s\nwant\n%s", s, want)
	}
	if r := f.Message.Parts[0]; r != (lathe.Reasoning{Text: "hm", Field: "thinking"}) || f.Message.Text() != "so" {
		t.Errorf("parts %v", f.Message.Parts)
	}
	var ids []string
	for _, c := range f.Message.Calls() {
		ids = append(ids, c.ID+"/"+c.Dialect)
	}
	made := "call_" + strings.Repeat("A", 24)
	if s := strings.Join(ids, " "); s != made+"/tags "+made+"/tags own/" {
		t.Errorf("calls %s", s)
	}
}

// A server that answers at once instead of streaming is read as well.
func TestWholeMessageIsRead(t *testing.T) {
	t.Parallel()
	m := inTags(t, &recital{finish: &lathe.Finish{Reason: lathe.FinishStop, Message: lathe.Assistant("Well. " + goodCall)}}, nil)
	deltas, f := generate(t, m, &lathe.Request{Tools: addTool, Messages: []lathe.Message{lathe.User("x")}})
	if textOf(deltas) != "Well." || len(f.Message.Calls()) != 1 || f.Reason != lathe.FinishToolCalls {
		t.Errorf("text %q, calls %v, reason %s", textOf(deltas), f.Message.Calls(), f.Reason)
	}
	s := play(t, simulated(t, "sim/fault-json-instead-of-stream+tags", "tags", nil, ""), twoTools, lathe.Settings{}, lathe.Limits{})
	if s.result.Reason != lathe.ReasonAnswered || len(all[*event.ToolCallExecuted](s)) != 2 {
		t.Errorf("ended %s, events %q", s.result.Reason, s.kinds())
	}
}

// A turn that breaks off gives what was held back of its text before the error.
func TestBrokenTurnLosesNoText(t *testing.T) {
	t.Parallel()
	broken := &lathe.Error{Code: lathe.CodeUpstream}
	m := inTags(t, &recital{deltas: []lathe.Delta{{Kind: lathe.DeltaText, Text: "a <too"}}, err: broken}, nil)
	text := ""
	for d, err := range m.Generate(t.Context(), &lathe.Request{Tools: addTool, Messages: []lathe.Message{lathe.User("x")}}) {
		if err != nil {
			if !errors.Is(err, broken) || text != "a <too" {
				t.Errorf("%q, then %v", text, err)
			}
			return
		}
		text += d.Text
	}
	t.Error("no error")
}

// A consumer that stops hears nothing more, wherever it stops.
func TestStoppingEarlyStops(t *testing.T) {
	t.Parallel()
	for _, recover := range []bool{false, true} {
		full := "Well. " + goodCall + " and " + goodCall + " <tool"
		m := inTags(t, &parrot{text: full, piece: 5}, &provider.DialectOptions{RecoverLeakedCalls: recover})
		req := &lathe.Request{Tools: addTool, Messages: []lathe.Message{lathe.User("x")}}
		deltas, _ := generate(t, m, req)
		for stop := range len(deltas) + 1 {
			n := 0
			for range m.Generate(t.Context(), req) {
				if n++; n > stop {
					break
				}
			}
			if n != stop+1 {
				t.Fatalf("stopped after %d, heard %d", stop+1, n)
			}
		}
	}
}

func TestFinishReasonFollowsTheCalls(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text     string
		in, want lathe.FinishReason
	}{
		{goodCall, lathe.FinishStop, lathe.FinishToolCalls},
		{goodCall, lathe.FinishUnknown, lathe.FinishToolCalls},
		{goodCall, lathe.FinishLength, lathe.FinishLength},
		{goodCall, lathe.FinishContentFilter, lathe.FinishContentFilter},
		{"no call", lathe.FinishToolCalls, lathe.FinishStop},
		{"no call", lathe.FinishStop, lathe.FinishStop},
	} {
		m := inTags(t, &recital{finish: &lathe.Finish{Reason: c.in, Message: lathe.Assistant(c.text)}}, nil)
		if _, f := generate(t, m, &lathe.Request{Tools: addTool, Messages: []lathe.Message{lathe.User("x")}}); f.Reason != c.want {
			t.Errorf("%q with %s gives %s, want %s", c.text, c.in, f.Reason, c.want)
		}
	}
}

func ExampleWithDialect() {
	// The server returns its model's text as it is.
	server := &parrot{text: `Let me see. <tool name="add_numbers" args>{"a":7,"b":35}</tool>`, piece: 10}
	model, err := provider.WithDialect(server, "tags", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	req := &lathe.Request{Messages: []lathe.Message{lathe.User("What is 7 + 35?")}, Tools: addTool}
	for d, err := range model.Generate(context.Background(), req) {
		switch {
		case err != nil:
			fmt.Println(err)
		case d.Kind == lathe.DeltaFinish:
			fmt.Printf("%s %q\n", d.Finish.Reason, d.Finish.Message.Text())
			for _, c := range d.Finish.Message.Calls() {
				fmt.Println(c.Name, c.Arguments)
			}
		}
	}
	// Output:
	// tool_calls "Let me see. "
	// add_numbers {"a":7,"b":35}
}
