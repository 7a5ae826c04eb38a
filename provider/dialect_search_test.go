package provider_test

import (
	"context"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/lathetest"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/tool"
)

// A model that writes calls as text is shown the definitions of loaded tools where it is shown the others.
func TestLoadedToolsReachAModelThatWritesCalls(t *testing.T) {
	t.Parallel()
	set, err := tool.NewSetWithSearch(lathe.Limits{}, tool.Search{Mode: tool.SearchOn},
		tool.Func("add_numbers", "Add two numbers.", func(_ context.Context, in sum) (int, error) { return in.A + in.B, nil },
			&tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"*"}}),
		tool.Func("echo_text", "Echo a text.", func(_ context.Context, in said) (said, error) { return in, nil },
			&tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"*"}}))
	if err != nil {
		t.Fatal(err)
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.AllowAll()})
	if err != nil {
		t.Fatal(err)
	}
	inner := lathetest.NewModel(
		lathetest.Text(`<tool_call>{"name":"tool_search","arguments":{"query":"add numbers"}}</tool_call>`),
		lathetest.Text(`<tool_call>{"name":"add_numbers","arguments":{"a":7,"b":35}}</tool_call>`),
		lathetest.Text("It is 42."))
	model, err := provider.WithDialect(inner, "hermes", nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := loop.New(model, runner, nil)
	if err != nil {
		t.Fatal(err)
	}
	var loaded []string
	var res *event.Result
	for e := range l.Run(t.Context(), &loop.Input{Messages: []lathe.Message{lathe.User("What is 7 + 35?")}}) {
		switch d := e.Data.(type) {
		case *event.ToolsLoaded:
			loaded = append(loaded, d.Tools...)
		case *event.RunFinished:
			res = d.Result
		default:
		}
	}
	if res == nil || res.Answer != "It is 42." || strings.Join(loaded, " ") != "add_numbers" {
		t.Fatalf("%+v, loaded %q", res, loaded)
	}
	for i, req := range inner.Requests() {
		head := req.Messages[0].Text()
		if got, want := strings.Contains(head, "the first number"), i > 0; got != want || !strings.Contains(head, tool.SearchName) || strings.Contains(head, "echo_text") {
			t.Errorf("request %d: %s", i+1, head)
		}
	}
}
