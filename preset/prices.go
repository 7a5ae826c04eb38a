package preset

import (
	"strings"

	"github.com/lathe-run/lathe/internal/lazy"
	"github.com/lathe-run/lathe/price"
)

// A ListPrice is the vendor's price of a model, as the vendor's own page said on a day. Batches, priority tiers,
// caches of an hour, and tools of the vendor have other prices. A model whose price depends on the length of the request or
// the time of day has no list price here.
type ListPrice struct {
	Host      string // of the vendor's API: "api.openai.com"
	Model     string
	Price     price.Price
	MaxOutput int64  // tokens of one answer at most, reasoning included; 0: not known
	Source    string // address of the page
	Read      string // the day on which the page said so: "2026-11-05"
}

const (
	openaiHost      = "api.openai.com"
	openaiPrices    = "https://developers.openai.com/api/docs/models"
	anthropicHost   = "api.anthropic.com"
	anthropicPrices = "https://platform.claude.com/docs/en/about-claude/pricing"
)

// tenths returns a price whose amounts are given in tenths of a cent.
func tenths(input, cached, written, output price.Money) price.Price {
	const tenth = price.Dollar / 1000
	return price.Price{Input: input * tenth, CachedInput: cached * tenth, CacheWrite: written * tenth, Output: output * tenth}
}

func openai(model string, p price.Price, maxOutput int64) ListPrice {
	return ListPrice{Host: openaiHost, Model: model, Price: p, MaxOutput: maxOutput, Source: openaiPrices, Read: "2026-11-05"}
}

func anthropic(model string, p price.Price, maxOutput int64) ListPrice {
	return ListPrice{Host: anthropicHost, Model: model, Price: p, MaxOutput: maxOutput, Source: anthropicPrices, Read: "2026-10-24"}
}

// listPrices has one row a model. OpenAI charges cache writes as other input.
var listPrices = []ListPrice{
	openai("gpt-4.1", tenths(2000, 500, 2000, 8000), 32_768),
	openai("gpt-4o", tenths(2500, 1250, 2500, 10_000), 16_384),
	openai("gpt-4o-mini", tenths(150, 75, 150, 600), 16_384),
	openai("gpt-5", tenths(1250, 125, 1250, 10_000), 128_000),
	openai("gpt-5-codex", tenths(1250, 125, 1250, 10_000), 128_000),
	openai("gpt-5-mini", tenths(250, 25, 250, 2000), 128_000),
	openai("gpt-5.2", tenths(1750, 175, 1750, 14_000), 128_000),
	openai("gpt-5.4-mini", tenths(750, 75, 750, 4500), 128_000),

	anthropic("claude-fable-5", tenths(10_000, 1000, 12_500, 50_000), 128_000),
	anthropic("claude-fable-5-1", tenths(10_000, 250, 12_500, 50_000), 128_000),
	anthropic("claude-haiku-4-5", tenths(1000, 100, 1250, 5000), 64_000),
	anthropic("claude-opus-4-1", tenths(15_000, 1500, 18_750, 75_000), 0),
	anthropic("claude-opus-4-5", tenths(5000, 500, 6250, 25_000), 0),
	anthropic("claude-opus-4-6", tenths(5000, 500, 6250, 25_000), 0),
	anthropic("claude-opus-4-7", tenths(5000, 500, 6250, 25_000), 0),
	anthropic("claude-opus-4-8", tenths(5000, 500, 6250, 25_000), 0),
	anthropic("claude-opus-5", tenths(5000, 500, 6250, 25_000), 128_000),
	anthropic("claude-sonnet-4-5", tenths(3000, 300, 3750, 15_000), 0),
	anthropic("claude-sonnet-4-6", tenths(3000, 300, 3750, 15_000), 0),
	anthropic("claude-sonnet-5", tenths(2000, 200, 2500, 10_000), 128_000),
	anthropic("claude-sonnet-5-5", tenths(2000, 100, 2500, 10_000), 128_000),
}

// snapshot is the day that vendors append to the name of a model: gpt-5-mini-2025-08-07, claude-haiku-4-5-20251001.
var snapshot = lazy.Regexp(`-20\d\d-?\d\d-?\d\d$`)

// FindListPrice returns the list price of a model at the vendor whose API has the host, in any letter case. A snapshot with a
// day at the end of its name has the price of its model. ok is false if none is known: other hosts can have other prices.
func FindListPrice(host, model string) (found ListPrice, ok bool) {
	model = snapshot().ReplaceAllString(strings.ToLower(model), "")
	for _, p := range listPrices {
		if p.Host == strings.ToLower(host) && p.Model == model {
			return p, true
		}
	}
	return ListPrice{}, false
}

// ListPrices returns all list prices, by host and model.
func ListPrices() []ListPrice { return append([]ListPrice(nil), listPrices...) }
