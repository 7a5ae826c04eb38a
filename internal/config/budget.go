package config

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/lathe-run/lathe/internal/price"
	"github.com/lathe-run/lathe/internal/text"
)

// A Group is a budget that several keys share.
type Group struct {
	Budget KeyBudget `key:"budget"`
}

// A KeyBudget limits the usage of a key, or of the keys of a group together, per day and per month of UTC.
type KeyBudget struct {
	Day   PeriodBudget `key:"day" also:"daily"`
	Month PeriodBudget `key:"month" also:"monthly"`
}

// A PeriodBudget limits the usage in one period. An unset Cost is [Unset] and unset Tokens are math.MaxInt64; if both are unset, it limits
// nothing.
type PeriodBudget struct {
	// Maximum cost of all model calls in US dollars, by `models.NAME.price`; a model call without a price is refused. `0`: only calls that cost
	// nothing; `none`: no bound. See docs/budgets.md.
	Cost price.Money `key:"cost" default:"none" off:"none" range:"0..1000000000" also:"usd max_cost"`
	// Maximum tokens of all model calls, input and output; `none`: no bound.
	Tokens int64 `key:"tokens" default:"none" off:"none" range:"0..1000000000000000" also:"max_tokens"`
}

// Bounds reports whether the budget has any limit.
func (b *KeyBudget) Bounds() bool { return b.Day.bounds() || b.Month.bounds() }

func (b *PeriodBudget) bounds() bool { return b.Cost != Unset || b.Tokens != math.MaxInt64 }

// checkBudgets checks groups, and that a store records usage if there are budgets.
func (l *loader) checkBudgets() {
	c := l.cfg
	groups := slices.Sorted(maps.Keys(c.Groups))
	for name, k := range text.ByName(c.Keys) {
		if g := k.Group; g != "" {
			key := "keys." + name + ".group"
			if len(groups) == 0 {
				l.at(key, fmt.Sprintf("there is no group %s: add groups.%s", quote(g), g))
				continue
			}
			l.known(key, "group", g, groups)
		}
	}
	if key := c.budgetKey(); key != "" && c.Serve.Store.Reveal() == "none" {
		l.at(key, "a budget is kept in the store, and serve.store is none: name a store, or leave serve.store out")
	}
}

// budgetKey returns the key of the first budget with a limit, or "".
func (c *Config) budgetKey() string {
	for name, k := range text.ByName(c.Keys) {
		if k.Budget.Bounds() {
			return "keys." + name + ".budget"
		}
	}
	for name, g := range text.ByName(c.Groups) {
		if g.Budget.Bounds() {
			return "groups." + name + ".budget"
		}
	}
	return ""
}

// budgetWarnings returns warnings about budget settings that are valid but probably not intended.
func (c *Config) budgetWarnings() (out []Problem) {
	if key := c.budgetKey(); key != "" && (c.Serve.Store.Reveal() == "" || c.Serve.Store.Reveal() == "memory") {
		out = append(out, c.warning(key, "what is used is kept in memory: it begins at 0 when the process starts again, and other processes do not see it; set serve.store to keep it"))
	}
	used := map[string]bool{}
	for _, k := range c.Keys {
		used[k.Group] = true
	}
	for name := range text.ByName(c.Groups) {
		if !used[name] {
			out = append(out, c.warning("groups."+name, "no key is in this group: set keys.NAME.group"))
		}
	}
	return out
}
