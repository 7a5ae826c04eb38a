package config

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestT21_ReferencesAreKnownSecrets(t *testing.T) {
	t.Parallel()
	path := write(t, t.TempDir(), "lathe.yaml", `
models:
  a/b:
    base_url: ${URL}
    key: ${KEY}
    headers: {X-Title: plain, X-Token: "t ${KEY}"}
secrets:
  values: {db: "${KEY}"}
tools:
  http:
    get: {url: "${URL}/x", allowlist: ["*"], bearer: "${KEY}"}
  openapi:
    shop: {file: shop.yaml, server: "${URL}", allowlist: ["*"], operations: [a]}
`)
	c, err := Load(path, &LoadOptions{Environ: []string{"KEY=" + canary, "URL=https://example.com/v1"}})
	if err != nil {
		t.Fatal(err)
	}
	known := c.KnownSecrets()
	if got := strings.Join(slices.Sorted(maps.Keys(known)), " "); got != "db models.a_b.headers.X-Token models.a_b.key tools.http.get.bearer" {
		t.Errorf("got %s", got)
	}
	if known["db"].Reveal() != canary || known["models.a_b.headers.X-Token"].Reveal() != "t "+canary {
		t.Error("the values are wrong")
	}
}
