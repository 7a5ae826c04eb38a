package app

import (
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/tool"
)

// A model entry with an alias is found under the alias, and as the default model.
func TestServedModelsFindAliases(t *testing.T) {
	t.Parallel()
	cfg, err := config.Load("", &config.LoadOptions{Overrides: []config.Override{{Key: "models.own.provider", Value: "sim"}, {Key: "default_model", Value: "own"}}})
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet()
	if err != nil {
		t.Fatal(err)
	}
	runner, err := NewRunner(cfg, set, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Models["own"].Model = "sim/demo"
	models := newServedModels(cfg, runner, &ModelOptions{}, map[string]string{"own": "org/tiny:1b", "gone": "org/other"}, nil)
	if got := models.Names(); len(got) != 1 || got[0] != "org/tiny:1b" {
		t.Errorf("served %v", got)
	}
	for _, name := range []string{"org/tiny:1b", ""} {
		if m, err := models.Model(name); err != nil || m.Loop == nil {
			t.Errorf("model %q: %v", name, err)
		}
	}
	if _, err := models.Model("org/other"); lathe.CodeOf(err) != lathe.CodeNotFound {
		t.Errorf("an alias of an entry that is not configured: %v", err)
	}
}
