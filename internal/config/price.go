package config

import (
	"github.com/lathe-run/lathe/internal/price"
	"github.com/lathe-run/lathe/internal/text"
)

// A ModelPrice is the price of a model's tokens. Either all of its amounts are [Unset], or Input and Output are set.
type ModelPrice struct {
	// US dollars per million tokens of requests. Default: the vendor's list price of docs/presets.md where `base_url` is the
	// vendor's, else unknown. Set `input` and `output` together; `0`: the model costs nothing.
	Input price.Money `key:"input" default:"unknown" off:"unknown" range:"0..100000" also:"prompt input_cost"`
	// The same for tokens that the vendor read from its cache. Default: `input`.
	CachedInput price.Money `key:"cached_input" default:"unknown" off:"unknown" range:"0..100000" also:"cache_read cached"`
	// The same for tokens that the vendor wrote to its cache. Default: `input`.
	CacheWrite price.Money `key:"cache_write" default:"unknown" off:"unknown" range:"0..100000" also:"cache_creation"`
	// US dollars per million output tokens, reasoning included.
	Output price.Money `key:"output" default:"unknown" off:"unknown" range:"0..100000" also:"completion output_cost"`
}

// Price returns the price, with defaults for the amounts that are not set. ok is false if no price is configured.
func (p *ModelPrice) Price() (of price.Price, ok bool) {
	if p.Input == Unset || p.Output == Unset {
		return price.Price{}, false
	}
	of = price.Price(*p)
	for _, m := range []*price.Money{&of.CachedInput, &of.CacheWrite} {
		if *m == Unset {
			*m = p.Input
		}
	}
	return of, true
}

// checkPrices checks that each price has both Input and Output, or neither.
func (l *loader) checkPrices() {
	for name, m := range text.ByName(l.cfg.Models) {
		p := &m.Price
		key := "models." + name + ".price."
		switch _, known := p.Price(); {
		case known:
		case p.Input != Unset:
			l.at(key+"input", "needs price.output as well: a price is both")
		case p.Output != Unset:
			l.at(key+"output", "needs price.input as well: a price is both")
		case p.CachedInput != Unset:
			l.at(key+"cached_input", "needs price.input and price.output as well")
		case p.CacheWrite != Unset:
			l.at(key+"cache_write", "needs price.input and price.output as well")
		}
	}
}
