package app

import (
	"context"

	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/sim"
)

// Check returns what [New] would report about a loaded configuration, without making connections or starting processes: errors of tools,
// WebAssembly modules, scripts, models, keys, worker pools, the name of the store and the listen address.
func Check(ctx context.Context, cfg *config.Config) error {
	set, err := NewToolSet(cfg)
	if err != nil {
		return err
	}
	if err := checkModules(ctx, cfg, set); err != nil {
		return err
	}
	simOpts, err := SimOptions(cfg, "", "")
	if err != nil {
		return err
	}
	simOpts.Scripts[""] = &sim.Script{} // stands in for the script of sim/script, which is not part of the configuration
	runner, err := NewRunner(cfg, set, nil)
	if err != nil {
		return err
	}
	if err := checkDefinitions(cfg, runner); err != nil {
		return err
	}
	models := newServedModels(cfg, runner, &ModelOptions{Sim: simOpts}, nil, nil)
	if err := models.makeConfigured(); err != nil {
		return err
	}
	if _, err := newSetup(cfg, &identities{}, models, servedTools{set: set, runner: runner}); err != nil {
		return err
	}
	if _, err := loadCertificate(cfg); err != nil {
		return err
	}
	if _, err := newWebhook(cfg, nil); err != nil {
		return err
	}
	if err := checkStore(cfg.Serve.Store.Reveal()); err != nil {
		return err
	}
	if err := CheckAddr(cfg, cfg.Serve.Addr); err != nil {
		return invalidConfig("serve.addr: %w", Cause(err))
	}
	return nil
}

// CheckAddr returns an error if the gateway must not listen on addr: it is not a loopback address, and no key is required.
func CheckAddr(cfg *config.Config, addr string) error {
	keys := 0
	if cfg.RequiresKey() {
		keys = 1
	}
	return server.CheckAddr(addr, keys)
}
