package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/guest"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/text"
)

// guestModels are the models that answer the sends of a guest. Each is made at first use.
type guestModels struct {
	cfg   *config.Config
	fixed bool                                                  // the command line selects the model
	build func(name string) (*config.Model, lathe.Model, error) // "": the model of the command line, else the default
	note  func(text string)

	mu       sync.Mutex
	backends map[string]*guest.Backend
	missed   map[string]bool // requested names that no model has, shortened
}

// choose returns the model for a send: that of the command line, else the configured model that the guest names, else the default.
func (g *guestModels) choose(name string) (*guest.Backend, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	wanted := name
	if _, configured := g.cfg.Models[name]; g.fixed || !configured {
		name = ""
	}
	b := g.backends[name]
	if b == nil {
		entry, model, err := g.build(name)
		if err != nil {
			return nil, err
		}
		b = &guest.Backend{Model: model, Name: cmp.Or(entry.Label, entry.Provider), ModelName: entry.Name, Settings: new(g.cfg.SettingsFor(entry)), Overrides: app.Overrides(entry)}
		if entry.Name == commandLineModel { // show the name of the model instead of the internal name
			b.ModelName = entry.Model
		}
		if g.backends == nil {
			g.backends = map[string]*guest.Backend{}
		}
		g.backends[name] = b
	}
	// A name may be as long as a session, and the stored part outlives the session.
	if missed := strings.Clone(text.Cut(wanted, 80)); missed != "" && name == "" && wanted != b.ModelName && !g.missed[missed] {
		if g.missed == nil {
			g.missed = map[string]bool{}
		}
		g.missed[missed] = true
		g.note(fmt.Sprintf("the guest asks for the model %s: %s answers", printable(missed), b.ModelName))
	}
	return b, nil
}

// guestEnded returns an error with the exit code for the end of a guest.
func guestEnded(ctx context.Context, o *guest.Outcome) error {
	switch {
	case ctx.Err() != nil:
		return errInterrupted
	case o.Err != nil:
		return failure("the guest ended %s: %w", o.Reason, o.Err)
	case o.Code != 0:
		return failure("the guest ended with code %d", o.Code)
	}
	return nil
}
