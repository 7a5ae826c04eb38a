package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/lathe-run/lathe/config"
	"github.com/lathe-run/lathe/gateway"
	"github.com/lathe-run/lathe/sim"
)

// checkConfig finds what `lathe serve` would refuse at its start, without connecting to a server or starting a
// process: tools, WebAssembly modules, scripts, models, keys, worker pools, the
// store's name and the address to listen on.
func checkConfig(ctx context.Context, cfg *config.Config, path string) error {
	set, err := buildTools(cfg)
	if err != nil {
		return err
	}
	if err := checkModules(ctx, cfg, path, set); err != nil {
		return err
	}
	simOpts, err := buildSim(cfg, path, "", "")
	if err != nil {
		return err
	}
	if simOpts.Scripts == nil {
		simOpts.Scripts = map[string]*sim.Script{}
	}
	simOpts.Scripts[""] = &sim.Script{} // the model sim/script plays what --script names, which is not known here
	log := slog.New(slog.DiscardHandler)
	models := newServedModels(cfg, buildRunner(cfg, set, nil, nil, log), simOpts, log)
	if err := models.makeConfigured(); err != nil {
		return err
	}
	setup := (&generation{cfg: cfg, set: set, models: models}).setup()
	if err := checkSetup(cfg, &setup); err != nil {
		return err
	}
	if err := checkStore(cfg.Serve.Store.Reveal()); err != nil {
		return err
	}
	if err := gateway.CheckAddr(cfg.Serve.Addr, len(cfg.Keys)); err != nil {
		return &exitError{exitConfig, fmt.Errorf("serve.addr: %w", causeOf(err))}
	}
	return nil
}
