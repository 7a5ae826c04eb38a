package wasmtool_test

import (
	"context"
	"fmt"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/wasmtool"
)

func ExampleOpen() {
	modules, err := wasmtool.Open("testdata/sum.wasm", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer modules.Close()
	set, err := tool.NewSet(modules.List()...)
	if err != nil {
		fmt.Println(err)
		return
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.AllowAll()})
	if err != nil {
		fmt.Println(err)
		return
	}
	work := runner.Begin(&lathe.RunInfo{}, nil)
	call := tool.Call{ToolCall: lathe.ToolCall{Name: "sum", Arguments: `{"a":7,"b":35}`}}
	out := work.Execute(context.Background(), 1, []tool.Call{call}, func(event.Data) {})
	fmt.Println(out.Messages[0].Parts[0].(lathe.ToolResult).Content)
	// Output: {"sum":42}
}
