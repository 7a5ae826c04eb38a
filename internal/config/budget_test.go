package config

import (
	"math"
	"strings"
	"testing"
)

func TestBudgets(t *testing.T) {
	t.Parallel()
	c, err := loadText(t, `
keys:
  app: {key: "${K}", group: team, budget: {day: {cost: 2.50, tokens: 100000}, month: {tokens: 0}}}
  other: {key: "${K2}"}
groups:
  team: {budget: {month: {cost: 0.05}}}
serve: {store: "sqlite:x.db"}
`, &LoadOptions{Environ: []string{"K=0123456789abcdef", "K2=0123456789abcdeg"}})
	if err != nil {
		t.Fatal(err)
	}
	want := KeyBudget{Day: PeriodBudget{Cost: 2_500_000_000, Tokens: 100_000}, Month: PeriodBudget{Cost: Unset, Tokens: 0}}
	if got := c.Keys["app"]; got.Budget != want || got.Group != "team" || !got.Budget.Bounds() {
		t.Errorf("app: %+v in %q", got.Budget, got.Group)
	}
	if c.Keys["other"].Budget.Bounds() || c.Groups["team"].Budget.Month != (PeriodBudget{Cost: 50_000_000, Tokens: math.MaxInt64}) {
		t.Errorf("other %+v, team %+v", c.Keys["other"].Budget, c.Groups["team"].Budget)
	}
	again, err := loadText(t, string(c.YAML()), &LoadOptions{Environ: []string{"K=0123456789abcdef", "K2=0123456789abcdeg"}})
	if err != nil || *again.Groups["team"] != *c.Groups["team"] {
		t.Errorf("it is shown as something else: %v\n%s", err, c.YAML())
	}
	if w := c.Warnings(); len(w) != 0 {
		t.Errorf("warnings: %v", w)
	}
}

func TestBudgetsThatAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"groups: {g: {budget: {day: {cost: 1000000001}}}}":                         "groups.g.budget.day.cost: 1000000001 is not from 0 to 1000000000 US dollars",
		"groups: {g: {budget: {day: {tokens: -1}}}}":                               "groups.g.budget.day.tokens: -1 is not from 0 to 1000000000000000",
		"groups: {g: {budget: {month: {tokens: 9000000000000000}}}}":               "groups.g.budget.month.tokens: 9000000000000000 is not from 0",
		"groups: {g: {budget: {week: {cost: 1}}}}":                                 "groups.g.budget.week",
		"groups: {g: {budget: 5}}":                                                 "groups.g.budget",
		"keys: {k: {key: '${K}', group: nobody}}":                                  "keys.k.group: there is no group \"nobody\": add groups.nobody",
		"keys: {k: {key: '${K}', group: taem}}\ngroups: {team: {}}":                `keys.k.group: unknown group "taem", did you mean "team"?`,
		"keys: {k: {key: '${K}', budget: {day: {cost: 1}}}}\nserve: {store: none}": "keys.k.budget: a budget is kept in the store, and serve.store is none",
	} {
		_, err := loadText(t, text, &LoadOptions{Environ: []string{"K=0123456789abcdef"}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestBudgetWarnings(t *testing.T) {
	t.Parallel()
	c, err := loadText(t, "groups: {team: {budget: {day: {cost: 1}}}}", nil)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, w := range c.Warnings() {
		text.WriteString(w.Key + ": " + w.Message + "\n")
	}
	for _, want := range []string{"groups.team.budget: what is used is kept in memory", "groups.team: no key is in this group"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}
