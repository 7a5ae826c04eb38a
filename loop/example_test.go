package loop_test

import (
	"context"
	"fmt"
	"iter"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/lathetest"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

// A model and a Go function, taken in turn until there is an answer.
func Example() {
	type sumIn struct{ A, B int }
	sum := tool.Func("sum", "adds two numbers", func(_ context.Context, in sumIn) (int, error) {
		return in.A + in.B, nil
	}, &tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"*"}})
	set, err := tool.NewSet(sum)
	if err != nil {
		panic(err)
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.AllowAll()})
	if err != nil {
		panic(err)
	}
	l, err := loop.New(adder{}, runner, nil)
	if err != nil {
		panic(err)
	}
	res, err := l.Do(context.Background(), &loop.Input{Messages: []lathe.Message{lathe.User("7 and 35?")}})
	fmt.Println(res.Answer, err)
	// Output: The sum is 42. <nil>
}

// The events of a run, and its result in the last one.
func ExampleLoop_Run() {
	set, err := tool.NewSet()
	if err != nil {
		panic(err)
	}
	runner, err := tool.NewRunner(set, nil)
	if err != nil {
		panic(err)
	}
	l, err := loop.New(lathetest.NewModel(lathetest.Text("Good day.")), runner, &loop.Options{Limits: lathe.Limits{MaxIterations: 3}})
	if err != nil {
		panic(err)
	}
	for e := range l.Run(context.Background(), &loop.Input{Messages: []lathe.Message{lathe.User("Hello!")}}) {
		switch d := e.Data.(type) {
		case *event.TextDelta:
			fmt.Print(d.Text)
		case *event.RunFinished:
			res := loop.Ended(d)
			fmt.Println("\n"+string(res.Reason), loop.Failure(res))
		}
	}
	// Output:
	// Good day.
	// answered <nil>
}

// adder is a model that asks for a sum, then says it.
type adder struct{}

func (adder) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (adder) Generate(_ context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	f := &lathe.Finish{Reason: lathe.FinishToolCalls, Message: lathe.Message{Role: lathe.RoleAssistant,
		Parts: []lathe.Part{lathe.ToolCall{ID: "call_1", Name: "sum", Arguments: `{"A":7,"B":35}`}}}}
	last := req.Messages[len(req.Messages)-1]
	if last.Role == lathe.RoleTool {
		result := last.Parts[0].(lathe.ToolResult)
		f = &lathe.Finish{Reason: lathe.FinishStop, Message: lathe.Assistant("The sum is " + result.Content + ".")}
	}
	return func(yield func(lathe.Delta, error) bool) {
		yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: f}, nil)
	}
}
