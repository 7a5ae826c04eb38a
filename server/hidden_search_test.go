package server_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
)

// A request that brings the result of a client's call keeps the tools that the conversation has found and called: their hidden
// turns are in its history.
func TestAConversationKeepsTheToolsThatItFound(t *testing.T) {
	t.Parallel()
	var tools []lathe.Tool
	for i := range 20 {
		tools = append(tools, tool.Func(fmt.Sprintf("shelf_%02d", i), fmt.Sprintf("Returns what is on shelf %d.", i),
			func(context.Context, struct{}) (string, error) { return "nothing", nil }, &tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"*"}}))
	}
	kept := store.NewMemory(nil)
	sent := func(req *lathe.Request) string {
		var names []string
		for _, s := range req.Tools {
			if strings.HasPrefix(s.Name, "shelf_") || s.Name == tool.SearchName || s.Name == "weather" {
				names = append(names, s.Name)
			}
		}
		return strings.Join(names, " ")
	}
	model := func() *fake {
		return &fake{turn: func(_ int, req *lathe.Request) lathe.Message {
			switch got := transcript(req.Messages); {
			case strings.Contains(got, "=c1"):
				return says(lathe.Text{Text: sent(req)})
			case strings.Contains(got, "=s2"):
				return says(calls("c1", "weather", `{"city":"Oslo"}`))
			case strings.Contains(got, "=s1"):
				return says(calls("s2", "shelf_07", `{}`))
			default:
				return says(calls("s1", tool.SearchName, `{"names":["shelf_07","shelf_03"]}`))
			}
		}}
	}
	for _, stream := range []bool{false, true} {
		more := fmt.Sprintf(`,"tools":[%s],"stream":%v}`, weatherTool, stream)
		first := model()
		f := serve(t, &setting{model: first, store: kept, tools: tools, search: tool.Search{Mode: tool.SearchOn}})
		m, finish := f.answer(`{"model":"sim/x","messages":[{"role":"user","content":"hi"}]`+more, stream)
		if finish != "tool_calls" || len(m.ToolCalls) != 1 {
			t.Fatalf("stream %v: %+v (%s)", stream, m, finish)
		}
		if got := sent(&first.all()[2]); got != "tool_search weather shelf_07 shelf_03" {
			t.Errorf("stream %v: the run sent %q", stream, got)
		}
		m, _ = f.answer(`{"model":"sim/x","messages":[`+again(m, "rain")+`]`+more, stream)
		if m.Content != "tool_search weather shelf_07 shelf_03" {
			t.Errorf("stream %v: the next request sent %q", stream, m.Content)
		}
		if slices.ContainsFunc(first.all(), func(r lathe.Request) bool { return len(r.Tools) > 12 }) {
			t.Errorf("stream %v: a request has all tools", stream)
		}
	}
}

// A request whose definitions exceed a limit because its client has a tool with the name of the search is refused with the limit,
// the number and the cause.
func TestTooManyToolsAreRefusedByName(t *testing.T) {
	t.Parallel()
	var tools []lathe.Tool
	for i := range 40 {
		tools = append(tools, tool.Func(fmt.Sprintf("shelf_%02d", i), "Returns what is on a shelf.",
			func(context.Context, struct{}) (string, error) { return "nothing", nil }, &tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"*"}}))
	}
	f := serve(t, &setting{model: &fake{}, tools: tools, search: tool.Search{Mode: tool.SearchOn}, limits: lathe.Limits{MaxTools: 20}})
	resp, body := f.do("POST", "/v1/chat/completions", `{"model":"sim/x","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"tool_search","parameters":{"type":"object"}}}]}`)
	if resp.StatusCode != 400 || !strings.Contains(body, `"too_many_tools"`) || !strings.Contains(body, "tool_calling.max_tools is 20; the request has a tool of its own with the name tool_search") ||
		!strings.Contains(body, "Declare fewer tools") || strings.Contains(body, "builtin") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	_, list := f.do("GET", "/api/runs", "")
	if !strings.Contains(list, `"error_code":"too_many_tools"`) {
		t.Errorf("the run: %s", list)
	}
}
