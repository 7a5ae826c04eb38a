package app_test

import (
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/app"
)

// One call makes the tools of every kind, or returns the error of the part that cannot be made.
func TestStartTools(t *testing.T) {
	t.Parallel()
	cfg := load(t, "tools:\n  builtin: [calculator]\n  http:\n    weather:\n      description: Says the weather.\n      url: https://weather.example/now\n      allowlist: [sky]\n")
	tools, err := app.StartTools(t.Context(), cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"calculator", "weather"} {
		if _, ok := tools.Set.Lookup(name); !ok {
			t.Errorf("the set has no %s", name)
		}
	}
	if got := tools.Servers.Status(); len(got) != 0 {
		t.Errorf("servers %+v without tools.mcp", got)
	}
	tools.Close()

	cfg = load(t, "tools:\n  builtin: [calculator]\n  wasm:\n    dir: missing\n")
	if tools, err = app.StartTools(t.Context(), cfg, nil); err == nil || !strings.Contains(err.Error(), "missing") || tools != nil {
		t.Errorf("a folder of modules that does not exist: %v, %v", tools, err)
	}
}
