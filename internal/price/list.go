package price

import (
	_ "embed"
	"encoding/json"
	"strings"
	"sync"

	"github.com/lathe-run/lathe/internal/lazy"
)

// A ListPrice is the vendor's price of a model, as stated by a page of the vendor or a public price list. It does not apply to batches,
// priority tiers, one-hour caches and tools of the vendor. Models whose price depends on the length of the request or the time of day have
// no list price, nor have models that the vendor's API no longer serves.
type ListPrice struct {
	Host        string // host of the vendor's API: "api.openai.com"
	Model       string
	Price       Price  `json:"-"`
	MaxOutput   int64  `json:"max_output"` // most tokens of one answer, reasoning included; 0: unknown
	Source      string // address of the page or list (at one commit) that states Price
	LimitSource string `json:"limit_source"` // address of the text that states MaxOutput
	Read        string // day on which stored copies of Source and LimitSource were read: "2026-11-23"; the copies have no date and can be older
}

//go:embed list.json
var listJSON []byte

// ListPrices returns all list prices, by host and model. The caller must not change them. A public list, at one commit, is the source if no
// copy of the vendor's page states the whole price. The sources state no price of cache writes for the OpenAI models: their cache writes
// cost as much as other input.
//
// LiteLLM states a higher price of claude-sonnet-4-5 above 200,000 tokens. It does not apply: the context window on the vendor's page is
// 200,000 tokens. The stored copies of the vendor's page state 0.20 for cached input of claude-sonnet-5-5. The list states 0.10 and cites a
// later page of the vendor.
var ListPrices = sync.OnceValue(func() []ListPrice {
	var rows []struct {
		ListPrice
		Dollars [4]float64 // of a million tokens: input, cached input, cache writes, output
	}
	if err := json.Unmarshal(listJSON, &rows); err != nil {
		panic(err) // cannot happen: a test reads the list
	}
	list := make([]ListPrice, len(rows))
	for i, r := range rows {
		list[i] = r.ListPrice
		list[i].Price = Price{FromDollars(r.Dollars[0]), FromDollars(r.Dollars[1]), FromDollars(r.Dollars[2]), FromDollars(r.Dollars[3])}
	}
	return list
})

// snapshot matches the day that vendors append to the name of a model: gpt-5-mini-2025-08-07, claude-haiku-4-5-20251001.
var snapshot = lazy.Regexp(`-20\d\d-?\d\d-?\d\d$`)

// FindListPrice returns the list price of a model at the vendor whose API has the host. Case is ignored. A name that ends with a day gets
// the price of the model without the day, unless the table has a row for the full name. ok is false if no price is known: other hosts can
// have other prices.
func FindListPrice(host, model string) (found ListPrice, ok bool) {
	host, model = strings.ToLower(host), strings.ToLower(model)
	for _, name := range []string{model, snapshot().ReplaceAllString(model, "")} {
		for _, p := range ListPrices() {
			if p.Host == host && p.Model == name {
				return p, true
			}
		}
	}
	return ListPrice{}, false
}
