package price

import (
	"strings"

	"github.com/lathe-run/lathe/internal/lazy"
)

// A ListPrice is the vendor's price of a model, as stated by a page of the vendor or a public price list. It does not apply to batches,
// priority tiers, one-hour caches and tools of the vendor. Models whose price depends on the length of the request or the time of day have
// no list price, nor have models that the vendor's API no longer serves.
type ListPrice struct {
	Host        string // host of the vendor's API: "api.openai.com"
	Model       string
	Price       Price
	MaxOutput   int64  // most tokens of one answer, reasoning included; 0: unknown
	Source      string // address of the page or list (at one commit) that states Price
	LimitSource string // address of the text that states MaxOutput
	Read        string // day on which stored copies of Source and LimitSource were read: "2026-11-23"; the copies have no date and can be older
}

const (
	openaiHost    = "api.openai.com"
	openaiDocs    = "https://developers.openai.com/"
	anthropicHost = "api.anthropic.com"
	anthropicDocs = "https://platform.claude.com/docs/"

	anthropicPrices = anthropicDocs + "en/about-claude/pricing"

	// A public list, at one commit, is the source if no copy of the vendor's page states the whole price.
	liteLLM   = "https://github.com/BerriAI/litellm/blob/00035b69f416be24e2e323c13198d9b7d2d1bdf9/model_prices_and_context_window.json"
	modelsDev = "https://github.com/anomalyco/models.dev/blob/482fb019a4847290b37990da929dc707d9243dca/providers/"

	readOn = "2026-11-23"
)

// tenths returns a price from amounts in tenths of a cent.
func tenths(input, cached, written, output Money) Price {
	const tenth = Dollar / 1000
	return Price{Input: input * tenth, CachedInput: cached * tenth, CacheWrite: written * tenth, Output: output * tenth}
}

// openai returns a row with one source for the price and the limit.
func openai(model string, p Price, maxOutput int64, source string) ListPrice {
	return ListPrice{Host: openaiHost, Model: model, Price: p, MaxOutput: maxOutput, Source: source, LimitSource: source, Read: readOn}
}

// anthropic returns a row whose price is stated by source, and whose longest answer is stated by limit.
func anthropic(model string, p Price, maxOutput int64, source, limit string) ListPrice {
	return ListPrice{Host: anthropicHost, Model: model, Price: p, MaxOutput: maxOutput, Source: source, LimitSource: limit, Read: readOn}
}

// listPrices has one row for each model. The sources state no price of cache writes for the OpenAI models: their cache writes cost as much
// as other input.
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
	// LiteLLM states a higher price above 200,000 tokens. It does not apply: the context window on the vendor's page is 200,000 tokens.
	anthropic("claude-sonnet-4-5", tenths(3000, 300, 3750, 15_000), 64_000, liteLLM, anthropicDocs+"pt-BR/models/sonnet-4-5/overview.md"),
	anthropic("claude-sonnet-4-6", tenths(3000, 300, 3750, 15_000), 128_000, liteLLM, anthropicDocs+"pt-BR/models/sonnet-4-6/overview.md"),
	anthropic("claude-sonnet-5", tenths(2000, 200, 2500, 10_000), 128_000, anthropicDocs+"zh-CN/models/sonnet-5/overview", anthropicDocs+"zh-CN/models/sonnet-5/overview"),
	// The stored copies of the vendor's page state 0.20 for cached input. This list states 0.10 and cites a later page of the vendor.
	anthropic("claude-sonnet-5-5", tenths(2000, 100, 2500, 10_000), 128_000, modelsDev+"anthropic/models/claude-sonnet-5-5.toml", anthropicDocs+"zh-CN/models/sonnet-5-5/overview"),
}

// snapshot matches the day that vendors append to the name of a model: gpt-5-mini-2025-08-07, claude-haiku-4-5-20251001.
var snapshot = lazy.Regexp(`-20\d\d-?\d\d-?\d\d$`)

// FindListPrice returns the list price of a model at the vendor whose API has the host. Case is ignored. A name that ends with a day gets
// the price of the model without the day, unless the table has a row for the full name. ok is false if no price is known: other hosts can
// have other prices.
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
