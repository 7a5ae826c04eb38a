package app

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/budget"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/sim"
	"github.com/lathe-run/lathe/tool"
)

// servedModels are the configured models or, if none is configured, the simulated ones. Each model is made once.
type servedModels struct {
	cfg     *config.Config
	runner  *tool.Runner
	opts    *ModelOptions
	aliases map[string]string // see [Options].Aliases
	meter   *budget.Meter     // nil: model calls are not counted

	mu   sync.Mutex
	made map[string]*servedModel
}

// A servedModel is a model together with the parts from which its loops are made.
type servedModel struct {
	server.Model
	entry *config.Model
	chat  lathe.Model
}

func newServedModels(cfg *config.Config, runner *tool.Runner, opts *ModelOptions, aliases map[string]string, meter *budget.Meter) *servedModels {
	return &servedModels{cfg: cfg, runner: runner, opts: opts, aliases: aliases, meter: meter, made: map[string]*servedModel{}}
}

// makeConfigured makes all configured models, so that an invalid model is an error at the start or reload and not at the first request. The
// simulated models of an empty configuration are made on demand.
func (m *servedModels) makeConfigured() error {
	for name := range text.ByName(m.cfg.Models) {
		if _, err := m.Model(name); err != nil {
			return err
		}
	}
	return nil
}

// Names implements [server.Models].
func (m *servedModels) Names() []string {
	if len(m.cfg.Models) > 0 {
		names := slices.Collect(maps.Keys(m.cfg.Models))
		for i, n := range names {
			names[i] = cmp.Or(m.aliases[n], n)
		}
		slices.Sort(names)
		return names
	}
	return slices.Sorted(slices.Values(sim.New(m.opts.Sim).Names()))
}

// maxMade is the number of simulated models that are cached: the number of their names is not limited.
const maxMade = 256

// Model implements [server.Models].
func (m *servedModels) Model(name string) (*server.Model, error) {
	made, err := m.model(name)
	if err != nil {
		return nil, err
	}
	return &made.Model, nil
}

// model returns the model with that name. For an unknown name it returns an error with the code not_found.
func (m *servedModels) model(name string) (*servedModel, error) {
	for entry, alias := range m.aliases {
		if alias == name && m.cfg.Models[entry] != nil {
			name = entry
			break
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if found := m.made[name]; found != nil {
		return found, nil
	}
	entry, err := m.cfg.Model(name)
	if err == nil && name != "" && len(m.cfg.Models) > 0 && m.cfg.Models[name] == nil {
		err = errors.New("the simulated models are served where none is configured")
	}
	if err != nil {
		return nil, lathe.CodeNotFound.Wrap("serve: find the model", err)
	}
	chat, err := NewModel(m.cfg, entry, m.opts)
	if err != nil {
		if isSimulated(name) && len(m.cfg.Models) == 0 {
			return nil, lathe.CodeNotFound.Wrap("serve: find the model", err)
		}
		return nil, err
	}
	l, err := newLoop(m.cfg, entry, chat, m.runner, m.meter)
	if err != nil {
		return nil, err
	}
	made := &servedModel{Model: server.Model{Loop: l, Settings: m.cfg.SettingsFor(entry), Limits: m.cfg.Limits(), Pass: passed(entry)}, entry: entry, chat: chat}
	if len(m.made) < maxMade {
		m.made[name] = made
	}
	return made, nil
}
