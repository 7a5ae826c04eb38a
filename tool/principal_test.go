package tool_test

import (
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/tool"
)

// A tool of one principal is not there for the runs of another: not offered, not called, not named, and its
// name is free for a tool of the caller.
func TestToolsOfOnePrincipal(t *testing.T) {
	t.Parallel()
	ran := 0
	own := reader("secret_tool", nil)
	own.spec.Principals = []string{"ann"}
	r := newRunner(t, nil, own, reader("look", nil))
	clients := &tool.RunOptions{ClientTools: []*lathe.ToolSpec{{Name: "secret_tool", Owner: lathe.OwnerClient}}}
	for _, tt := range []struct {
		principal string
		has       bool
	}{{"ann", true}, {"bob", false}, {"", false}} {
		info := &lathe.RunInfo{RunID: "run_1", Principal: tt.principal}
		w := r.Begin(info, nil)
		var names []string
		for _, s := range w.Specs() {
			names = append(names, s.Name)
		}
		if offered := strings.Contains(strings.Join(names, " "), "secret_tool"); offered != tt.has {
			t.Errorf("%q is offered %q", tt.principal, names)
		}
		out := w.Execute(t.Context(), 1, []tool.Call{{ToolCall: lathe.ToolCall{ID: "c1", Name: "secret_tool", Arguments: "{}"}}}, func(d event.Data) {
			if e, ok := d.(*event.ToolCallExecuted); ok && e.Success {
				ran++
			}
		})
		res := out.Messages[0].Parts[0].(lathe.ToolResult)
		if tt.has != !res.IsError || !tt.has && (res.Code != lathe.CodeUnknownTool || strings.Contains(res.Content, "secret_tool")) {
			t.Errorf("%q sees %s", tt.principal, res.Content)
		}
		if err := r.Check(info, clients); (err != nil) != tt.has {
			t.Errorf("a tool of %q under that name: %v", tt.principal, err)
		}
		w = r.Begin(info, clients)
		out = w.Execute(t.Context(), 1, []tool.Call{{ToolCall: lathe.ToolCall{ID: "c2", Name: "secret_tool", Arguments: "{}"}}}, func(event.Data) {})
		if (len(out.Pending) == 1) == tt.has {
			t.Errorf("%q: %d calls are handed over", tt.principal, len(out.Pending))
		}
	}
	if ran != 1 {
		t.Errorf("the tool ran %d times, want 1", ran)
	}
}
