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
func (g *guestModels) choose(requested string) (*guest.Backend, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	name := requested
	if g.fixed || g.cfg.Models[name] == nil {
		name = ""
	}
	backend := g.backends[name]
	if backend == nil {
		var err error
		if backend, err = g.backend(name); err != nil {
			return nil, err
		}
		if g.backends == nil {
			g.backends = map[string]*guest.Backend{}
		}
		g.backends[name] = backend
	}
	if name == "" && requested != backend.ModelName {
		g.noteMissed(requested, backend)
	}
	return backend, nil
}

// backend makes the model with a name; "": that of the command line, else the default.
func (g *guestModels) backend(name string) (*guest.Backend, error) {
	entry, model, err := g.build(name)
	if err != nil {
		return nil, err
	}
	b := &guest.Backend{Model: model, Name: cmp.Or(entry.Label, entry.Provider), ModelName: entry.Name, Settings: new(g.cfg.SettingsFor(entry)), Overrides: app.Overrides(entry)}
	if entry.Name == commandLineModel { // show the name of the model instead of the internal name
		b.ModelName = entry.Model
	}
	return b, nil
}

// noteMissed notes once for each requested name that another model answers.
func (g *guestModels) noteMissed(requested string, backend *guest.Backend) {
	short := strings.Clone(text.Cut(requested, 80)) // a name may be as long as a session, and the stored part outlives the session
	if short == "" || g.missed[short] {
		return
	}
	if g.missed == nil {
		g.missed = map[string]bool{}
	}
	g.missed[short] = true
	g.note(fmt.Sprintf("the guest asks for the model %s: %s answers", printable(short), backend.ModelName))
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
