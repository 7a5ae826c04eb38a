package tool_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/tool"
)

// numbered returns n tools that only read, tool_0000 and so on.
func numbered(n int) []lathe.Tool {
	tools := make([]lathe.Tool, n)
	for i := range tools {
		tools[i] = reader(fmt.Sprintf("tool_%04d", i), echo)
	}
	return tools
}

func TestSearchOfASetIsChecked(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		search tool.Search
		tools  []lathe.Tool
		want   string // "": accepted
	}{
		{"off: the name is free, and 128 tools are the limit", tool.Search{}, []lathe.Tool{reader(tool.SearchName, echo)}, ""},
		{"off: too many", tool.Search{}, numbered(129), "129 tools, and tool_calling.max_tools is 128"},
		{"on: many", tool.Search{Mode: tool.SearchOn}, numbered(5000), ""},
		{"auto: many", tool.Search{Mode: tool.SearchAuto}, numbered(5000), ""},
		{"on: too many", tool.Search{Mode: tool.SearchOn}, numbered(10_001), "10001 tools, and tools.search.max_deferred is 10000"},
		{"on: too many of a lower bound", tool.Search{Mode: tool.SearchOn, MaxDeferred: 2}, numbered(3), "3 tools, and tools.search.max_deferred is 2"},
		{"on: too large", tool.Search{Mode: tool.SearchOn, MaxDeferredBytes: 100}, numbered(3), "tools.search.max_deferred_bytes is 100"},
		{"on: the name is taken", tool.Search{Mode: tool.SearchOn}, []lathe.Tool{spec(func(s *lathe.ToolSpec) { s.Name, s.Origin = tool.SearchName, "mcp:find" })},
			"a tool from mcp:find has it, too: rename that tool or turn the search off"},
		{"an unknown mode", tool.Search{Mode: "always"}, nil, `the mode of tool search "always" is not off, auto or on`},
		{"a negative limit", tool.Search{MaxLoaded: -1}, nil, "a limit of tool search is negative"},
		{"an empty name", tool.Search{Always: []string{"a", ""}}, nil, "is empty: write a name, or * for all"},
	} {
		_, err := tool.NewSetWithSearch(lathe.Limits{}, tt.search, tt.tools...)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || lathe.CodeOf(err) != lathe.CodeInvalidConfig):
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestSearchOfASetHoldsForToolsThatComeLater(t *testing.T) {
	t.Parallel()
	set, err := tool.NewSetWithSearch(lathe.Limits{}, tool.Search{Mode: tool.SearchOn}, numbered(2)...)
	if err != nil {
		t.Fatal(err)
	}
	taken := spec(func(s *lathe.ToolSpec) { s.Name, s.Origin = tool.SearchName, "mcp:find" })
	if err := set.Add(taken); err == nil {
		t.Error("Add accepted the name of the search")
	}
	if err := set.Replace("mcp:find", []lathe.Tool{taken}); err == nil {
		t.Error("Replace accepted the name of the search")
	}
	if _, err := set.With(taken); err == nil {
		t.Error("With accepted the name of the search")
	}
	if err := set.Replace(numbered(1)[0].Spec().Origin, numbered(300)); err != nil {
		t.Errorf("Replace by many tools: %v", err)
	}
}
