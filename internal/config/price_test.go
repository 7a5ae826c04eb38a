package config

import (
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/price"
)

func TestPrices(t *testing.T) {
	t.Parallel()
	c, err := loadText(t, `
models:
  paid: {price: {input: 3, cached_input: "0.30", output: 15.00}, output_limit: 4096}
  free: {price: {input: 0, output: 0}}
  unknown: {}
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := c.Models["paid"].Price.Price(); !ok || got != (price.Price{Input: 3 * price.Dollar, CachedInput: 300_000_000, CacheWrite: 3 * price.Dollar, Output: 15 * price.Dollar}) {
		t.Errorf("paid: %+v, %v", got, ok)
	}
	if got, ok := c.Models["free"].Price.Price(); !ok || got != (price.Price{}) {
		t.Errorf("free: %+v, %v", got, ok)
	}
	if got, ok := c.Models["unknown"].Price.Price(); ok {
		t.Errorf("unknown: %+v", got)
	}
	again, err := loadText(t, string(c.YAML()), nil)
	if err != nil || again.Models["paid"].Price != c.Models["paid"].Price || again.Models["unknown"].Price != c.Models["unknown"].Price {
		t.Errorf("it is shown as something else: %v\n%s", err, c.YAML())
	}
}

func TestPricesThatAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"models: {m: {price: {input: -1, output: 1}}}":           `models.m.price.input: "-1" is not an amount of US dollars`,
		"models: {m: {price: {input: 1e3, output: 1}}}":          `models.m.price.input: "1e3" is not an amount`,
		"models: {m: {price: {input: 100001, output: 1}}}":       "models.m.price.input: 100001 is not from 0 to 100000 US dollars",
		"models: {m: {price: {input: 0.0000000001, output: 1}}}": "at most 9 digits after the point",
		"models: {m: {price: {input: 1}}}":                       "models.m.price.input: needs price.output as well",
		"models: {m: {price: {output: 1}}}":                      "models.m.price.output: needs price.input as well",
		"models: {m: {price: {cached_input: 1}}}":                "models.m.price.cached_input: needs price.input and price.output",
		"models: {m: {price: {cache_write: 1}}}":                 "models.m.price.cache_write: needs price.input and price.output",
		"models: {m: {price: {in: 1, output: 1}}}":               "models.m.price.in",
	} {
		_, err := loadText(t, text, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
