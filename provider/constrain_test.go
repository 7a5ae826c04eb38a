package provider_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/lathetest"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/tool"
)

// A request with tools gets the constraint of its tool choice; one that cannot be constrained says so, and a member that the caller sets
// itself stays.
func TestRequestsAreConstrained(t *testing.T) {
	t.Parallel()
	tools := []*lathe.ToolSpec{{Name: "f", Schema: []byte(`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`)}}
	own := []lathe.Member{{Name: "grammar", Value: json.RawMessage(`"root ::= \"x\""`)}}
	for name, tt := range map[string]struct {
		dialect string
		req     lathe.Request
		grammar bool
		dropped []string
	}{
		"tools":           {"hermes", lathe.Request{Tools: tools}, true, nil},
		"required":        {"hermes", lathe.Request{Tools: tools, ToolChoice: lathe.ToolChoice{Mode: lathe.ChoiceRequired}}, true, nil},
		"no tools":        {"hermes", lathe.Request{}, false, nil},
		"none":            {"hermes", lathe.Request{Tools: tools, ToolChoice: lathe.ToolChoice{Mode: lathe.ChoiceNone}}, false, nil},
		"own member":      {"hermes", lathe.Request{Tools: tools, Overrides: own}, false, []string{"constraint"}},
		"response format": {"hermes", lathe.Request{Tools: tools, Sampling: lathe.Sampling{ResponseFormat: json.RawMessage(`{"type":"json_object"}`)}}, true, []string{"sampling.response_format"}},
		"unknown dialect": {"auto", lathe.Request{Tools: tools}, false, []string{"constraint"}},
	} {
		inner := lathetest.NewModel(lathetest.Text("hi"), lathetest.Text("hi"))
		model, err := provider.WithDialect(inner, tt.dialect, &provider.DialectOptions{Constrain: "llamacpp"})
		if err != nil {
			t.Fatal(err)
		}
		tt.req.Messages = []lathe.Message{lathe.User("a")}
		for range 2 { // the second time it is not made again
			var dropped []string
			for d, err := range model.Generate(t.Context(), &tt.req) {
				if err != nil {
					t.Fatal(err)
				}
				if d.Finish != nil {
					dropped = d.Finish.Dropped
				}
			}
			requests := inner.Requests()
			sent := requests[len(requests)-1]
			i := slices.IndexFunc(sent.Overrides, func(m lathe.Member) bool { return m.Name == "grammar" })
			if got := i >= 0 && string(sent.Overrides[i].Value) != string(own[0].Value); got != tt.grammar || !slices.Equal(dropped, tt.dropped) {
				t.Errorf("%s: constrained %v, dropped %q", name, got, dropped)
			}
		}
	}
	if _, err := provider.WithDialect(lathetest.NewModel(), "hermes", &provider.DialectOptions{Constrain: "tgi"}); err == nil {
		t.Error("an unknown server is taken")
	}
}

// With ConstrainAfter, a call that cannot be read is asked for again without a grammar first, and then with one, until a turn is readable.
func TestConstraintAfterUnreadableCalls(t *testing.T) {
	t.Parallel()
	const broken, good = "<tool_call>\n{\"name\": \"ping\", \"arguments\": [}\n</tool_call>", "<tool_call>\n{\"name\": \"ping\", \"arguments\": {}}\n</tool_call>"
	for after, want := range map[int][]bool{0: {true, true, true, true, true}, 1: {false, true, true, false, false}, 2: {false, false, true, false, false}} {
		inner := lathetest.NewModel(lathetest.Text(broken), lathetest.Text(broken), lathetest.Text(good), lathetest.Text("done"), lathetest.Text("again"))
		model, err := provider.WithDialect(inner, "hermes", &provider.DialectOptions{Constrain: "llamacpp", ConstrainAfter: after})
		if err != nil {
			t.Fatal(err)
		}
		ping := tool.Func("ping", "Says pong.", func(context.Context, struct{}) (string, error) { return "pong", nil }, &tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"*"}})
		set, err := tool.NewSet(ping)
		if err != nil {
			t.Fatal(err)
		}
		runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.Default()})
		if err != nil {
			t.Fatal(err)
		}
		l, err := loop.New(model, runner, nil)
		if err != nil {
			t.Fatal(err)
		}
		messages := []lathe.Message{lathe.User("go")}
		for range 2 { // a further message of the user begins anew
			for e := range l.Run(t.Context(), &loop.Input{Messages: messages}) {
				if d, ok := e.Data.(*event.RunFinished); ok {
					if d.Result.Reason != lathe.ReasonAnswered {
						t.Fatalf("after %d: %s %v", after, d.Result.Reason, d.Result.Err)
					}
					messages = append(d.Result.History, lathe.User("more"))
				}
			}
		}
		var got []bool
		for _, r := range inner.Requests() {
			got = append(got, slices.ContainsFunc(r.Overrides, func(m lathe.Member) bool { return m.Name == "grammar" }))
		}
		if !slices.Equal(got, want) {
			t.Errorf("after %d unreadable turns: constrained %v, want %v", after, got, want)
		}
	}
}
