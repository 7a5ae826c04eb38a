package sim_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/sim"
)

// The n-th turn of a script answers the n-th model call of a conversation.
func ExampleParseScript() {
	script, err := sim.ParseScript(strings.NewReader(`
-- turn --
text: Let me see.
call: calculator {"expression":"7 + 35"}
-- turn --
expect: 42
text: The answer is 42.
`))
	if err != nil {
		panic(err)
	}
	m := sim.New(&sim.Options{Scripts: map[string]*sim.Script{"sum": script}}).Model("sim/script-sum")

	messages := []lathe.Message{lathe.User("What is 7 + 35?")}
	for range 2 {
		for d, err := range m.Generate(context.Background(), &lathe.Request{Messages: messages}) {
			if err != nil {
				panic(err)
			}
			if d.Kind != lathe.DeltaFinish {
				continue
			}
			fmt.Println(d.Finish.Reason, d.Finish.Message.Text())
			messages = append(messages, d.Finish.Message)
			for _, p := range d.Finish.Message.Parts {
				if call, ok := p.(lathe.ToolCall); ok {
					messages = append(messages, lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: call.ID, Name: call.Name, Content: "42"}}})
				}
			}
		}
	}
	// Output:
	// tool_calls Let me see.
	// stop The answer is 42.
}

// Each fault of real servers is a model. Ends is the reason with which a run must end that meets it.
func ExampleFaults() {
	for _, f := range sim.Faults() {
		if f.Name == "status-401" {
			fmt.Println(f.Name, f.Ends)
		}
	}

	m := sim.New(nil).Model("sim/fault-status-401")
	for _, err := range m.Generate(context.Background(), &lathe.Request{Messages: []lathe.Message{lathe.User("Hello!")}}) {
		var up *lathe.UpstreamError
		if errors.As(err, &up) {
			fmt.Println(up.Kind, up.Status)
		}
	}
	// Output:
	// status-401 upstream_error
	// upstream_4xx 401
}
