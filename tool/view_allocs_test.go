//go:build !race

package tool_test

import (
	"fmt"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

// A run whose tools are known allocates its Work and one list of them, however many there are.
func TestOfferingManyToolsAgainAllocatesLittle(t *testing.T) {
	var many []lathe.Tool
	for i := range 2000 {
		many = append(many, from("a", fmt.Sprintf("tool_%04d", i))...)
	}
	set, err := tool.NewSetWithin(lathe.Limits{MaxTools: 2000, MaxToolsBytes: 1 << 30}, many...)
	if err != nil {
		t.Fatal(err)
	}
	r, err := tool.NewRunner(set, &tool.Options{Policy: policy.All(policy.Default(), policy.Trifecta{}, policy.Budget{})})
	if err != nil {
		t.Fatal(err)
	}
	run := &lathe.RunInfo{Principal: "ann"}
	use := func() {
		w := r.Begin(run, nil)
		if n := len(w.Specs()); n != 2000 {
			t.Fatalf("%d tools", n)
		}
	}
	use()
	if n := testing.AllocsPerRun(200, use); n > 2 {
		t.Errorf("%v allocations a run", n)
	}
}
