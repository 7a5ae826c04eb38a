package main

import (
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/sim"
)

// What is kept of the models that a guest asks for is short, however long their names are, and it is said once.
func TestGuestModelsKeepLittleOfNames(t *testing.T) {
	t.Parallel()
	cfg, err := config.Load("", nil)
	if err != nil {
		t.Fatal(err)
	}
	var output []string
	h := &guestModels{cfg: cfg, note: func(text string) { output = append(output, text) }, build: func(string) (*config.Model, lathe.Model, error) {
		entry, err := cfg.Model("")
		return entry, sim.New(nil).Model(""), err
	}}
	for _, name := range []string{"some", strings.Repeat("x", 1<<20), strings.Repeat("x", 1<<20) + "y", "some", ""} {
		if _, err := h.choose(name); err != nil {
			t.Fatal(err)
		}
	}
	kept := 0
	for name := range h.backends {
		kept += len(name)
	}
	for name := range h.missed {
		kept += len(name)
	}
	if len(output) != 2 || kept > 200 {
		t.Errorf("%d notes, %d bytes are kept", len(output), kept)
	}
}
