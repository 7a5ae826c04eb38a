package policy_test

import (
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/policy"
)

// A policy that combines others is asked about each tool in each request: it allocates nothing.
func TestAllToolAllocatesNothing(t *testing.T) {
	testdata.CountsAllocations(t)
	p := policy.All(policy.Effects{ReadOnly: lathe.Allow}, policy.Effects{ReadOnly: lathe.Allow})
	run, spec := &lathe.RunInfo{}, &lathe.ToolSpec{Name: "a", Effect: lathe.ReadOnly}
	if n := testing.AllocsPerRun(100, func() {
		if p.Tool(run, spec).Decision != lathe.Allow {
			t.Fatal("not allowed")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
