package price

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

const (
	openaiHost    = "api.openai.com"
	anthropicHost = "api.anthropic.com"
)

// Each row is stated by a page of its own vendor, or by one commit of a list that is named.
func TestListPricesNameTheirSources(t *testing.T) {
	t.Parallel()
	docs := map[string]string{openaiHost: "https://developers.openai.com/", anthropicHost: "https://platform.claude.com/docs/"}
	lists := regexp.MustCompile(`^https://github\.com/(BerriAI/litellm|anomalyco/models\.dev)/blob/[0-9a-f]{40}/`)
	seen := map[string]bool{}
	for _, p := range ListPrices() {
		for _, source := range []string{p.Source, p.LimitSource} {
			if !lists.MatchString(source) && !strings.HasPrefix(source, docs[p.Host]) {
				t.Errorf("%s: %q is neither a page of %s nor a named list", p.Model, source, p.Host)
			}
		}
		if _, err := time.Parse(time.DateOnly, p.Read); err != nil {
			t.Errorf("%s: %v", p.Model, err)
		}
		if p.Price.Input <= 0 || p.Price.Output <= p.Price.Input || p.Price.CachedInput > p.Price.Input || p.Price.CacheWrite < p.Price.Input || p.MaxOutput <= 0 {
			t.Errorf("%s: %+v", p.Model, p)
		}
		if key := p.Host + " " + p.Model; seen[key] {
			t.Errorf("%s has two rows", key)
		} else {
			seen[key] = true
		}
	}
}

func TestFindListPrice(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		host, model, found string
		output             Money
	}{
		{openaiHost, "gpt-4o", "gpt-4o", 10 * Dollar},
		{"API.OpenAI.com", "GPT-4o-2024-08-06", "gpt-4o", 10 * Dollar},
		{openaiHost, "gpt-4o-2024-05-13", "gpt-4o-2024-05-13", 15 * Dollar},
		{anthropicHost, "claude-haiku-4-5-20251001", "claude-haiku-4-5", 5 * Dollar},
		{anthropicHost, "gpt-4o", "", 0},
		{openaiHost, "gpt-5-codex", "", 0},         // shut down
		{anthropicHost, "claude-opus-4-1", "", 0},  // retired
		{anthropicHost, "claude-haiku-5-5", "", 0}, // its price depends on the length of the request
	} {
		got, ok := FindListPrice(test.host, test.model)
		if got.Model != test.found || ok != (test.found != "") || got.Price.Output != test.output {
			t.Errorf("%s at %s: %+v, %v", test.model, test.host, got, ok)
		}
	}
}
