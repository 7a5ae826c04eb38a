package tool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
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

// Of an error the model sees the code only, except for the text of Fail.
func ExampleFail() {
	open := map[string]bool{"A-1": true}
	closeOrder := tool.Func("close_order", "Closes an order.", func(_ context.Context, in struct {
		ID string `json:"id"`
	}) (string, error) {
		if !open[in.ID] {
			return "", tool.Fail(lathe.CodeInvalidArguments, "there is no open order %s: list the orders first", in.ID)
		}
		return "closed", nil
	}, &tool.FuncOptions{Effect: lathe.Writes})
	model := lathetest.NewModel(lathetest.Call("close_order", `{"id":"B-2"}`), lathetest.Text("No order has this number."))
	rec := lathetest.Run(&testing.T{}, model, "Close B-2.", &lathetest.Options{Tools: []lathe.Tool{closeOrder}, Context: context.Background()})
	for _, res := range lathetest.Only[*event.ToolCallResult](rec.Events) {
		fmt.Println(res.Result)
	}
	// Output: {"ok":false,"error":{"code":"invalid_arguments","message":"The arguments are not what the tool takes. Correct what the error names and call the tool again.","detail":"there is no open order B-2: list the orders first"}}
}

// Around is called in place of each tool, after policy and approval.
func ExampleOptions_around() {
	double := tool.Func("double", "Doubles a number.", func(_ context.Context, in struct {
		N int `json:"n"`
	}) (int, error) {
		return 2 * in.N, nil
	}, &tool.FuncOptions{Effect: lathe.ReadOnly})
	set, err := tool.NewSet(double)
	if err != nil {
		panic(err)
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.Default(), Around: func(ctx context.Context, t lathe.Tool, args json.RawMessage) (*lathe.Output, error) {
		fmt.Println("before", t.Spec().Name)
		out, err := t.Call(ctx, args)
		fmt.Println("after", t.Spec().Name)
		return out, err
	}})
	if err != nil {
		panic(err)
	}
	out, err := runner.Call(context.Background(), "double", json.RawMessage(`{"n":21}`))
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", out.Data)
	// Output:
	// before double
	// after double
	// 42
}

// The tags of a field restrict its values, and those of a list its elements. All of the output is shown, since its fields have tags.
func ExampleFunc_tags() {
	type args struct {
		State string   `json:"state" jsonschema:"enum=open,enum=closed,description=the state\\, as stored"`
		Limit int      `json:"limit,omitempty" jsonschema:"minimum=1,maximum=50,default=10"`
		Tags  []string `json:"tags,omitempty" jsonschema:"maxItems=3,pattern=^[a-z]+$"`
		Text  string   `json:"text,omitempty" jsonschema:"words of the title"`
	}
	type order struct {
		ID    int    `json:"id"`
		State string `json:"state"`
	}
	find := tool.Func("find_orders", "Finds orders.", func(_ context.Context, in args) ([]order, error) {
		return []order{{ID: 7, State: in.State}}, nil
	}, &tool.FuncOptions{Effect: lathe.ReadOnly})
	set, err := tool.NewSet(find)
	if err != nil {
		panic(err)
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.Default()})
	if err != nil {
		panic(err)
	}
	for _, arguments := range []string{`{"state":"open"}`, `{"state":"lost"}`} {
		out, err := runner.Call(context.Background(), "find_orders", []byte(arguments))
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(string(out.Data))
	}
	// Output:
	// [{"id":7,"state":"open"}]
	// tool: call find_orders: invalid_arguments: The arguments are not what the tool takes. Correct what the error names and call the tool again.
}

// The values of an enumeration are known when the program starts.
func ExampleSchemaOf() {
	type args struct {
		Desk string `json:"desk" jsonschema:"the desk that receives the ticket"`
	}
	desks := []any{"billing", "returns"}
	schema, err := tool.SchemaOf[args](func(s *jsonschema.Schema) { s.Properties["desk"].Enum = desks })
	if err != nil {
		panic(err)
	}
	fmt.Println(string(schema))
	assign := tool.Func("assign", "Assigns the ticket.", func(_ context.Context, in args) (string, error) {
		return in.Desk, nil
	}, &tool.FuncOptions{Effect: lathe.Writes, Schema: schema})
	_, err = tool.NewSet(assign)
	fmt.Println(err)
	// Output:
	// {"additionalProperties":false,"properties":{"desk":{"description":"the desk that receives the ticket","enum":["billing","returns"],"type":"string"}},"required":["desk"],"type":"object"}
	// <nil>
}
