package tool_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/lathetest"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

// A model with a thousand tools searches for the one that it needs. Its requests have two definitions and no more.
func ExampleNewSetWithSearch() {
	type place struct {
		City string `json:"city" jsonschema:"the name of the city"`
	}
	options := &tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"*"}}
	tools := []lathe.Tool{tool.Func("weather_now", "Returns the weather of a city.", func(_ context.Context, in place) (string, error) {
		return "It rains in " + in.City + ".", nil
	}, options)}
	for i := range 999 {
		tools = append(tools, tool.Func(fmt.Sprintf("stock_%d", i), fmt.Sprintf("Returns the price of stock %d.", i),
			func(context.Context, struct{}) (int, error) { return i, nil }, options))
	}
	set, err := tool.NewSetWithSearch(lathe.Limits{}, tool.Search{Mode: tool.SearchOn}, tools...)
	if err != nil {
		panic(err)
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.AllowAll()})
	if err != nil {
		panic(err)
	}
	model := lathetest.NewModel(
		lathetest.Call("tool_search", `{"query":"weather in a city"}`),
		lathetest.Call("weather_now", `{"city":"Bergen"}`),
		lathetest.Text("It rains."))
	l, err := loop.New(model, runner, nil)
	if err != nil {
		panic(err)
	}
	res, err := l.Do(context.Background(), &loop.Input{Messages: []lathe.Message{lathe.User("What is the weather in Bergen?")}})
	for _, req := range model.Requests() {
		var names []string
		for _, spec := range req.Tools {
			names = append(names, spec.Name)
		}
		fmt.Println(strings.Join(names, ", "))
	}
	fmt.Println(res.Answer, err)
	// Output:
	// tool_search
	// tool_search, weather_now
	// tool_search, weather_now
	// It rains. <nil>
}
