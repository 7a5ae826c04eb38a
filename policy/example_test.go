package policy_test

import (
	"fmt"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/policy"
)

// A budget restricts the policy that it is combined with.
func ExampleAll() {
	p := policy.All(policy.Default(), policy.Budget{Calls: 3, Tools: map[string]int{"mail_*": 0}})
	run := &lathe.RunInfo{}
	for _, c := range []lathe.CallInfo{
		{Run: run, Tool: &lathe.ToolSpec{Name: "search", Effect: lathe.ReadOnly}},
		{Run: run, Tool: &lathe.ToolSpec{Name: "mail_send", Effect: lathe.Writes}},
	} {
		v := p.Call(&c)
		fmt.Println(c.Tool.Name, v.Decision, v.Rule)
	}
	// Output:
	// search allow effect.read_only
	// mail_send deny budget.tools
}

// Explain returns the finding of each policy that decides together with others.
func ExampleExplain() {
	p := policy.All(policy.Default(), policy.Tools{Deny: []string{"drop_table"}, Else: policy.AllowAll()})
	v, findings := policy.Explain(p, &lathe.CallInfo{Run: &lathe.RunInfo{}, Tool: &lathe.ToolSpec{Name: "drop_table", Effect: lathe.Writes}})
	fmt.Println(v.Decision)
	for _, f := range findings {
		fmt.Println(f.Rule, f.Decision, f.Decides)
	}
	// Output:
	// deny
	// effect.writes ask false
	// tools.deny deny true
}
