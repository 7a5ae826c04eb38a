package main

import (
	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe/internal/config"
)

// overrides returns the models entry and the default model that --base-url and --model make. A reload has them, too.
func (f *serveFlags) overrides(cmd *cobra.Command) ([]config.Override, error) {
	if f.BaseURL == "" && f.Model != "" {
		return nil, usageError("--model goes with --base-url: a configured model is chosen by default_model in lathe.yaml, or by each request")
	}
	over, name, err := (&runFlags{modelFlags: modelFlags{upstreamFlags: f.upstreamFlags}}).overrides(cmd)
	if err == nil && name != "" {
		over = append(over, config.Override{From: "--base-url", Key: "default_model", Value: name})
	}
	return over, err
}

// loadConfig reads the configuration of the daemon, with the flags over it.
func (f *serveFlags) loadConfig(cmd *cobra.Command, file string) (*config.Config, error) {
	over, err := f.overrides(cmd)
	if err != nil {
		return nil, err
	}
	cfg, err := loadConfig(file, over)
	if err != nil {
		return nil, err
	}
	if f.BaseURL != "" && cfg.Models[f.Model] != nil {
		return nil, usageError("--model %s: lathe.yaml has a model of this name", f.Model)
	}
	return cfg, nil
}

// aliases returns the name under which clients find the model of --base-url.
func (f *serveFlags) aliases() map[string]string {
	if f.BaseURL == "" {
		return nil
	}
	return map[string]string{commandLineModel: f.Model}
}
