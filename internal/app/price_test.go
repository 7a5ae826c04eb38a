package app_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/price"
)

// The list price of a vendor holds at the vendor's own address alone, and gives way to the configuration as a whole.
func TestListPrices(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "lathe.yaml")
	if err := os.WriteFile(file, []byte(`
models:
  gpt-5-mini: {}
  snapshot: {profile: openai, model: gpt-5-mini-2025-08-07}
  claude: {profile: anthropic, model: claude-haiku-4-5-20251001}
  claude-wire: {wire: anthropic, model: claude-haiku-4-5}
  own: {model: gpt-5-mini, price: {input: 1, output: 2}, output_limit: 100}
  proxy: {model: gpt-5-mini, base_url: "http://127.0.0.1:9/v1"}
  router: {profile: openrouter, model: gpt-5-mini}
  other: {model: gpt-unheard-of}
  gpt-4o: {provider: sim, model: sim/demo}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := app.LoadConfig(file, &app.LoadOptions{Environ: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	mini := price.Price{Input: price.Dollar / 4, CachedInput: price.Dollar / 40, CacheWrite: price.Dollar / 4, Output: 2 * price.Dollar}
	haiku := price.Price{Input: price.Dollar, CachedInput: price.Dollar / 10, CacheWrite: price.Dollar * 5 / 4, Output: 5 * price.Dollar}
	for name, want := range map[string]struct {
		price  price.Price
		known  bool
		limit  int
		origin string
	}{
		"gpt-5-mini":  {mini, true, 128_000, "list price read on 2026-11-23"},
		"snapshot":    {mini, true, 128_000, "list price read on 2026-11-23"},
		"claude":      {haiku, true, 64_000, "list price read on 2026-11-23"},
		"claude-wire": {haiku, true, 64_000, "list price read on 2026-11-23"},
		"own":         {price.Price{Input: price.Dollar, CachedInput: price.Dollar, CacheWrite: price.Dollar, Output: 2 * price.Dollar}, true, 100, "lathe.yaml:7"},
		"proxy":       {origin: "default"},
		"router":      {origin: "default"},
		"other":       {origin: "default"},
		"gpt-4o":      {origin: "default"},
	} {
		m := cfg.Models[name]
		got, known := m.Price.Price()
		if got != want.price || known != want.known || m.OutputLimit != want.limit {
			t.Errorf("%s: %+v, %v, %d", name, got, known, m.OutputLimit)
		}
		if from := cfg.Origin("models." + name + ".price.input"); from != want.origin {
			t.Errorf("%s: the price comes from %q, want %q", name, from, want.origin)
		}
	}
}
