package server

import (
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/tool"
)

// listedTools are tools of which only the definitions are used.
type listedTools struct {
	Tools
	specs []*lathe.ToolSpec
}

func (l listedTools) Specs() []*lathe.ToolSpec { return l.specs }

// The search for tools only reads, unless it is a tool of the operator that has the name; a tool that has left may write.
func TestTheSearchForToolsMayNotWrite(t *testing.T) {
	t.Parallel()
	if searchTool != tool.SearchName {
		t.Errorf("the search is called %s", searchTool)
	}
	look := &lathe.ToolSpec{Name: "look", Effect: lathe.ReadOnly}
	for _, tt := range []struct {
		specs []*lathe.ToolSpec
		name  string
		want  bool
	}{
		{[]*lathe.ToolSpec{look}, tool.SearchName, false},
		{[]*lathe.ToolSpec{look, {Name: tool.SearchName, Effect: lathe.Writes}}, tool.SearchName, true},
		{[]*lathe.ToolSpec{look}, "look", false},
		{[]*lathe.ToolSpec{look}, "gone", true},
	} {
		if got := (&Setup{Tools: listedTools{specs: tt.specs}}).mayWrite(tt.name); got != tt.want {
			t.Errorf("%s among %d tools may write: %v", tt.name, len(tt.specs), got)
		}
	}
}
