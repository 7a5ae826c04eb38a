package price

import (
	"strings"

	"github.com/lathe-run/lathe/internal/lazy"
)

// A ListPrice is the vendor's price of a model, as a page of the vendor or a public list of prices states it. Batches,
// priority tiers, caches of an hour, and tools of the vendor have other prices. A model whose price depends on the length of the
// request or the time of day has no list price here, nor has one that the vendor's API no longer serves.
type ListPrice struct {
	Host        string // of the vendor's API: "api.openai.com"
	Model       string
	Price       Price
	MaxOutput   int64  // tokens of one answer at most, reasoning included; 0: not known
	Source      string // address of the text that states the price: the vendor's page, or one commit of a public list
	LimitSource string // address of the text that states MaxOutput
	Read        string // the day on which both were read, in stored copies that have no date and can be older: "2026-11-23"
}

const (
	openaiHost    = "api.openai.com"
	openaiDocs    = "https://developers.openai.com/"
	anthropicHost = "api.anthropic.com"
	anthropicDocs = "https://platform.claude.com/docs/"

	anthropicPrices = anthropicDocs + "en/about-claude/pricing"

	// Where no copy of the vendor's page states the whole price, one commit of a public list does.
	liteLLM   = "https://github.com/BerriAI/litellm/blob/00035b69f416be24e2e323c13198d9b7d2d1bdf9/model_prices_and_context_window.json"
	modelsDev = "https://github.com/anomalyco/models.dev/blob/482fb019a4847290b37990da929dc707d9243dca/providers/"

	readOn = "2026-11-23"
)

// tenths returns a price whose amounts are given in tenths of a cent.
func tenths(input, cached, written, output Money) Price {
	const tenth = Dollar / 1000
	return Price{Input: input * tenth, CachedInput: cached * tenth, CacheWrite: written * tenth, Output: output * tenth}
}

// openai returns a row whose price and limit source states.
func openai(model string, p Price, maxOutput int64, source string) ListPrice {
	return ListPrice{Host: openaiHost, Model: model, Price: p, MaxOutput: maxOutput, Source: source, LimitSource: source, Read: readOn}
}

// anthropic returns a row whose price source states, and whose longest answer limit states.
func anthropic(model string, p Price, maxOutput int64, source, limit string) ListPrice {
	return ListPrice{Host: anthropicHost, Model: model, Price: p, MaxOutput: maxOutput, Source: source, LimitSource: limit, Read: readOn}
}

// listPrices has one row a model. The sources state no price of cache writes for these models of OpenAI: a cache write
// costs as much as other input.
var listPrices = []ListPrice{
	openai("gpt-4.1", tenths(2000, 500, 2000, 8000), 32_768, liteLLM),
	openai("gpt-4o", tenths(2500, 1250, 2500, 10_000), 16_384, liteLLM),
	openai("gpt-4o-2024-05-13", tenths(5000, 5000, 5000, 15_000), 4096, liteLLM),
	openai("gpt-4o-mini", tenths(150, 75, 150, 600), 16_384, liteLLM),
	openai("gpt-5", tenths(1250, 125, 1250, 10_000), 128_000, liteLLM),
	openai("gpt-5-mini", tenths(250, 25, 250, 2000), 128_000, openaiDocs+"ko-KR/api/docs/models/gpt-5-mini"),
	openai("gpt-5.2", tenths(1750, 175, 1750, 14_000), 128_000, liteLLM),
	openai("gpt-5.4-mini", tenths(750, 75, 750, 4500), 128_000, liteLLM),

	anthropic("claude-fable-5", tenths(10_000, 1000, 12_500, 50_000), 128_000, anthropicPrices, anthropicDocs+"en/models/fable-5/overview.md"),
	anthropic("claude-fable-5-1", tenths(10_000, 250, 12_500, 50_000), 128_000, anthropicPrices, anthropicDocs+"zh-CN/models/fable-5-1/overview.md"),
	anthropic("claude-haiku-4-5", tenths(1000, 100, 1250, 5000), 64_000, liteLLM, anthropicDocs+"pt-BR/models/haiku-4-5/overview.md"),
	anthropic("claude-opus-4-5", tenths(5000, 500, 6250, 25_000), 64_000, anthropicPrices, anthropicDocs+"pt-BR/models/opus-4-5/overview.md"),
	anthropic("claude-opus-4-6", tenths(5000, 500, 6250, 25_000), 128_000, anthropicPrices, anthropicDocs+"en/models/opus-4-6/overview.md"),
	anthropic("claude-opus-4-7", tenths(5000, 500, 6250, 25_000), 128_000, anthropicPrices, liteLLM),
	anthropic("claude-opus-4-8", tenths(5000, 500, 6250, 25_000), 128_000, anthropicPrices, anthropicDocs+"de/models/opus-4-8/overview.md"),
	anthropic("claude-opus-5", tenths(5000, 500, 6250, 25_000), 128_000, anthropicPrices, anthropicDocs+"about-claude/models/whats-new-opus-5"),
	// LiteLLM states a higher price above 200,000 tokens. No request has more: the vendor's page gives that context window.
	anthropic("claude-sonnet-4-5", tenths(3000, 300, 3750, 15_000), 64_000, liteLLM, anthropicDocs+"pt-BR/models/sonnet-4-5/overview.md"),
	anthropic("claude-sonnet-4-6", tenths(3000, 300, 3750, 15_000), 128_000, liteLLM, anthropicDocs+"pt-BR/models/sonnet-4-6/overview.md"),
	anthropic("claude-sonnet-5", tenths(2000, 200, 2500, 10_000), 128_000, anthropicDocs+"zh-CN/models/sonnet-5/overview", anthropicDocs+"zh-CN/models/sonnet-5/overview"),
	// The stored copies of the vendor's page state 0.20 for cached input. This list states 0.10 and cites a later page of the vendor.
	anthropic("claude-sonnet-5-5", tenths(2000, 100, 2500, 10_000), 128_000, modelsDev+"anthropic/models/claude-sonnet-5-5.toml", anthropicDocs+"zh-CN/models/sonnet-5-5/overview"),
}

// snapshot is the day that vendors append to the name of a model: gpt-5-mini-2025-08-07, claude-haiku-4-5-20251001.
var snapshot = lazy.Regexp(`-20\d\d-?\d\d-?\d\d$`)

// FindListPrice returns the list price of a model at the vendor whose API has the host, in any letter case. A snapshot with a
// day at the end of its name has the price of its model, unless it has a row of its own. ok is false if none is known: other
// hosts can have other prices.
func FindListPrice(host, model string) (found ListPrice, ok bool) {
	host, model = strings.ToLower(host), strings.ToLower(model)
	for _, name := range []string{model, snapshot().ReplaceAllString(model, "")} {
		for _, p := range listPrices {
			if p.Host == host && p.Model == name {
				return p, true
			}
		}
	}
	return ListPrice{}, false
}

// ListPrices returns all list prices, by host and model.
func ListPrices() []ListPrice { return append([]ListPrice(nil), listPrices...) }
