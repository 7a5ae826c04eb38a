package rules

import (
	"strings"
	"testing"
)

// The problem of a condition names its place, what is wrong and how to correct it, once.
func TestProblemsOfConditionsNameTheCorrection(t *testing.T) {
	t.Parallel()
	for when, want := range map[string]string{
		`args.path = "x"`:       "a single = is no operator: write ==",
		`tool == "x" & true`:    "a single & is no operator: write &&",
		`tool == "x" | true`:    "a single | is no operator: write ||",
		`tool == #`:             "the character here begins no expression",
		`tool == "x" turn == 1`: "join two conditions with && or ||",
		`tool ==`:               "the condition cannot be parsed here",
		`path == "x"`:           "no variable or function is called path: a condition has args, tool,",
		`argz.path == "x"`:      "no variable or function is called argz: did you mean args?",
		`tool.startsWith(1)`:    "startsWith does not take the types string.(int)",
	} {
		c := &compiler{maxCost: 1000}
		_, bad := c.compile(when)
		if len(bad) != 1 || !strings.Contains(bad[0].Message, want) || bad[0].Line != 1 || bad[0].Column == 0 || strings.Contains(bad[0].Message, "Syntax error") {
			t.Errorf("%s: got %v, want one problem with %q", when, bad, want)
		}
	}
	c := &compiler{maxCost: 1000}
	env, err := c.environment()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, v := range env.Variables() {
		for _, name := range conditionVariables {
			if v.Name() == name {
				seen++
			}
		}
	}
	if seen != len(conditionVariables) {
		t.Errorf("%d of the variables %v exist", seen, conditionVariables)
	}
}
