package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/config"
)

// loadText loads a configuration.
func loadText(t *testing.T, text string) (*config.Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lathe.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config.Load(path, nil)
}

const oneKey = `{sha256: "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"`

func TestVendorObjects(t *testing.T) {
	t.Parallel()
	for value, want := range map[string][]string{"": nil, ", vendor_objects: true": {"*"}, ", vendor_objects: false": {}, ", vendor_objects: []": {},
		", vendor_objects: [file, vs_68ab, cachedContents/x]": {"file", "vs_68ab", "cachedContents/x"}} {
		cfg, err := loadText(t, "keys:\n  k: "+oneKey+value+"}\n")
		if err != nil || !slices.Equal(cfg.Keys["k"].VendorObjects, want) || (cfg.Keys["k"].VendorObjects == nil) != (want == nil) {
			t.Errorf("%s: %v, %v", value, cfg, err)
			continue
		}
		if len(cfg.Warnings()) > 0 {
			t.Errorf("%s: %v", value, cfg.Warnings())
		}
		if again, err := loadText(t, string(cfg.YAML())); err != nil || !slices.Equal(again.Keys["k"].VendorObjects, want) {
			t.Errorf("%s: written as\n%s\n%v", value, cfg.YAML(), err)
		}
	}
	for _, value := range []string{"files", "vectorstore", `"a b1"`} {
		if _, err := loadText(t, "keys:\n  k: "+oneKey+", vendor_objects: ["+value+"]}\n"); err == nil || !strings.Contains(err.Error(), "vendor_objects: ") {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// One warning says that keys may use all tools of vendors, where there are such tools.
func TestKeysWithoutVendorToolsAreOneWarning(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		model, keys, want string
	}{
		{"wire: responses", "a: " + oneKey + "}", "keys.a.vendor_tools"},
		{"wire: anthropic", "a: " + oneKey + "}\n  b: {sha256: \"" + strings.Repeat("b", 64) + "\"}", "keys.a.vendor_tools"},
		{"profile: google", "a: " + oneKey + "}", "keys.a.vendor_tools"},
		{"pass: [web_search_options]", "a: " + oneKey + "}", "keys.a.vendor_tools"},
		{"wire: responses", "a: " + oneKey + ", vendor_tools: []}", ""},
		{"wire: responses", "a: " + oneKey + `, vendor_tools: ["*"]}`, ""},
		{"wire: responses", "a: " + oneKey + ", vendor_tools: [web_search]}", ""},
		{"wire: responses", "a: " + oneKey + ", models: [], metrics: true}", ""},
		{"wire: openai", "a: " + oneKey + "}", ""},
	} {
		cfg, err := loadText(t, "models:\n  m: {base_url: \"https://api.example.com/v1\", "+c.model+"}\nkeys:\n  "+c.keys+"\n")
		if err != nil {
			t.Errorf("%s: %v", c.model, err)
			continue
		}
		got := ""
		for _, p := range cfg.Warnings() {
			got += p.Key
		}
		if got != c.want {
			t.Errorf("%s, %s: a warning about %q, want %q", c.model, c.keys, got, c.want)
		}
	}
}
