package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/tool"
)

const explainYAML = `
tools: {builtin: []}
policy:
  effects: {read_only: allow, idempotent: ask, writes: deny}
  tools: {asked: ask, denied: deny}
  rules:
    open: {decision: allow, tool: "open_*"}
    small: {decision: allow, effect: writes, when: "args.n < 10"}
    odd: {decision: ask, tool: reads, when: "args.n % 2 == 1"}
    named: {decision: deny, when: "args.name == 'root'"}
`

type explained struct {
	N    int    `json:"n"`
	Name string `json:"name"`
}

// What POST /api/policy/explain says of 1,000 random calls is what the runner does with them.
func TestExplanationsAreTheDecisionsOfTheRunner(t *testing.T) {
	t.Parallel()
	var tools []lathe.Tool
	var names []string
	for name, effect := range map[string]lathe.Effect{"reads": lathe.ReadOnly, "repeats": lathe.Idempotent, "writes": lathe.Writes, "asked": lathe.ReadOnly, "denied": lathe.ReadOnly,
		"open_write": lathe.Writes, "undeclared": lathe.EffectUndeclared} {
		tools = append(tools, tool.Func(name, "A tool.", func(_ context.Context, in explained) (explained, error) { return in, nil }, &tool.FuncOptions{Effect: effect, Show: []string{"*"}}))
		names = append(names, name)
	}
	slices.Sort(names)
	a := open(t, explainYAML, &app.Options{Tools: tools})
	h := a.Handler()
	if status, body := call(t, h, "", "POST", "/api/tools/repeats/disable", ""); status != 200 {
		t.Fatal(status, body)
	}
	random, seen := rand.New(rand.NewPCG(15, 1000)), map[string]int{}
	for range 1000 {
		name := names[random.IntN(len(names))]
		args := fmt.Sprintf(`{"n":%d,"name":%q}`, random.IntN(20), []string{"ann", "root", "root2"}[random.IntN(3)])
		status, body := call(t, h, "", "POST", "/api/policy/explain", `{"tool":"`+name+`","arguments":`+args+`}`)
		var said struct{ Decision, Rule string }
		if err := json.Unmarshal([]byte(body), &said); err != nil || status != 200 {
			t.Fatal(err, status, body)
		}
		status, body = call(t, h, "", "POST", "/api/tools/"+name+"/call", `{"arguments":`+args+`}`)
		did := fmt.Sprint(status, " ", body)
		switch {
		case status == 200 && strings.Contains(body, `"is_error":false`):
			did = "allow"
		case status == 403 && strings.Contains(body, `"approval_required"`):
			did = "ask"
		case status == 403 && strings.Contains(body, `"policy_denied"`):
			did = "deny"
		}
		if seen[did]++; did != said.Decision {
			t.Fatalf("%s(%s): explained as %s by %s, and the runner: %s", name, args, said.Decision, said.Rule, did)
		}
	}
	if len(seen) != 3 || seen["allow"] < 100 || seen["ask"] < 100 || seen["deny"] < 100 {
		t.Errorf("the calls were decided as %v", seen)
	}
}

// Each rule of the configuration is named by its key, so that two decisions about tools can be told apart.
func TestExplanationsNameTheSettingsOfRules(t *testing.T) {
	t.Parallel()
	a := open(t, explainYAML, &app.Options{Tools: []lathe.Tool{tool.Func("asked", "A tool.", func(_ context.Context, in explained) (explained, error) { return in, nil }, &tool.FuncOptions{Effect: lathe.ReadOnly})}})
	status, body := call(t, a.Handler(), "", "POST", "/api/policy/explain", `{"tool":"asked"}`)
	var said struct {
		Rules []struct{ Rule, Source string }
	}
	if err := json.Unmarshal([]byte(body), &said); err != nil || status != 200 {
		t.Fatal(err, status, body)
	}
	got := map[string]string{}
	for _, r := range said.Rules {
		got[r.Rule] = r.Source
	}
	for rule, source := range map[string]string{"tools.ask": "policy.tools.asked", "tools.deny": "policy.tools.denied", "small": "policy.rules.small", "trifecta": ""} {
		if got[rule] != source {
			t.Errorf("%s is in %q, want %q", rule, got[rule], source)
		}
	}
}
