package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gateway/mcp"
	"github.com/lathe-run/lathe/tool"
)

// taskRules are the tools whose calls become tasks at once, and those that require clients with tasks.
var taskRules = mcp.Tasks{After: 200 * time.Millisecond, Rules: map[string]mcp.TaskRule{
	"confirm_delete": {AtOnce: true}, "multi_input": {AtOnce: true}, "failing_job": {AtOnce: true, Required: true},
	"protocol_error_job": {AtOnce: true}, "test_tool_with_task": {Required: true},
}}

// lasting returns the tools whose calls take long or become tasks.
func lasting() []lathe.Tool {
	confirm := form("Really?", `{"type":"object","properties":{"confirm":{"type":"boolean"}},"required":["confirm"]}`)
	return []lathe.Tool{
		newTool("greet", "Greets.", `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`, func(ctx context.Context, raw json.RawMessage) (*lathe.Output, error) {
			var args struct{ Name string }
			if err := json.Unmarshal(raw, &args); err != nil {
				return nil, err
			}
			return says("Hello, "+args.Name+"!")(ctx, nil)
		}),
		newTool("slow_compute", "Takes as long as its argument says.", `{"type":"object","properties":{"seconds":{"type":"number"},"label":{"type":"string"}}}`,
			func(ctx context.Context, raw json.RawMessage) (*lathe.Output, error) {
				var args struct{ Seconds float64 }
				if err := json.Unmarshal(raw, &args); err != nil {
					return nil, err
				}
				return slow(time.Duration(args.Seconds*float64(time.Second)), "computed")(ctx, nil)
			}),
		newTool("failing_job", "Fails after a while.", "", func(ctx context.Context, raw json.RawMessage) (*lathe.Output, error) {
			if _, err := slow(time.Second, "")(ctx, raw); err != nil {
				return nil, err
			}
			return &lathe.Output{IsError: true, Data: json.RawMessage(`"the job has failed"`)}, nil
		}),
		asks("protocol_error_job", "Needs what no client of the scenarios can do.", "", oneQuestion("folders", tool.Question{Roots: true})),
		asks("confirm_delete", "Asks before it deletes.", "", oneQuestion("confirm", confirm)),
		asks("multi_input", "Asks two things at once.", "", func(map[string]string) map[string]tool.Question {
			return map[string]tool.Question{"name": form("Your name?", oneField("name", "string")), "confirm": confirm}
		}),
		newTool("test_tool_with_task", "Asks, and takes its time then.", "", func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
			a, err := tool.AskOne(ctx, "user_name", form("What is your name?", oneField("name", "string")))
			if err != nil {
				return nil, err
			}
			return slow(time.Second, "Hello "+string(a.Form))(ctx, nil)
		}),
	}
}
