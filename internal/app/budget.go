package app

import (
	"math"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/budget"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
)

// sweepEvery is the interval at which expired reservations are charged.
const sweepEvery = time.Minute

// openMeter makes the meter of model calls, if the store has a ledger. Otherwise it returns an error if there are budgets.
func (a *App) openMeter(cfg *config.Config) error {
	ledger, ok := a.store.(store.Ledger)
	if !ok {
		return a.checkBudgets(cfg)
	}
	a.meter = budget.New(ledger, &budget.Options{Log: a.log, Now: a.opts.now})
	a.meter.SetKeys(budgetsOf(cfg))
	return nil
}

// checkBudgets returns an error if the configuration has budgets and no store records usage.
func (a *App) checkBudgets(cfg *config.Config) error {
	if a.meter != nil {
		return nil
	}
	for _, k := range budgetsOf(cfg) {
		if k.Budget != store.NoBudget || k.GroupBudget != store.NoBudget {
			return invalidConfig("keys have a budget, and no store keeps what they use: name one with serve.store")
		}
	}
	return nil
}

// budgetsOf returns the budgets of the keys, by name.
func budgetsOf(cfg *config.Config) map[string]budget.Key {
	out := map[string]budget.Key{}
	for name, k := range cfg.Keys {
		b := budget.Key{Budget: budgetOf(&k.Budget), Group: k.Group, GroupBudget: store.NoBudget}
		if g := cfg.Groups[k.Group]; g != nil {
			b.GroupBudget = budgetOf(&g.Budget)
		}
		out[name] = b
	}
	for name, k := range cfg.FileKeys {
		out[name] = out[k.Profile]
	}
	return out
}

func budgetOf(b *config.KeyBudget) store.Budget {
	return store.Budget{Day: limitOf(&b.Day), Month: limitOf(&b.Month)}
}

func limitOf(b *config.PeriodBudget) store.Limit {
	l := store.NoLimit
	if b.Cost != config.Unset {
		l.Nanos = int64(b.Cost)
	}
	if b.Tokens != math.MaxInt64 {
		l.Tokens = b.Tokens
	}
	return l
}

// newLoop does the same as [NewLoop], with a meter that admits the model calls of the loop. A nil meter admits all calls.
func newLoop(cfg *config.Config, entry *config.Model, model lathe.Model, runner *tool.Runner, meter *budget.Meter) (*loop.Loop, error) {
	policy, err := NewPolicy(cfg)
	if err != nil {
		return nil, err
	}
	opts := &loop.Options{Settings: cfg.SettingsFor(entry), Limits: cfg.Limits(), Policy: policy,
		Overrides: Overrides(entry), Retention: Retention(cfg)}
	metered := &budget.Model{Name: entry.Name, OutputLimit: int64(entry.OutputLimit), MaxTokens: entry.MaxTokens, Overrides: opts.Overrides}
	if p, known := entry.Price.Price(); known {
		metered.Price = &p
		opts.Cost = func(u lathe.Usage) float64 { return p.Cost(u).Dollars() }
	}
	if meter != nil {
		opts.Meter = meter.For(metered)
	}
	l, err := loop.New(model, runner, opts)
	if err != nil {
		return nil, configError(Cause(err))
	}
	return l, nil
}
